//! `GET /v1/sources`: every receiver the store knows, with what it says of itself.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use serde::Serialize;

use crate::clock::Time;
use crate::http::bearer::Principal;
use crate::http::json::{Json, NoQuery};
use crate::http::problem::Refusal;
use crate::inbox::Inbox;
use crate::source::Source;

/// A source as the API and the command line show it.
#[derive(Debug, Serialize)]
pub struct Shown {
    /// Its configured name.
    pub name: String,
    /// `telegram` or `unifyport`.
    pub kind: &'static str,
    /// One word, such as `ok`.
    pub state: String,
    /// The same as a sentence with the remedy.
    pub detail: String,
    /// Since when.
    pub since: Option<Time>,
    /// The bot id, once known.
    pub account: Option<String>,
    /// Events it brought in.
    pub stored: i64,
    /// Receipts of what was there already.
    pub duplicates: i64,
    /// Receipts of other bytes under a known identity.
    pub conflicts: i64,
    /// The last receipt of any of these.
    pub last_received_at: Option<Time>,
    /// The offset that a bot's next poll sends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<i64>,
    /// Until when a bot's polls went well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_ok_at: Option<Time>,
    /// Updates that wait at Telegram, when it was last asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<i64>,
    /// The process that polls the bot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// Possible losses that nobody has acknowledged.
    pub open_gaps: i64,
    /// When the store first heard of it.
    pub created_at: Time,
}

/// The source as people see it.
pub fn shown(source: Source) -> Shown {
    let poller = source.poller.unwrap_or_default();
    Shown {
        name: source.name,
        kind: source.kind.name(),
        state: source.state.name,
        detail: source.state.detail,
        since: source.state.since,
        account: source.account,
        stored: source.stored,
        duplicates: source.duplicates,
        conflicts: source.conflicts,
        last_received_at: source.last_received_at,
        next_offset: poller.next_offset,
        last_ok_at: poller.last_ok_at,
        pending: poller.pending,
        holder: poller.holder,
        open_gaps: source.open_gaps,
        created_at: source.created_at,
    }
}

/// The route, to be put behind `http::bearer::authenticate`.
pub(super) fn routes(inbox: Arc<Inbox>) -> Router {
    Router::new().route("/v1/sources", get(list)).with_state(inbox)
}

async fn list(
    State(inbox): State<Arc<Inbox>>,
    principal: Principal,
    _: NoQuery,
) -> Result<Json<serde_json::Value>, Refusal> {
    principal.require_operator()?;
    let sources: Vec<Shown> = inbox.sources().await?.into_iter().map(shown).collect();
    Ok(Json(serde_json::json!({ "sources": sources })))
}
