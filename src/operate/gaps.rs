//! `GET /v1/gaps`: possible losses.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use serde::{Deserialize, Serialize};

use crate::clock::Time;
use crate::http::bearer::Principal;
use crate::http::json::{Json, Query};
use crate::http::problem::Refusal;
use crate::inbox::Inbox;
use crate::source::Gap;

const LIMIT: usize = 100;
const MAX_LIMIT: usize = 1000;

/// A possible loss as the API and the command line show it.
#[derive(Debug, Serialize)]
pub struct ShownGap<'a> {
    id: i64,
    source: &'a str,
    reason: &'static str,
    from_id: Option<i64>,
    to_id: Option<i64>,
    from: Option<Time>,
    to: Time,
    detail: &'a str,
    acknowledged_at: Option<Time>,
}

/// The possible loss as people see it.
pub fn gap(gap: &Gap) -> ShownGap<'_> {
    let noticed = &gap.noticed;
    ShownGap {
        id: gap.id,
        source: &gap.source,
        reason: noticed.reason.name(),
        from_id: noticed.ids.map(|ids| ids.0),
        to_id: noticed.ids.map(|ids| ids.1),
        from: noticed.from,
        to: noticed.to,
        detail: &noticed.detail,
        acknowledged_at: gap.acknowledged_at,
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    source: Option<String>,
    limit: Option<usize>,
}

/// The route, to be put behind `http::bearer::authenticate`.
pub(super) fn routes(inbox: Arc<Inbox>) -> Router {
    Router::new().route("/v1/gaps", get(list)).with_state(inbox)
}

async fn list(
    State(inbox): State<Arc<Inbox>>,
    principal: Principal,
    Query(params): Query<Params>,
) -> Result<Json<serde_json::Value>, Refusal> {
    principal.require_operator()?;
    let limit = params.limit.unwrap_or(LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Refusal::invalid("limit", format!("{limit} is not within 1 and {MAX_LIMIT}")));
    }
    let gaps = inbox.gaps(params.source.as_deref(), limit).await?;
    let gaps: Vec<ShownGap<'_>> = gaps.iter().map(gap).collect();
    Ok(Json(serde_json::json!({ "gaps": gaps })))
}
