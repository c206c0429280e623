//! The routes of the private listener that hand events out.

use std::sync::Arc;

use axum::Router;
use axum::extract::FromRef;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};

use super::{attempts, consumers, conversations, effects, events, messages, replay, stream, work};
use crate::http::body::BodyLimits;
use crate::http::problem::Refusal;
use crate::inbox::Inbox;

/// At most so many bytes of events in one answer, but always one event.
pub(super) const ANSWER_BYTES: usize = 32 << 20;

/// What the routes work with.
#[derive(Clone)]
pub struct Api {
    /// Where events come from.
    pub inbox: Arc<Inbox>,
    /// Limits of a request's body.
    pub limits: BodyLimits,
}

impl FromRef<Api> for BodyLimits {
    fn from_ref(api: &Api) -> BodyLimits {
        api.limits.clone()
    }
}

/// The routes, to be put behind `http::bearer::authenticate`.
pub fn routes(api: Api) -> Router {
    Router::new()
        .route("/v1/consumers", get(consumers::list))
        .route("/v1/consumers/{consumer}", get(consumers::one))
        .route("/v1/consumers/{consumer}/claim", post(work::claim))
        .route("/v1/consumers/{consumer}/ack", post(work::ack))
        .route("/v1/consumers/{consumer}/effects", get(effects::list))
        .route("/v1/consumers/{consumer}/effects/begin", post(effects::begin))
        .route("/v1/consumers/{consumer}/effects/finish", post(effects::finish))
        .route("/v1/consumers/{consumer}/effects/abandon", post(effects::abandon))
        .route("/v1/consumers/{consumer}/nack", post(attempts::nack))
        .route("/v1/consumers/{consumer}/extend", post(attempts::extend))
        .route("/v1/consumers/{consumer}/dead", get(attempts::dead))
        .route("/v1/consumers/{consumer}/replay", post(replay::replay))
        .route("/v1/consumers/{consumer}/dead/requeue", post(replay::requeue))
        .route("/v1/events", get(events::list))
        .route("/v1/events/stream", get(stream::stream))
        .route("/v1/events/{id}", get(events::one))
        .route("/v1/events/{id}/raw", get(events::raw))
        .route("/v1/conversations", get(conversations::list))
        .route("/v1/conversations/messages", get(messages::list))
        .with_state(api)
}

/// More bytes than this take long enough to write that other requests would feel it.
const LARGE: usize = 64 << 10;

/// The JSON answer that `write` gives. It writes text at once, because a payload would not survive as
/// a `serde_json::Value`.
pub(super) async fn answer(
    bytes: usize,
    write: impl FnOnce() -> serde_json::Result<Vec<u8>> + Send + 'static,
) -> Result<Response, Refusal> {
    let json = written(bytes, write).await?;
    Ok(([(CONTENT_TYPE, "application/json")], json).into_response())
}

/// What `write` gives, written beside the event loop if it holds many `bytes`.
pub(super) async fn written(
    bytes: usize,
    write: impl FnOnce() -> serde_json::Result<Vec<u8>> + Send + 'static,
) -> Result<Vec<u8>, Refusal> {
    let written = if bytes < LARGE {
        write()
    } else {
        tokio::task::spawn_blocking(write).await.map_err(|_| Refusal::Internal)?
    };
    written.map_err(|error| {
        tracing::error!("an answer could not be written as JSON: {error}");
        Refusal::Internal
    })
}
