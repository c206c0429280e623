//! Reading events: a page, one, and its exact bytes.

use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::api::{ANSWER_BYTES, Api, answer};
use super::json::{Item, detail, item};
use crate::clock::Time;
use crate::event::{EventDetail, EventQuery, Sequence};
use crate::http::bearer::Principal;
use crate::http::json::{NoQuery, Query};
use crate::http::path::Segment;
use crate::http::problem::Refusal;

const LIMIT: usize = 50;
const MAX_LIMIT: usize = 500;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Params {
    channel: Option<String>,
    source: Option<String>,
    #[serde(rename = "type")]
    event_type: Option<String>,
    conversation: Option<String>,
    since: Option<Time>,
    until: Option<Time>,
    limit: Option<usize>,
    after: Option<String>,
    #[serde(default)]
    order: Order,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Order {
    Asc,
    #[default]
    Desc,
}

#[derive(Debug, Serialize)]
struct Shown<'a> {
    events: Vec<Item<'a>>,
    next: Option<String>,
}

pub(super) async fn list(
    State(api): State<Api>,
    principal: Principal,
    Query(params): Query<Params>,
) -> Result<Response, Refusal> {
    principal.require_operator()?;
    let query = EventQuery {
        channel: params.channel,
        source: params.source,
        event_type: params.event_type,
        conversation: params.conversation,
        since: params.since,
        until: params.until,
        after: after(params.after)?,
        through: None,
        ascending: params.order == Order::Asc,
        limit: limit(params.limit)?,
        max_bytes: ANSWER_BYTES / 3,
    };
    let page = api.inbox.events(query).await?;
    let bytes = page.events.iter().map(|event| event.body.len()).sum();
    answer(bytes, move || {
        let last = page.events.last().filter(|_| page.more);
        let next = last.map(|event| event.sequence.to_string());
        let events = page.events.iter().map(item).collect();
        serde_json::to_vec(&Shown { events, next })
    })
    .await
}

/// How many a page may hold.
pub(super) fn limit(asked: Option<usize>) -> Result<usize, Refusal> {
    let limit = asked.unwrap_or(LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Refusal::invalid("limit", format!("{limit} is not within 1 and {MAX_LIMIT}")));
    }
    Ok(limit)
}

/// Where a page goes on.
pub(super) fn after(next: Option<String>) -> Result<Option<Sequence>, Refusal> {
    let after = next.map(|after| after.parse::<Sequence>()).transpose();
    after.map_err(|_| Refusal::invalid("after", "not the next of an earlier answer"))
}

pub(super) async fn one(
    State(api): State<Api>,
    _principal: Principal,
    Segment(id): Segment,
    _: NoQuery,
) -> Result<Response, Refusal> {
    let found = find(&api, &id).await?;
    answer(found.event.body.len(), move || serde_json::to_vec(&detail(&found))).await
}

pub(super) async fn raw(
    State(api): State<Api>,
    _principal: Principal,
    Segment(id): Segment,
    _: NoQuery,
) -> Result<Response, Refusal> {
    let found = find(&api, &id).await?;
    // The bytes are whatever a stranger sent: no browser is to make something of them.
    let headers = [(CONTENT_TYPE, "application/octet-stream"), (X_CONTENT_TYPE_OPTIONS, "nosniff")];
    Ok((headers, found.event.body).into_response())
}

async fn find(api: &Api, id: &str) -> Result<EventDetail, Refusal> {
    // What is no UUID names no event.
    let id = Uuid::try_parse(id).map_err(|_| Refusal::NotFound)?;
    api.inbox.event(id).await?.ok_or(Refusal::NotFound)
}
