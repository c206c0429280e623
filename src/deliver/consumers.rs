//! `GET /v1/consumers`: how each consumer stands, with its settings.

use axum::extract::State;
use serde::Serialize;

use super::api::Api;
use crate::clock::Time;
use crate::config::units::format_duration;
use crate::consumer::ConsumerState;
use crate::http::bearer::Principal;
use crate::http::json::{Json, NoQuery};
use crate::http::path::Segment;
use crate::http::problem::Refusal;

/// A consumer as the API and the command line show it. Durations are texts as in the configuration.
#[derive(Debug, Serialize)]
pub struct Shown {
    name: String,
    ready: i64,
    delayed: i64,
    leased: i64,
    done: i64,
    dead: i64,
    oldest_ready_seconds: Option<f64>,
    paused: bool,
    filling: bool,
    ordering: &'static str,
    lease: String,
    max_attempts: i64,
    backoff: Backoff,
    filter: Filter,
    created_at: Time,
    last_claim_at: Option<Time>,
    warning: Option<String>,
}

#[derive(Debug, Serialize)]
struct Backoff {
    first: String,
    max: String,
}

#[derive(Debug, Serialize)]
struct Filter {
    channels: Vec<String>,
    sources: Vec<String>,
    types: Vec<String>,
}

/// All consumers that may be seen.
#[derive(Debug, Serialize)]
pub struct List {
    consumers: Vec<Shown>,
}

/// The consumer as people see it.
pub fn shown(state: ConsumerState) -> Shown {
    let warning = state.warning();
    let consumer = state.consumer;
    Shown {
        name: consumer.name,
        ready: state.ready,
        delayed: state.delayed,
        leased: state.leased,
        done: state.done,
        dead: state.dead,
        oldest_ready_seconds: state.oldest_ready.map(|oldest| oldest.as_secs_f64()),
        paused: state.paused,
        filling: state.filling,
        ordering: consumer.ordering.name(),
        lease: format_duration(consumer.lease),
        max_attempts: consumer.max_attempts,
        backoff: Backoff {
            first: format_duration(consumer.backoff_first),
            max: format_duration(consumer.backoff_max),
        },
        filter: Filter {
            channels: consumer.filter.channels,
            sources: consumer.filter.sources,
            types: consumer.filter.types,
        },
        created_at: state.created_at,
        last_claim_at: state.last_claim_at,
        warning,
    }
}

/// The consumers as people see them.
pub fn shown_list(states: Vec<ConsumerState>) -> List {
    List { consumers: states.into_iter().map(shown).collect() }
}

/// A worker sees those that it may act for.
pub(super) async fn list(
    State(api): State<Api>,
    principal: Principal,
    _: NoQuery,
) -> Result<Json<List>, Refusal> {
    let mut states = api.inbox.consumer_states().await?;
    states.retain(|state| principal.require_consumer(&state.consumer.name).is_ok());
    Ok(Json(shown_list(states)))
}

pub(super) async fn one(
    State(api): State<Api>,
    principal: Principal,
    Segment(consumer): Segment,
    _: NoQuery,
) -> Result<Json<Shown>, Refusal> {
    principal.require_consumer(&consumer)?;
    Ok(Json(shown(api.inbox.consumer_state(&consumer).await?)))
}
