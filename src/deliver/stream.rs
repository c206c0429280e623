//! Events as they come, as server-sent events: the number is the id from which a client resumes.
//!
//! A page is read when the one before is taken, so a slow client holds one page and nothing in the
//! store.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream::unfold;
use serde::Deserialize;

use super::api::{Api, written};
use super::json::item;
use crate::event::{Event, EventQuery, Sequence};
use crate::http::bearer::Principal;
use crate::http::json::Query;
use crate::http::problem::Refusal;
use crate::inbox::Inbox;

/// Where a client says what it had last.
const LAST_EVENT_ID: &str = "Last-Event-ID";
/// After so long without an event, a comment shows both ends that the other is there.
const HEARTBEAT: Duration = Duration::from_secs(15);
const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";
/// Events and bytes of bodies read at a time, but always one event.
const PAGE: usize = 500;
const PAGE_BYTES: usize = 1 << 20;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Params {
    channel: Option<String>,
    source: Option<String>,
    #[serde(rename = "type")]
    event_type: Option<String>,
    conversation: Option<String>,
    after: Option<String>,
}

pub(super) async fn stream(
    State(api): State<Api>,
    principal: Principal,
    headers: HeaderMap,
    Query(params): Query<Params>,
) -> Result<Response, Refusal> {
    principal.require_operator()?;
    // A client that resumes sends the address that it began with, so the header goes first.
    let last = headers.get(LAST_EVENT_ID).map(|id| number(LAST_EVENT_ID, id.to_str().ok()));
    let given = || params.after.as_deref().map(|after| number("after", Some(after)));
    let after = match last.or_else(given) {
        Some(after) => after?,
        None => api.inbox.newest().await?,
    };
    let query = EventQuery {
        channel: params.channel,
        source: params.source,
        event_type: params.event_type,
        conversation: params.conversation,
        limit: PAGE,
        max_bytes: PAGE_BYTES,
        ..EventQuery::default()
    };
    let query = Arc::new(query);
    let pages = unfold(after, move |after| next(api.inbox.clone(), query.clone(), after));
    let headers = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-store")];
    Ok((headers, Body::from_stream(pages)).into_response())
}

/// The number that an event's id is.
fn number(field: &str, text: Option<&str>) -> Result<Sequence, Refusal> {
    let number = text.and_then(|text| text.parse().ok()).filter(|number| *number >= 0);
    number.ok_or_else(|| Refusal::invalid(field, "not the id of an event of this stream"))
}

/// What to write next, and the number to go on behind; none at the end of the stream.
async fn next(
    inbox: Arc<Inbox>,
    query: Arc<EventQuery>,
    after: Sequence,
) -> Option<(Result<Bytes, Infallible>, Sequence)> {
    let found = inbox.next_events(&query, after, HEARTBEAT).await;
    // The client asks again, and is told then.
    let found = found.inspect_err(|error| tracing::error!("an event stream ends: {error}"));
    let (events, after) = found.ok()??;
    if events.is_empty() {
        return Some((Ok(Bytes::from_static(KEEP_ALIVE)), after));
    }
    let bytes = events.iter().map(|event| event.body.len()).sum();
    let page = written(bytes, move || write(&events)).await.ok()?;
    Some((Ok(page.into()), after))
}

fn write(events: &[Event]) -> serde_json::Result<Vec<u8>> {
    let mut page = Vec::new();
    for event in events {
        page.extend_from_slice(format!("id: {}\ndata: ", event.sequence).as_bytes());
        let start = page.len();
        serde_json::to_writer(&mut page, &item(event))?;
        // A payload keeps its line breaks, which stand between its values: each would end the field.
        for byte in &mut page[start..] {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
        page.extend_from_slice(b"\n\n");
    }
    Ok(page)
}
