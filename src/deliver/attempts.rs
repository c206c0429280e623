//! Nack, extend, and a consumer's dead letters.

use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::api::{ANSWER_BYTES, Api, answer};
use super::json::{DeadLetter, dead_letter};
use super::receipts::Receipts;
use super::work::{duration, within, within_lease};
use crate::http::bearer::Principal;
use crate::http::json::{Json, Query};
use crate::http::path::Segment;
use crate::http::problem::Refusal;
use crate::work::{DeadQuery, Nacked};

const LONGEST_DELAY: Duration = Duration::from_secs(30 * 24 * 3600);
const LIMIT: usize = 50;
const MAX_LIMIT: usize = 500;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Extend {
    receipts: Receipts,
    #[serde(default, deserialize_with = "duration")]
    lease: Option<Duration>,
}

#[derive(Debug, Serialize)]
pub(super) struct Extended {
    extended: Vec<String>,
    stale: Vec<String>,
}

pub(super) async fn extend(
    State(api): State<Api>,
    principal: Principal,
    Segment(consumer): Segment,
    Json(Extend { receipts, lease }): Json<Extend>,
) -> Result<Json<Extended>, Refusal> {
    principal.require_consumer(&consumer)?;
    within_lease(lease)?;
    let results = api.inbox.extend(&consumer, receipts.known(), lease).await?;
    let (extended, stale) = receipts.partition(results);
    Ok(Json(Extended { extended, stale }))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Nack {
    receipts: Receipts,
    #[serde(default, deserialize_with = "duration")]
    delay: Option<Duration>,
    #[serde(default, deserialize_with = "words")]
    error: Option<String>,
    dead: Option<bool>,
}

/// A text for people. Where a worker cut it amid a character, an escaped surrogate lacks its other
/// half: serde refuses that, but work is not to be kept from being given up by it.
fn words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let Some(json) = Option::<Box<RawValue>>::deserialize(deserializer)? else { return Ok(None) };
    match crate::json::lossy(json.get().as_bytes()) {
        Some(Value::String(text)) => Ok(Some(text)),
        _ => Err(serde::de::Error::custom("must be a text")),
    }
}

#[derive(Debug, Default, Serialize)]
pub(super) struct GivenUp {
    requeued: Vec<String>,
    dead: Vec<String>,
    stale: Vec<String>,
}

pub(super) async fn nack(
    State(api): State<Api>,
    principal: Principal,
    Segment(consumer): Segment,
    Json(Nack { receipts, delay, error, dead }): Json<Nack>,
) -> Result<Json<GivenUp>, Refusal> {
    principal.require_consumer(&consumer)?;
    within("delay", delay.unwrap_or_default(), Duration::ZERO, LONGEST_DELAY)?;
    let nack = crate::work::Nack { delay, error, dead: dead.unwrap_or(false) };
    let results = api.inbox.nack(&consumer, receipts.known(), nack).await?;
    let mut given_up = GivenUp::default();
    for (text, result) in receipts.with(results) {
        match result {
            Some(Nacked::Requeued) => given_up.requeued.push(text),
            Some(Nacked::Dead) => given_up.dead.push(text),
            Some(Nacked::Stale) | None => given_up.stale.push(text),
        }
    }
    Ok(Json(given_up))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Params {
    limit: Option<usize>,
    after: Option<String>,
}

#[derive(Debug, Serialize)]
struct Dead<'a> {
    dead: Vec<DeadLetter<'a>>,
    next: Option<String>,
}

pub(super) async fn dead(
    State(api): State<Api>,
    principal: Principal,
    Segment(consumer): Segment,
    Query(params): Query<Params>,
) -> Result<Response, Refusal> {
    principal.require_consumer(&consumer)?;
    let limit = params.limit.unwrap_or(LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Refusal::invalid("limit", format!("{limit} is not within 1 and {MAX_LIMIT}")));
    }
    let after = params.after.map(|after| after.parse()).transpose();
    let after =
        after.map_err(|_| Refusal::invalid("after", "not the next of an earlier answer"))?;
    let query = DeadQuery { after, limit, max_bytes: ANSWER_BYTES / 3 };
    let page = api.inbox.dead(&consumer, query).await?;
    let bytes = page.letters.iter().map(|letter| letter.event.body.len()).sum();
    answer(bytes, move || {
        let last = page.letters.last().filter(|_| page.more);
        let next = last.map(|letter| letter.place.to_string());
        let letters = page.letters.iter();
        let dead = letters.map(|one| dead_letter(&one.event, &one.attempts, one.died_at)).collect();
        serde_json::to_vec(&Dead { dead, next })
    })
    .await
}
