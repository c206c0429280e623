//! The nouns of what comes in: an event as it is received, and as it is read again.

use std::fmt;

use bytes::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use uuid::Uuid;

use crate::clock::Time;

/// The number that the store gives a configured receiver; stable across restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceId(pub i64);

/// The order of receipt: larger is later. Numbers may be left out, never used twice.
pub type Sequence = i64;

/// What makes two receipts the same event, within one source.
///
/// Each key starts with a byte that names its key space, so that a value from one space cannot
/// stand in for a value from another.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// The key that deduplicates; at most 64 bytes, longer values are hashed by whoever makes it.
    pub key: Vec<u8>,
    /// A second key that means the same event, and that wins where the two disagree: the hash of
    /// the signed bytes, for a delivery that carries no signed id.
    pub alias: Option<Vec<u8>>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", hex::encode(&self.key))?;
        match &self.alias {
            Some(alias) => write!(f, " = {}", hex::encode(alias)),
            None => Ok(()),
        }
    }
}

/// Facts about a row that somebody may want to look into; none of them stops an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub i64);

impl Flags {
    /// The `X-Device-Event-Id` header and the signed `id` differ.
    pub const ID_MISMATCH: Flags = Flags(1);
    /// Authentic, but received outside the tolerance under `stale = "accept"`.
    pub const STALE: Flags = Flags(2);
    /// Another body came under the same identity; it is kept as a variant.
    pub const CONFLICT: Flags = Flags(4);
    /// Nothing could be derived from the payload, or the store refused what was derived.
    pub const UNREADABLE: Flags = Flags(8);
    /// The update has no usable `update_id`, or more than one kind.
    pub const ODD_UPDATE: Flags = Flags(16);

    const NAMES: [(Flags, &'static str); 5] = [
        (Flags::ID_MISMATCH, "id_mismatch"),
        (Flags::STALE, "stale"),
        (Flags::CONFLICT, "conflict"),
        (Flags::UNREADABLE, "unreadable"),
        (Flags::ODD_UPDATE, "odd_update"),
    ];

    /// Whether all of `other` is set.
    pub fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// The names of what is set, as the API shows them.
    pub fn names(self) -> Vec<&'static str> {
        let set = Flags::NAMES.iter().filter(|(flag, _)| self.contains(*flag));
        set.map(|(_, name)| *name).collect()
    }
}

impl std::ops::BitOr for Flags {
    type Output = Flags;
    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

impl std::ops::BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Flags) {
        self.0 |= other.0;
    }
}

/// The attributes that are derived from a payload: CloudEvents names, in the channel's own words.
/// Free of control characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Such as `telegram.message` or `unifyport.message.received`.
    pub event_type: String,
    /// Such as `telegram`, `whatsapp`.
    pub channel: String,
    /// The bot id, or UnifyPort's `account_id`.
    pub account: String,
    /// The sender's own id of the event: the `update_id`, or UnifyPort's event id.
    pub external_id: String,
    /// The CloudEvents `source`, such as `/telegram/7123456789`.
    pub origin: String,
    /// The conversation, such as `telegram/7123456789/chat/-1001234`.
    pub subject: Option<String>,
    /// When it happened, by the sender's word.
    pub time: Option<Time>,
}

/// One thing received, complete but for its place in the inbox.
#[derive(Clone, Debug)]
pub struct NewEvent {
    /// UUIDv7, of the time of receipt.
    pub id: Uuid,
    /// Which receiver took it.
    pub source: SourceId,
    /// What deduplicates it.
    pub identity: Identity,
    /// When it arrived, by this machine's clock.
    pub received_at: Time,
    /// Derived from the payload.
    pub attributes: Attributes,
    /// Facts to look into.
    pub flags: Flags,
    /// Position in the configuration of the secret that verified it; none for Telegram.
    pub secret: Option<i64>,
    /// SHA-256 of `body`.
    pub body_hash: [u8; 32],
    /// The exact bytes.
    pub body: Bytes,
    /// The delivery's own headers as a JSON object of strings; none for Telegram.
    pub headers: Option<String>,
}

