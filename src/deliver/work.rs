//! Claim and ack.

use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Deserializer, Serialize};

use super::api::{ANSWER_BYTES, Api};
use super::json::{Item, item};
use super::receipts::Receipts;
use crate::clock::Time;
use crate::config::LONGEST_LEASE;
use crate::config::units::{format_duration, parse_duration};
use crate::http::bearer::Principal;
use crate::http::json::Json;
use crate::http::path::Segment;
use crate::http::problem::Refusal;
use crate::work::{ClaimRequest, Delivery};

const MAX: usize = 1000;
const LONGEST_WAIT: Duration = Duration::from_secs(60);

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Claim {
    #[serde(deserialize_with = "whole")]
    max: Option<usize>,
    #[serde(deserialize_with = "duration")]
    lease: Option<Duration>,
    #[serde(deserialize_with = "duration")]
    wait: Option<Duration>,
}

#[derive(Debug, Serialize)]
struct Delivered<'a> {
    receipt: String,
    attempt: i64,
    lease_until: Time,
    #[serde(flatten)]
    item: Item<'a>,
}

#[derive(Debug, Serialize)]
struct Claimed<'a> {
    deliveries: Vec<Delivered<'a>>,
}

pub(super) async fn claim(
    State(api): State<Api>,
    principal: Principal,
    Segment(consumer): Segment,
    Json(claim): Json<Claim>,
) -> Result<Response, Refusal> {
    principal.require_consumer(&consumer)?;
    let max = claim.max.unwrap_or(10);
    if !(1..=MAX).contains(&max) {
        return Err(Refusal::invalid("max", format!("{max} is not within 1 and {MAX}")));
    }
    within_lease(claim.lease)?;
    let wait = claim.wait.unwrap_or_default();
    within("wait", wait, Duration::ZERO, LONGEST_WAIT)?;
    let request = ClaimRequest { max, max_bytes: ANSWER_BYTES, lease: claim.lease };
    let deliveries = api.inbox.claim(&consumer, request, wait).await?;
    let bytes = deliveries.iter().map(|delivery| delivery.event.body.len()).sum();
    super::api::answer(bytes, move || {
        let deliveries = deliveries.iter().map(delivered).collect();
        serde_json::to_vec(&Claimed { deliveries })
    })
    .await
}

fn delivered(delivery: &Delivery) -> Delivered<'_> {
    Delivered {
        receipt: delivery.receipt.to_string(),
        attempt: delivery.attempt,
        lease_until: delivery.lease_until,
        item: item(&delivery.event),
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ack {
    receipts: Receipts,
}

#[derive(Debug, Serialize)]
pub(super) struct Acked {
    done: Vec<String>,
    stale: Vec<String>,
}

pub(super) async fn ack(
    State(api): State<Api>,
    principal: Principal,
    Segment(consumer): Segment,
    Json(Ack { receipts }): Json<Ack>,
) -> Result<Json<Acked>, Refusal> {
    principal.require_consumer(&consumer)?;
    let results = api.inbox.ack(&consumer, receipts.known()).await?;
    let (done, stale) = receipts.partition(results);
    Ok(Json(Acked { done, stale }))
}

/// Refuses a lease that no claim may have.
pub(super) fn within_lease(lease: Option<Duration>) -> Result<(), Refusal> {
    let Some(lease) = lease else { return Ok(()) };
    within("lease", lease, Duration::from_micros(1), LONGEST_LEASE)
}

pub(super) fn within(
    field: &str,
    value: Duration,
    least: Duration,
    most: Duration,
) -> Result<(), Refusal> {
    if value < least {
        return Err(Refusal::invalid(field, "must be longer than zero"));
    }
    if value > most {
        let most = format_duration(most);
        return Err(Refusal::invalid(field, format!("must be at most {most}")));
    }
    Ok(())
}

/// A whole number, which `10.0` is too: JSON has one kind of number, and some writers know no
/// integers.
fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<usize>, D::Error> {
    let Some(number) = Option::<serde_json::Number>::deserialize(deserializer)? else {
        return Ok(None);
    };
    let integer = number.as_u64().and_then(|whole| usize::try_from(whole).ok());
    let float = number.as_f64().filter(|float| float.fract() == 0.0 && (0.0..1e15).contains(float));
    let whole = integer.or(float.map(|float| float as usize));
    whole.map(Some).ok_or_else(|| serde::de::Error::custom(format!("{number} is no whole number")))
}

/// A duration as text, such as `"30s"`.
pub(super) fn duration<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(|text| parse_duration(&text).map_err(serde::de::Error::custom)).transpose()
}
