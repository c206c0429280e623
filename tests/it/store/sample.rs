//! Events for tests.

use bytes::Bytes;
use inboxd::clock::Time;
use inboxd::event::{Attributes, Event, EventQuery, Flags, Identity, NewEvent, Sequence, SourceId};
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// When the events of tests arrive unless they say otherwise.
pub(crate) const ARRIVAL: Time = Time::from_micros(1_780_000_000_123_456);

/// An event that is known by its name: key, external id and body are made of it. It belongs to no
/// conversation.
pub(crate) fn sample(source: SourceId, name: &str) -> NewEvent {
    let body = Bytes::from(format!(r#"{{"id":"{name}"}}"#));
    NewEvent {
        id: Uuid::now_v7(),
        source,
        identity: Identity { key: [b"h", name.as_bytes()].concat(), alias: None },
        received_at: ARRIVAL,
        attributes: Attributes {
            event_type: "unifyport.message.received".to_owned(),
            channel: "whatsapp".to_owned(),
            account: "acc_1".to_owned(),
            external_id: name.to_owned(),
            origin: "/unifyport/main/acc_1".to_owned(),
            subject: None,
            time: Some(Time::from_micros(1_779_999_999_000_001)),
        },
        flags: Flags::default(),
        secret: Some(1),
        body_hash: Sha256::digest(&body).into(),
        body,
        headers: Some(r#"{"x-device-event-id":"evt_1"}"#.to_owned()),
    }
}

/// Small changes to an event.
pub(crate) trait Vary: Sized {
    /// In this conversation.
    fn in_chat(self, chat: &str) -> Self;
    /// With these bytes.
    fn body(self, body: impl Into<Bytes>) -> Self;
    /// With this second key.
    fn alias(self, alias: &str) -> Self;
    /// With this first key.
    fn key(self, key: &str) -> Self;
    /// Of this type.
    fn of_type(self, event_type: &str) -> Self;
    /// Of this channel.
    fn channel(self, channel: &str) -> Self;
    /// Received so many seconds after [`ARRIVAL`].
    fn later(self, seconds: i64) -> Self;
    /// Received again: with another public id.
    fn again(&self) -> Self;
}

impl Vary for NewEvent {
    fn in_chat(mut self, chat: &str) -> NewEvent {
        self.attributes.subject = Some(format!("unifyport/main/acc_1/conversation/{chat}"));
        self
    }

    fn body(mut self, body: impl Into<Bytes>) -> NewEvent {
        self.body = body.into();
        self.body_hash = Sha256::digest(&self.body).into();
        self
    }

    fn alias(mut self, alias: &str) -> NewEvent {
        self.identity.alias = Some([b"s", alias.as_bytes()].concat());
        self
    }

    fn key(mut self, key: &str) -> NewEvent {
        self.identity.key = [b"h", key.as_bytes()].concat();
        self
    }

    fn of_type(mut self, event_type: &str) -> NewEvent {
        self.attributes.event_type = event_type.to_owned();
        self
    }

    fn channel(mut self, channel: &str) -> NewEvent {
        self.attributes.channel = channel.to_owned();
        self
    }

    fn later(mut self, seconds: i64) -> NewEvent {
        self.received_at = Time::from_micros(ARRIVAL.micros() + seconds * 1_000_000);
        self
    }

    fn again(&self) -> NewEvent {
        NewEvent { id: Uuid::now_v7(), ..self.clone() }
    }
}

/// A query of all there is, newest first.
pub(crate) fn all() -> EventQuery {
    EventQuery { limit: usize::MAX, max_bytes: usize::MAX, ..EventQuery::default() }
}

/// The event as it must be read again.
pub(crate) fn as_read(event: &NewEvent, sequence: Sequence, source: &str) -> Event {
    Event {
        sequence,
        id: event.id,
        source: source.to_owned(),
        received_at: event.received_at,
        attributes: event.attributes.clone(),
        body: event.body.clone(),
    }
}
