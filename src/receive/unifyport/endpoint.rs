//! One webhook endpoint, and its judgement of a delivery: a pure function of what arrived and when.

use std::net::IpAddr;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName};
use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::signature::{self, SignatureError};
use super::{envelope, identity, timestamp};
use crate::clock::{Time, micros};
use crate::config::Secret;
use crate::event::{Attributes, Flags, NewEvent, SourceId, encode_id, new_id};
use crate::source::{QuarantineKind, Refused};

/// Header names of UnifyPort's published reference "Webhook delivery and event semantics".
const EVENT_ID: HeaderName = HeaderName::from_static("x-device-event-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("x-device-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("x-device-signature");

/// Headers that carry somebody's credentials are not kept.
const NEVER_KEPT: [&str; 3] = ["authorization", "cookie", "proxy-authorization"];

/// An endpoint as it is configured now.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Its configured name.
    pub name: String,
    /// Its number in the store.
    pub source: SourceId,
    /// Any of them verifies.
    pub secrets: Vec<Secret>,
    /// Allowed distance of the timestamp from now, both ways.
    pub tolerance: Duration,
    /// How far from now an authentic delivery is stored all the same; none rejects it.
    pub accept_stale: Option<Duration>,
}

/// A delivery as it arrived.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// All headers.
    pub headers: HeaderMap,
    /// The exact bytes.
    pub body: Bytes,
    /// Who sent it.
    pub peer: IpAddr,
    /// When it was there whole, by our clock; everything is judged by this one reading.
    pub at: Time,
}

/// What becomes of a delivery.
#[derive(Debug)]
pub enum Verdict {
    /// Authentic and of now: to be committed.
    Accept {
        /// What to commit.
        event: Box<NewEvent>,
        /// How far its timestamp is behind our clock, in microseconds; negative if ahead.
        skew: i64,
    },
    /// To be answered 401 and kept in quarantine.
    Refuse {
        /// What to keep.
        refused: Box<Refused>,
        /// How far its timestamp is behind our clock, if it is authentic and has one.
        skew: Option<i64>,
    },
}

/// Judges `arrival`: signature, then time, then identity. The body is looked into only once it is
/// known to be authentic.
#[must_use]
pub fn judge(endpoint: &Endpoint, arrival: &Arrival) -> Verdict {
    let refuse = |kind, reason: &str, skew| Verdict::Refuse {
        refused: Box::new(refused(endpoint, arrival, kind, reason)),
        skew,
    };
    let unverified = |reason| refuse(QuarantineKind::Unverified, reason, None);
    let headers = &arrival.headers;
    let signature = match only(headers, &SIGNATURE, "signature missing", "signature repeated") {
        Ok(signature) => signature,
        Err(reason) => return unverified(reason),
    };
    let signed_at = match only(headers, &TIMESTAMP, "timestamp missing", "timestamp repeated") {
        Ok(timestamp) => timestamp,
        Err(reason) => return unverified(reason),
    };
    let secrets = endpoint.secrets.iter().map(|secret| secret.expose().as_bytes());
    let secret = match signature::verify(secrets, signed_at, &arrival.body, signature) {
        Ok(secret) => secret,
        Err(SignatureError::Malformed) => return unverified("signature malformed"),
        Err(_) => return unverified("signature matches no secret"),
    };
    let Ok(time) = timestamp::parse(signed_at) else {
        return refuse(QuarantineKind::Stale, "timestamp is not a time", None);
    };
    let within = |distance| timestamp::within(time, arrival.at.micros(), micros(distance));
    let skew = arrival.at.micros().saturating_sub(time);
    let stale = !within(endpoint.tolerance);
    if stale && !endpoint.accept_stale.is_some_and(within) {
        return refuse(QuarantineKind::Stale, "timestamp outside the tolerance", Some(skew));
    }
    let mut event = event(endpoint, arrival, signed_at, secret);
    if stale {
        event.flags |= Flags::STALE;
    }
    Verdict::Accept { event: Box::new(event), skew }
}

fn event(endpoint: &Endpoint, arrival: &Arrival, signed_at: &[u8], secret: usize) -> NewEvent {
    let body_hash = Sha256::digest(&arrival.body).into();
    let header = arrival.headers.get(&EVENT_ID).map(|value| value.as_bytes());
    let named = identity::name(header, signed_at, &arrival.body, &body_hash);
    let envelope = envelope::read(&arrival.body);
    let mut flags = Flags::default();
    if named.mismatch {
        flags |= Flags::ID_MISMATCH;
    }
    if envelope.event_type.is_none() {
        flags |= Flags::UNREADABLE;
    }
    let account = envelope.account_id.as_deref().unwrap_or("-");
    let place = format!("unifyport/{}/{}", endpoint.name, encode_id(account));
    let subject = envelope.conversation_id.as_deref();
    let attributes = Attributes {
        event_type: format!("unifyport.{}", envelope.event_type.as_deref().unwrap_or("unknown")),
        channel: envelope.provider.unwrap_or_else(|| "unifyport".to_owned()),
        account: account.to_owned(),
        external_id: named.external_id,
        origin: format!("/{place}"),
        subject: subject.map(|id| format!("{place}/conversation/{}", encode_id(id))),
        time: envelope.occurred_at_us.map(Time::from_micros),
    };
    NewEvent {
        id: new_id(arrival.at),
        source: endpoint.source,
        identity: named.identity,
        received_at: arrival.at,
        attributes,
        flags,
        secret: i64::try_from(secret).ok(),
        body_hash,
        body: arrival.body.clone(),
        headers: Some(headers_json(&arrival.headers, |name| {
            name.starts_with("x-device-") || name == "content-type"
        })),
    }
}

fn refused(endpoint: &Endpoint, arrival: &Arrival, kind: QuarantineKind, reason: &str) -> Refused {
    Refused {
        source: endpoint.source,
        kind,
        reason: reason.to_owned(),
        received_at: arrival.at,
        peer: arrival.peer.to_string(),
        headers: headers_json(&arrival.headers, |name| !NEVER_KEPT.contains(&name)),
        body: arrival.body.clone(),
    }
}

/// The value of a header that must be there once.
fn only<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
    missing: &'static str,
    repeated: &'static str,
) -> Result<&'a [u8], &'static str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().ok_or(missing)?;
    if values.next().is_some() { Err(repeated) } else { Ok(value.as_bytes()) }
}

/// Headers as a JSON object of strings, what is not UTF-8 replaced, repeated ones joined.
fn headers_json(headers: &HeaderMap, keep: impl Fn(&str) -> bool) -> String {
    let mut kept = serde_json::Map::new();
    for name in headers.keys().filter(|name| keep(name.as_str())) {
        let values = headers.get_all(name).iter();
        let values: Vec<_> =
            values.map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
        kept.insert(name.as_str().to_owned(), values.join(", ").into());
    }
    serde_json::Value::Object(kept).to_string()
}
