//! One conversation over time, with edits and deletions shown on the messages they are about.

use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};

use super::api::{ANSWER_BYTES, Api, answer};
use super::events::{Order, after, limit};
use crate::clock::Time;
use crate::conversation::TypedQuery;
use crate::event::{Event, EventQuery, Sequence};
use crate::http::bearer::Principal;
use crate::http::json::Query;
use crate::http::problem::Refusal;
use crate::view::timeline::{Entry, Timeline};
use crate::view::{CHANGES, Message};

/// Bytes of bodies on one page.
const PAGE_BYTES: usize = ANSWER_BYTES / 3;
/// Events that are read at once beside the page.
const CHUNK: usize = 500;
/// Bytes of them.
const CHUNK_BYTES: usize = 4 << 20;
/// By how many receipts an edit or a deletion may be ahead of its message, because UnifyPort keeps
/// no order.
const OVERTAKEN: Sequence = 10_000;
/// Events after a page that are searched for messages which its edits have overtaken.
const OVERTAKING: usize = 100;
/// Events before a page that are searched for the messages of its edits, so that an edit whose
/// message is not in the inbox does not read all of it.
const SEARCHED: usize = 10_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Params {
    subject: String,
    limit: Option<usize>,
    after: Option<String>,
    order: Option<Order>,
}

#[derive(Debug, Serialize)]
struct Listed {
    messages: Vec<Shown>,
    next: Option<String>,
}

/// An entry of a timeline, as answers show it.
#[derive(Debug, Serialize)]
pub(super) struct Shown {
    event_id: String,
    sequence: String,
    receivedat: Time,
    #[serde(rename = "type")]
    event_type: String,
    #[serde(flatten)]
    message: Message,
    edited_at: Option<Time>,
    deleted: bool,
    deleted_at: Option<Time>,
}

impl From<Entry> for Shown {
    fn from(entry: Entry) -> Shown {
        Shown {
            event_id: entry.event_id.to_string(),
            sequence: entry.sequence.to_string(),
            receivedat: entry.received_at,
            event_type: entry.event_type,
            message: entry.message,
            edited_at: entry.edited_at,
            deleted: entry.deleted_at.is_some(),
            deleted_at: entry.deleted_at,
        }
    }
}

pub(super) async fn list(
    State(api): State<Api>,
    principal: Principal,
    Query(params): Query<Params>,
) -> Result<Response, Refusal> {
    principal.require_operator()?;
    let query = EventQuery {
        conversation: Some(params.subject.clone()),
        after: after(params.after)?,
        ascending: params.order != Some(Order::Desc),
        limit: limit(params.limit)?,
        max_bytes: PAGE_BYTES,
        ..EventQuery::default()
    };
    let page = api.inbox.events(query).await?;
    let next = page.events.last().filter(|_| page.more).map(|event| event.sequence);
    let sequences = page.events.iter().map(|event| event.sequence);
    let ends = sequences.clone().min().zip(sequences.max());
    let bytes = page.events.iter().map(|event| event.body.len()).sum();
    let mut timeline = beside(move || Timeline::new(&page.events, PAGE_BYTES)).await?;
    if let Some((first, last)) = ends {
        let subject = &params.subject;
        if timeline.can_change() {
            timeline = changed(&api, subject, first, timeline).await?;
        }
        if timeline.has_orphans() {
            timeline = overtaken(&api, subject, last, timeline).await?;
        }
        if timeline.has_orphans() {
            timeline = searched(&api, subject, first, timeline).await?;
        }
    }
    answer(bytes, move || {
        let (entries, cut) = timeline.finish();
        let next = cut.or(next).map(|next| next.to_string());
        let messages = entries.into_iter().map(Shown::from).collect();
        serde_json::to_vec(&Listed { messages, next })
    })
    .await
}

/// Applies all edits and deletions that may concern a page that begins with `first`.
async fn changed(
    api: &Api,
    subject: &str,
    first: Sequence,
    mut timeline: Timeline,
) -> Result<Timeline, Refusal> {
    let mut query = TypedQuery {
        subject: subject.to_owned(),
        types: CHANGES.map(str::to_owned).into(),
        after: first.saturating_sub(OVERTAKEN),
        limit: CHUNK,
        max_bytes: CHUNK_BYTES,
    };
    loop {
        let page = api.inbox.typed_events(query.clone()).await?;
        let Some(last) = page.events.last() else { return Ok(timeline) };
        query.after = last.sequence;
        let more = page.more;
        timeline = told(timeline, page.events, Timeline::change).await?;
        if !more {
            return Ok(timeline);
        }
    }
}

/// Looks for the messages of edits shortly after the page.
async fn overtaken(
    api: &Api,
    subject: &str,
    last: Sequence,
    timeline: Timeline,
) -> Result<Timeline, Refusal> {
    let query = EventQuery {
        conversation: Some(subject.to_owned()),
        after: Some(last),
        ascending: true,
        limit: OVERTAKING,
        max_bytes: CHUNK_BYTES,
        ..EventQuery::default()
    };
    let page = api.inbox.events(query).await?;
    told(timeline, page.events, Timeline::later).await
}

/// Looks for the messages of edits before the page.
async fn searched(
    api: &Api,
    subject: &str,
    first: Sequence,
    mut timeline: Timeline,
) -> Result<Timeline, Refusal> {
    let since = timeline.orphans_since();
    let mut query = EventQuery {
        conversation: Some(subject.to_owned()),
        after: Some(first),
        limit: CHUNK,
        max_bytes: CHUNK_BYTES,
        ..EventQuery::default()
    };
    let mut left = SEARCHED;
    loop {
        let page = api.inbox.events(query.clone()).await?;
        let Some(last) = page.events.last() else { return Ok(timeline) };
        let is_before = since.is_some_and(|since| last.received_at < since);
        left = left.saturating_sub(page.events.len());
        query.after = Some(last.sequence);
        let more = page.more && !is_before && left > 0;
        timeline = told(timeline, page.events, Timeline::earlier).await?;
        if !more || !timeline.has_orphans() {
            return Ok(timeline);
        }
    }
}

/// Tells the timeline of these events.
async fn told(
    mut timeline: Timeline,
    events: Vec<Event>,
    tell: fn(&mut Timeline, &Event),
) -> Result<Timeline, Refusal> {
    beside(move || {
        for event in &events {
            tell(&mut timeline, event);
        }
        timeline
    })
    .await
}

/// Reads bodies beside the event loop, because there may be many of them.
async fn beside<T: Send + 'static>(
    read: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refusal> {
    tokio::task::spawn_blocking(read).await.map_err(|_| Refusal::Internal)
}