/// What an append did with one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    /// It is a new row, and work for every consumer that wants it.
    Stored(Sequence),
    /// The same bytes are there already; counted on their row.
    Duplicate(Sequence),
    /// Other bytes are there already under this identity; these are kept as a variant.
    Conflict(Sequence),
}

/// Percent-encodes an id for a subject or a source: everything but RFC 3986's unreserved
/// characters.
pub fn encode_id(id: &str) -> String {
    const KEPT: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    utf8_percent_encode(id, &KEPT).to_string()
}

/// A fresh UUIDv7 of that time.
pub fn new_id(at: Time) -> Uuid {
    uuid::Builder::from_unix_timestamp_millis(at.millis(), &rand::random()).into_uuid()
}

impl Appended {
    /// The row that now holds it.
    pub fn sequence(self) -> Sequence {
        match self {
            Appended::Stored(seq) | Appended::Duplicate(seq) | Appended::Conflict(seq) => seq,
        }
    }
}

/// An event as it is read from the inbox, with its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Order of receipt.
    pub sequence: Sequence,
    /// UUIDv7.
    pub id: Uuid,
    /// The configured name of the receiver.
    pub source: String,
    /// When it arrived.
    pub received_at: Time,
    /// Derived from the payload.
    pub attributes: Attributes,
    /// The exact bytes.
    pub body: Bytes,
}

/// What `GET /v1/events/{id}` tells beyond the event.
#[derive(Clone, Debug)]
pub struct EventDetail {
    /// The event.
    pub event: Event,
    /// How often it was received, the first time included; variants count.
    pub receipts: i64,
    /// When it was last received.
    pub last_received_at: Time,
    /// Position of the secret that verified the first receipt.
    pub first_secret: Option<i64>,
    /// Facts to look into.
    pub flags: Flags,
    /// The headers of the first receipt, a JSON object.
    pub headers: Option<String>,
    /// Other bodies received under the same identity.
    pub variants: Vec<Variant>,
    /// The work of each consumer that has any with it.
    pub work: Vec<WorkState>,
}

/// Another body that came under the identity of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// When it first arrived.
    pub received_at: Time,
    /// How often it was received.
    pub receipts: i64,
    /// SHA-256 of its bytes.
    pub body_hash: [u8; 32],
    /// The exact bytes.
    pub body: Bytes,
}

/// Where one consumer stands with one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkState {
    /// The consumer's name.
    pub consumer: String,
    /// Such as `ready` or `done`.
    pub state: &'static str,
    /// Claims so far that count.
    pub attempt: i64,
    /// From when it may be claimed, or until when it is leased; none when finished or dead.
    pub due_at: Option<Time>,
    /// When it was finished or became dead.
    pub finished_at: Option<Time>,
    /// The last failed attempts, oldest first.
    pub attempts: Vec<Attempt>,
}

/// A failed attempt at one piece of work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Its number, 1 for the first.
    pub attempt: i64,
    /// When it failed.
    pub at: Time,
    /// What the worker said of it, or that its lease ran out.
    pub error: String,
}

/// Which events to read.
#[derive(Clone, Debug, Default)]
pub struct EventQuery {
    /// Only this channel.
    pub channel: Option<String>,
    /// Only receivers of this configured name.
    pub source: Option<String>,
    /// Only this type.
    pub event_type: Option<String>,
    /// Only this subject.
    pub conversation: Option<String>,
    /// Received at or after.
    pub since: Option<Time>,
    /// Received before.
    pub until: Option<Time>,
    /// Only behind this sequence, in the direction of reading.
    pub after: Option<Sequence>,
    /// Only up to this sequence, itself included.
    pub through: Option<Sequence>,
    /// Oldest first instead of newest first.
    pub ascending: bool,
    /// At most so many.
    pub limit: usize,
    /// At most so many bytes of bodies, but always one event.
    pub max_bytes: usize,
}

/// Some of the events that a query names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// In the query's order.
    pub events: Vec<Event>,
    /// Whether there may be more behind the last.
    pub more: bool,
}
