//! `/healthz`: the process answers. `/readyz`: the store does, and nothing drains.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::routing::get;

use crate::http::json::Json;
use crate::http::problem::{Refusal, Unavailable};
use crate::inbox::Inbox;
use crate::shutdown::Shutdown;

/// What health is asked of.
#[derive(Clone)]
pub struct Health {
    /// Whose store must answer.
    pub inbox: Arc<Inbox>,
    /// Whether the process drains.
    pub shutdown: Shutdown,
}

/// The public listener's: whether the process answers, and nothing about the inside.
pub fn public() -> Router {
    Router::new().route("/healthz", get(alive))
}

/// The private listener's.
pub fn private(health: Health) -> Router {
    let ready = Router::new().route("/readyz", get(ready)).with_state(health);
    ready.route("/healthz", get(alive))
}

async fn alive() -> Json<serde_json::Value> {
    Json(serde_json::json!({ "status": "ok" }))
}

async fn ready(State(health): State<Health>) -> Result<Json<serde_json::Value>, Refusal> {
    if health.shutdown.is_soft() {
        return Err(Refusal::Unavailable(Unavailable::ShuttingDown));
    }
    health.inbox.ready().await?;
    Ok(Json(serde_json::json!({ "status": "ready" })))
}
