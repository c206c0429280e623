//! The nouns of the receivers: sources and their state, refused deliveries.

use bytes::Bytes;

use crate::clock::Time;
use crate::event::SourceId;

/// Which kind of receiver a source is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SourceKind {
    /// A bot that is polled.
    Telegram,
    /// A webhook endpoint.
    UnifyPort,
}

impl SourceKind {
    /// As it stands in the store, the API and the command line.
    pub fn name(self) -> &'static str {
        match self {
            SourceKind::Telegram => "telegram",
            SourceKind::UnifyPort => "unifyport",
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<SourceKind> {
        [SourceKind::Telegram, SourceKind::UnifyPort].into_iter().find(|kind| kind.name() == name)
    }
}

/// A receiver that the store knows, configured now or once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its number.
    pub id: SourceId,
    /// Its kind.
    pub kind: SourceKind,
    /// Its configured name, unique within its kind.
    pub name: String,
    /// The bot id of a bot, once known.
    pub account: Option<String>,
    /// When the store first heard of it.
    pub created_at: Time,
    /// The last event's time of receipt, duplicates included.
    pub last_received_at: Option<Time>,
    /// Events that it brought in.
    pub stored: i64,
    /// Receipts of what was there already.
    pub duplicates: i64,
    /// Receipts of other bytes under a known identity.
    pub conflicts: i64,
    /// What it said of itself last.
    pub state: SourceState,
    /// A bot's poller; none before its first lease.
    pub poller: Option<Poller>,
    /// Possible losses that nobody has acknowledged.
    pub open_gaps: i64,
}

/// What the store knows of a bot's poller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Poller {
    /// Highest id of the batch committed last, and one more.
    pub next_offset: Option<i64>,
    /// Until when a poll that went well covers the time.
    pub last_ok_at: Option<Time>,
    /// Updates that wait at Telegram, when it was last asked.
    pub pending: Option<i64>,
    /// Who holds the lease: host and process.
    pub holder: Option<String>,
}

/// The right to poll a bot, for one process at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PollerLease {
    /// Random; every batch compares it with the store's.
    pub token: [u8; 16],
    /// Where the last holder had come to.
    pub poller: Poller,
}

/// What an attempt to take a poller's lease brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leased {
    /// It is ours.
    Mine(PollerLease),
    /// Somebody else has it.
    Held {
        /// Host and process, if known.
        holder: Option<String>,
    },
}

/// What became of binding a bot's name to the id that Telegram tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The name belongs to this id, now or before.
    Same,
    /// The store knows the name under another id.
    OtherAccount(String),
    /// Another name has this id.
    OtherName(String),
}

/// Why something may have been lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapReason {
    /// Ids are missing in the sequence: expired, or taken by somebody else.
    Hole,
    /// The sequence of ids began anew; what was still in the old one is gone.
    Restart,
    /// No poll went well for longer than some kinds of update live.
    Silence,
}

impl GapReason {
    /// As it stands in the store and the API.
    pub fn name(self) -> &'static str {
        match self {
            GapReason::Hole => "hole",
            GapReason::Restart => "restart",
            GapReason::Silence => "silence",
        }
    }

    /// The reason of that name.
    pub fn from_name(name: &str) -> Option<GapReason> {
        let reasons = [GapReason::Hole, GapReason::Restart, GapReason::Silence];
        reasons.into_iter().find(|reason| reason.name() == name)
    }
}

/// A possible loss as it is noticed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewGap {
    /// Why.
    pub reason: GapReason,
    /// First and last id missing, if ids tell.
    pub ids: Option<(i64, i64)>,
    /// Start of the time in question, if known.
    pub from: Option<Time>,
    /// Its end.
    pub to: Time,
    /// A sentence for people.
    pub detail: String,
}

/// A possible loss as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Its number.
    pub id: i64,
    /// The configured name of the bot.
    pub source: String,
    /// What was noticed.
    pub noticed: NewGap,
    /// When an operator took note.
    pub acknowledged_at: Option<Time>,
}

/// What a receiver says of itself, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceState {
    /// One word, such as `ok`, `unauthorized`, `conflict`; empty until first told.
    pub name: String,
    /// One sentence: what is the matter and what to do.
    pub detail: String,
    /// Since when.
    pub since: Option<Time>,
}

/// In which of the two quarantines a refused delivery goes: they cannot evict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QuarantineKind {
    /// Authentic, but outside the tolerance.
    Stale,
    /// Not authentic under any secret, or without a usable timestamp.
    Unverified,
}

impl QuarantineKind {
    /// As it stands in the store.
    pub fn name(self) -> &'static str {
        match self {
            QuarantineKind::Stale => "stale",
            QuarantineKind::Unverified => "unverified",
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<QuarantineKind> {
        let kinds = [QuarantineKind::Stale, QuarantineKind::Unverified];
        kinds.into_iter().find(|kind| kind.name() == name)
    }
}

/// A delivery that was answered 401, kept for a person to look at.
#[derive(Clone, Debug)]
pub struct Refused {
    /// The endpoint.
    pub source: SourceId,
    /// Which quarantine.
    pub kind: QuarantineKind,
    /// Which check failed, in a stable word.
    pub reason: String,
    /// When it arrived.
    pub received_at: Time,
    /// The address that sent it.
    pub peer: String,
    /// All its headers, a JSON object of strings.
    pub headers: String,
    /// The exact bytes.
    pub body: Bytes,
}

impl Refused {
    /// Bytes that it takes of the quarantine's bound.
    pub fn size(&self) -> i64 {
        i64::try_from(self.headers.len() + self.body.len()).unwrap_or(i64::MAX)
    }
}

/// How much each quarantine of each endpoint may hold; the oldest go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuarantineLimits {
    /// Deliveries.
    pub rows: u64,
    /// Bytes of bodies and headers together.
    pub bytes: u64,
}
