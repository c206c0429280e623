//! The nouns of what goes out: consumers, claims, receipts and deliveries.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::clock::Time;
use crate::event::{Attempt, Event, Sequence};

/// The failed attempts of one piece of work that are kept for people.
pub const ATTEMPTS_KEPT: i64 = 10;

/// The error kept for an attempt that nobody reported on.
pub const LEASE_RAN_OUT: &str = "the lease ran out";

/// The error kept for an attempt that was given up without a word.
pub const NACKED: &str = "nacked";

/// At most so many bytes of an error are kept.
pub const ERROR_BYTES: usize = 4096;

/// In which order a consumer's work goes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ordering {
    /// Events of one conversation in order of receipt, one claimer at a time.
    Conversation,
    /// No order between events.
    None,
}

/// An independent reader of the one inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consumer {
    /// Unique.
    pub name: String,
    /// Order of its work.
    pub ordering: Ordering,
    /// How long a claim holds unless it says otherwise.
    pub lease: Duration,
    /// The attempt with this number is the last.
    pub max_attempts: i64,
    /// Shortest wait after a failed attempt.
    pub backoff_first: Duration,
    /// Longest wait after a failed attempt.
    pub backoff_max: Duration,
    /// Which events are its work.
    pub filter: Filter,
}

/// Which events are a consumer's work: each list, unless empty, must hold the event's value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Channels, such as `telegram`.
    pub channels: Vec<String>,
    /// Configured names of receivers.
    pub sources: Vec<String>,
    /// Event types, such as `telegram.message`.
    pub types: Vec<String>,
}

/// What a claimer asks for.
#[derive(Clone, Debug)]
pub struct ClaimRequest {
    /// At most so many deliveries.
    pub max: usize,
    /// At most so many bytes of answer, but always one delivery if one is due.
    pub max_bytes: usize,
    /// How long the claim holds; the consumer's own lease if none.
    pub lease: Option<Duration>,
}

/// Names one claim of one event: opaque to the worker, fresh for every claim.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Receipt {
    /// The event claimed.
    pub sequence: Sequence,
    /// Random, the same for all deliveries of one claim.
    pub token: [u8; 16],
}

impl Ordering {
    /// As it stands in the configuration and the store.
    pub fn name(self) -> &'static str {
        match self {
            Ordering::Conversation => "conversation",
            Ordering::None => "none",
        }
    }

    /// The ordering of that name; the stricter one for a name that the store cannot hold.
    pub fn from_name(name: &str) -> Ordering {
        if name == Ordering::None.name() { Ordering::None } else { Ordering::Conversation }
    }
}

/// The names of a work row's states, by number.
pub const STATES: [&str; 4] = ["ready", "leased", "done", "dead"];

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = [0; 24];
        bytes[..8].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[8..].copy_from_slice(&self.token);
        f.write_str(&URL_SAFE_NO_PAD.encode(bytes))
    }
}

impl fmt::Debug for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is no receipt that this program ever gave.
#[derive(Debug, thiserror::Error)]
#[error("not a receipt")]
pub struct NotAReceipt;

impl FromStr for Receipt {
    type Err = NotAReceipt;
    fn from_str(text: &str) -> Result<Receipt, NotAReceipt> {
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| NotAReceipt)?;
        let (sequence, token) = bytes.split_first_chunk::<8>().ok_or(NotAReceipt)?;
        let token = token.try_into().map_err(|_| NotAReceipt)?;
        Ok(Receipt { sequence: Sequence::from_be_bytes(*sequence), token })
    }
}

/// One event handed to one claimer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// What to ack with.
    pub receipt: Receipt,
    /// 1 for the first claim.
    pub attempt: i64,
    /// Until when nobody else gets it.
    pub lease_until: Time,
    /// The event.
    pub event: Event,
}

/// How attempts are given up.
#[derive(Clone, Debug, Default)]
pub struct Nack {
    /// How long until the work is due again; the consumer's backoff decides if none.
    pub delay: Option<Duration>,
    /// What went wrong, for people.
    pub error: Option<String>,
    /// Whether no further attempt is to be made.
    pub dead: bool,
}

/// What became of work that was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nacked {
    /// It will be due again.
    Requeued,
    /// It will not be handed out any more.
    Dead,
    /// The receipt does not hold it, and nothing was changed.
    Stale,
}

/// Which dead letters to read, those that stand first in the order of work first.
#[derive(Clone, Copy, Debug)]
pub struct DeadQuery {
    /// Only behind this place.
    pub after: Option<i64>,
    /// At most so many.
    pub limit: usize,
    /// At most so many bytes of bodies, but always one.
    pub max_bytes: usize,
}

/// Work that no attempt finished, and none will until somebody asks for it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// The event.
    pub event: Event,
    /// Its place in the order of work.
    pub place: i64,
    /// When it became dead.
    pub died_at: Time,
    /// The last failed attempts, oldest first.
    pub attempts: Vec<Attempt>,
}

/// Some of a consumer's dead letters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadPage {
    /// In the order of work.
    pub letters: Vec<DeadLetter>,
    /// Whether there may be more behind the last.
    pub more: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_survives_being_written_and_read() {
        let receipt = Receipt { sequence: 42, token: [7; 16] };
        assert_eq!(receipt.to_string().parse::<Receipt>().unwrap(), receipt);
        for text in ["", "AAAA", "not base64!", &"A".repeat(33)] {
            assert!(text.parse::<Receipt>().is_err(), "{text}");
        }
    }
}
