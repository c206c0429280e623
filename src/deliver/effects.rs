//! What a worker does outside, recorded around the act: begin, finish, abandon, and a list.

use axum::extract::State as With;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::api::Api;
use crate::clock::Time;
use crate::effect::{self, Begun, EffectQuery, Key, Place, State, Token};
use crate::http::bearer::Principal;
use crate::http::json::{Json, Query};
use crate::http::path::Segment;
use crate::http::problem::Refusal;
use crate::work::Receipt;

const LIMIT: usize = 50;
const MAX_LIMIT: usize = 500;

/// Stands for a text that we never gave: like any receipt that is past, it holds no work.
const NOBODYS: Receipt = Receipt { sequence: 0, token: [0; 16] };

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Begin {
    key: Key,
    receipt: String,
}

#[derive(Debug, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
enum Told {
    Begun { token: String },
    Running,
    InDoubt { begun_at: Time, token: String },
    Finished { result: Option<Box<RawValue>> },
}

pub(super) async fn begin(
    With(api): With<Api>,
    principal: Principal,
    Segment(consumer): Segment,
    Json(begin): Json<Begin>,
) -> Result<Response, Refusal> {
    principal.require_consumer(&consumer)?;
    let receipt = begin.receipt.parse().unwrap_or(NOBODYS);
    let (status, told) = match api.inbox.begin_effect(&consumer, begin.key, receipt).await? {
        Begun::Begun(token) => (StatusCode::CREATED, Told::Begun { token: token.to_string() }),
        Begun::Again(token) => (StatusCode::OK, Told::Begun { token: token.to_string() }),
        Begun::Running => (StatusCode::OK, Told::Running),
        Begun::InDoubt { begun_at, token } => {
            (StatusCode::OK, Told::InDoubt { begun_at, token: token.to_string() })
        }
        Begun::Finished(result) => (StatusCode::OK, Told::Finished { result: recorded(result)? }),
        Begun::Stale => return Err(Refusal::StaleReceipt),
    };
    Ok((status, Json(told)).into_response())
}

/// A result as it was sent, which was JSON then.
fn recorded(result: Option<Vec<u8>>) -> Result<Option<Box<RawValue>>, Refusal> {
    let Some(result) = result else { return Ok(None) };
    let text = String::from_utf8(result).map_err(|_| Refusal::Internal)?;
    RawValue::from_string(text).map(Some).map_err(|_| Refusal::Internal)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Finish {
    key: Key,
    token: String,
    /// Kept as the text that was sent: digits and the order of keys are the worker's own.
    result: Option<Box<RawValue>>,
}

pub(super) async fn finish(
    With(api): With<Api>,
    principal: Principal,
    Segment(consumer): Segment,
    Json(finish): Json<Finish>,
) -> Result<Json<Done>, Refusal> {
    principal.require_consumer(&consumer)?;
    let token = token(&finish.token);
    let result = finish.result.map(|result| result.get().as_bytes().to_vec());
    let finished = api.inbox.finish_effect(&consumer, finish.key, token, result).await?;
    done(finished, "finished")
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Abandon {
    key: Key,
    token: String,
}

pub(super) async fn abandon(
    With(api): With<Api>,
    principal: Principal,
    Segment(consumer): Segment,
    Json(abandon): Json<Abandon>,
) -> Result<Json<Done>, Refusal> {
    principal.require_consumer(&consumer)?;
    let token = token(&abandon.token);
    let abandoned = api.inbox.abandon_effect(&consumer, abandon.key, token).await?;
    done(abandoned, "abandoned")
}

#[derive(Debug, Serialize)]
pub(super) struct Done {
    state: &'static str,
}

fn done(done: bool, state: &'static str) -> Result<Json<Done>, Refusal> {
    if done { Ok(Json(Done { state })) } else { Err(Refusal::StaleToken) }
}

/// For a text that we never gave, one that was not given either.
fn token(text: &str) -> Token {
    text.parse().unwrap_or_else(|_| Token::fresh())
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Params {
    state: Option<State>,
    limit: Option<usize>,
    after: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct Effects {
    effects: Vec<Effect>,
    next: Option<String>,
}

#[derive(Debug, Serialize)]
struct Effect {
    key: Key,
    event_id: Option<String>,
    begun_at: Time,
    state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_at: Option<Time>,
}

pub(super) async fn list(
    With(api): With<Api>,
    principal: Principal,
    Segment(consumer): Segment,
    Query(params): Query<Params>,
) -> Result<Json<Effects>, Refusal> {
    principal.require_consumer(&consumer)?;
    let limit = params.limit.unwrap_or(LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Refusal::invalid("limit", format!("{limit} is not within 1 and {MAX_LIMIT}")));
    }
    let after = params.after.map(|after| after.parse::<Place>()).transpose();
    let after =
        after.map_err(|_| Refusal::invalid("after", "not the next of an earlier answer"))?;
    let query = EffectQuery { state: params.state, after, limit };
    let page = api.inbox.effects(&consumer, query).await?;
    let last = page.effects.last().filter(|_| page.more);
    let next = last.map(|effect| effect.place().to_string());
    Ok(Json(Effects { effects: page.effects.into_iter().map(shown).collect(), next }))
}

fn shown(effect: effect::Effect) -> Effect {
    let effect::Effect { key, event_id, begun_at, state, finished_at } = effect;
    Effect { key, event_id: event_id.map(|id| id.to_string()), begun_at, state, finished_at }
}
