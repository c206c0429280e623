//! Work that is to be due again: replayed by its events, or requeued because it is dead.

use axum::extract::State;
use serde::{Deserialize, Deserializer, Serialize};
use uuid::Uuid;

use super::api::Api;
use crate::clock::Time;
use crate::http::bearer::Principal;
use crate::http::json::Json;
use crate::http::path::Segment;
use crate::http::problem::Refusal;
use crate::replay::Selection;

/// Ids in one request: each batch looks all of them up.
const MAX_IDS: usize = 10_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Replay {
    since: Option<Time>,
    until: Option<Time>,
    channel: Option<String>,
    source: Option<String>,
    #[serde(rename = "type")]
    event_type: Option<String>,
    conversation: Option<String>,
    ids: Option<Vec<Id>>,
}

/// The id of an event.
#[derive(Debug)]
struct Id(Uuid);

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Id, D::Error> {
        let text = String::deserialize(deserializer)?;
        Uuid::try_parse(&text).map(Id).map_err(|_| serde::de::Error::custom("not an event's id"))
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Replayed {
    replayed: usize,
}

pub(super) async fn replay(
    State(api): State<Api>,
    principal: Principal,
    Segment(consumer): Segment,
    Json(replay): Json<Replay>,
) -> Result<Json<Replayed>, Refusal> {
    principal.require_consumer(&consumer)?;
    let selection = Selection {
        dead: false,
        ids: replay.ids.map(ids).transpose()?,
        channel: replay.channel,
        source: replay.source,
        event_type: replay.event_type,
        conversation: replay.conversation,
        since: replay.since,
        until: replay.until,
    };
    let replayed = api.inbox.replay(&consumer, selection).await?;
    Ok(Json(Replayed { replayed }))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Requeue {
    ids: Option<Vec<Id>>,
    all: Option<bool>,
}

#[derive(Debug, Serialize)]
pub(super) struct Requeued {
    requeued: usize,
}

pub(super) async fn requeue(
    State(api): State<Api>,
    principal: Principal,
    Segment(consumer): Segment,
    Json(requeue): Json<Requeue>,
) -> Result<Json<Requeued>, Refusal> {
    principal.require_consumer(&consumer)?;
    let ids = match (requeue.ids, requeue.all) {
        (Some(given), None) => Some(ids(given)?),
        (None, Some(true)) => None,
        (None, Some(false)) => return Err(Refusal::invalid("all", "is true or left out")),
        (Some(_), Some(_)) => return Err(Refusal::invalid("all", "does not go with ids")),
        (None, None) => return Err(Refusal::invalid("ids", "give the ids, or \"all\": true")),
    };
    let selection = Selection { dead: true, ids, ..Selection::default() };
    let requeued = api.inbox.replay(&consumer, selection).await?;
    Ok(Json(Requeued { requeued }))
}

fn ids(ids: Vec<Id>) -> Result<Vec<Uuid>, Refusal> {
    if ids.len() > MAX_IDS {
        return Err(Refusal::invalid("ids", format!("at most {MAX_IDS} at a time")));
    }
    Ok(ids.into_iter().map(|Id(id)| id).collect())
}
