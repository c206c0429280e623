//! `POST /webhooks/unifyport/{name}`: read, judge, commit, answer.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;

use super::endpoint::{Arrival, Verdict, judge};
use super::endpoints::{Active, Endpoints};
use crate::clock::Clock;
use crate::event::NewEvent;
use crate::http::body::{BodyLimits, read_body};
use crate::http::path::Segment;
use crate::http::problem::{Refusal, Unavailable};
use crate::inbox::{Inbox, NotReceived};
use crate::source::QuarantineKind;

/// What the routes work with.
#[derive(Clone)]
pub struct Receiver {
    /// The inbox that deliveries are committed to.
    pub inbox: Arc<Inbox>,
    /// The endpoints of now.
    pub endpoints: Arc<Endpoints>,
    /// Limits of a body.
    pub limits: BodyLimits,
    /// From the end of a delivery to its commit; then the answer is 503.
    pub answer_timeout: Duration,
    /// Tells when a delivery arrived.
    pub clock: Clock,
}

/// The routes of the receiver.
pub fn routes(receiver: Receiver) -> Router {
    Router::new()
        .route("/webhooks/unifyport/{name}", post(deliver))
        .route("/webhooks/unifyport/{name}/", post(deliver))
        .with_state(receiver)
}

async fn deliver(
    State(receiver): State<Receiver>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    Segment(name): Segment,
    headers: HeaderMap,
    body: Body,
) -> Result<StatusCode, Refusal> {
    let active = receiver.endpoints.find(&name, &receiver.inbox).await?;
    let body = read_body(body, &receiver.limits).await?;
    let arrival = Arrival {
        headers,
        body: body.bytes.clone(),
        peer: peer.ip().to_canonical(),
        at: receiver.clock.now(),
    };
    match judge(&active.endpoint, &arrival) {
        Verdict::Accept { event, skew } => commit(&receiver, &active, *event, skew).await,
        Verdict::Refuse { refused, skew } => {
            let state = match refused.kind {
                QuarantineKind::Stale => active.health.stale(&active.endpoint, skew, arrival.at),
                QuarantineKind::Unverified => {
                    active.health.unverified(&active.endpoint, arrival.at)
                }
            };
            receiver.endpoints.tell(&receiver.inbox, &active.endpoint, state);
            tracing::debug!(endpoint = name, reason = refused.reason, "delivery refused");
            receiver.inbox.refuse(*refused);
            Err(Refusal::Unverified)
        }
    }
}

async fn commit(
    receiver: &Receiver,
    active: &Active,
    event: NewEvent,
    skew: i64,
) -> Result<StatusCode, Refusal> {
    let at = event.received_at;
    let committed = tokio::time::timeout(receiver.answer_timeout, receiver.inbox.receive(event));
    match committed.await {
        Ok(Ok(_)) => {
            let state = active.health.accepted(&active.endpoint, skew, at);
            receiver.endpoints.tell(&receiver.inbox, &active.endpoint, state);
            Ok(StatusCode::NO_CONTENT)
        }
        Ok(Err(NotReceived::QueueFull)) => Err(Refusal::Unavailable(Unavailable::QueueFull)),
        Ok(Err(NotReceived::Store(_))) => Err(Refusal::Unavailable(Unavailable::Store)),
        Err(_) => Err(Refusal::Unavailable(Unavailable::AnswerTimeout)),
    }
}
