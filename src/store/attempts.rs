//! How attempts end other than well: nack, extend, and what became dead.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use async_trait::async_trait;

use super::Result;
use super::due::Due;
use crate::clock::Time;
use crate::event::{Attempt, Event, Sequence};
use crate::retry::Backoff;
use crate::work::{DeadLetter, DeadPage, DeadQuery, ERROR_BYTES, NACKED, Nack, Nacked, Receipt};

/// How attempts end other than well: nack, extend, and what became dead.
///
/// A receipt holds its work until the work is finished, given back or claimed again; so one whose
/// lease ran out is still good while nobody else has the work.
#[async_trait]
pub trait Attempts {
    /// Lets the claims of these receipts hold from now on for `lease`, or for the consumer's own;
    /// tells of each whether it still held its work. What is not held stays as it is.
    async fn extend(
        &self,
        consumer: &str,
        receipts: Vec<Receipt>,
        lease: Option<Duration>,
    ) -> Result<Vec<bool>>;

    /// Gives up what these receipts hold, each as a failed attempt; the answer has one entry for each
    /// receipt, in order. The work is due again after the delay or the consumer's backoff, or is
    /// dead after its last attempt. What stands behind it in its conversation under the same claim,
    /// and is not given up by this very request, goes back with it: due now, and not counted.
    async fn nack(&self, consumer: &str, receipts: Vec<Receipt>, nack: Nack)
    -> Result<Vec<Nacked>>;

    /// Reads a page of a consumer's dead work, in the order of work.
    async fn dead(&self, consumer: &str, query: DeadQuery) -> Result<DeadPage>;
}

/// Work that a receipt holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) receipt: Receipt,
    pub(super) lane: Option<i64>,
    pub(super) pos: i64,
    pub(super) attempt: i64,
}

/// Reads a row of event, receipt, lane, place and attempt.
macro_rules! held {
    ($row:expr) => {
        $crate::store::attempts::Held {
            receipt: $crate::work::Receipt {
                sequence: $row.get(0),
                token: $row.get::<Vec<u8>, _>(1).try_into().unwrap_or_default(),
            },
            lane: $row.get(2),
            pos: $row.get(3),
            attempt: $row.get(4),
        }
    };
}
pub(super) use held;

/// Work whose attempt failed, and what is to become of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failed {
    pub(super) event: Sequence,
    pub(super) lane: Option<i64>,
    pos: i64,
    /// When it is due again; none if it is dead.
    pub(super) due_at: Option<i64>,
}

/// What becomes of work that is nacked now.
pub(super) fn nacked(
    held: &[Held],
    nack: &Nack,
    max_attempts: i64,
    backoff: Backoff,
    now: Time,
) -> Vec<Failed> {
    let failed = |held: &Held| {
        let wait = nack.delay.unwrap_or_else(|| {
            let attempt = u32::try_from(held.attempt).unwrap_or(u32::MAX);
            backoff.jittered(attempt, rand::random())
        });
        let is_last = nack.dead || held.attempt >= max_attempts;
        Failed {
            event: held.receipt.sequence,
            lane: held.lane,
            pos: held.pos,
            due_at: (!is_last).then_some((now + wait).micros()),
        }
    };
    held.iter().map(failed).collect()
}

/// What becomes of heads whose leases ran out: they are due as they have been since.
pub(super) fn expired(heads: &[Due], max_attempts: i64) -> Vec<Failed> {
    let failed = |head: &Due| Failed {
        event: head.event,
        lane: head.lane,
        pos: head.pos,
        due_at: (head.attempt < max_attempts).then_some(head.due_at),
    };
    heads.iter().map(failed).collect()
}

/// The first that failed of each lane: what is leased behind it goes back.
pub(super) fn firsts(failed: &[Failed]) -> BTreeMap<i64, i64> {
    let mut firsts = BTreeMap::new();
    for failed in failed {
        if let Some(lane) = failed.lane {
            let first = firsts.entry(lane).or_insert(failed.pos);
            *first = failed.pos.min(*first);
        }
    }
    firsts
}

/// What became of each receipt.
pub(super) fn answer(receipts: &[Receipt], held: &[Held], failed: &[Failed]) -> Vec<Nacked> {
    let of_due = |due_at: Option<i64>| due_at.map_or(Nacked::Dead, |_| Nacked::Requeued);
    let ends: HashMap<Receipt, Nacked> =
        held.iter().zip(failed).map(|(held, end)| (held.receipt, of_due(end.due_at))).collect();
    receipts.iter().map(|one| ends.get(one).copied().unwrap_or(Nacked::Stale)).collect()
}

/// A page of dead letters, given event, place and time of each, the events, and their attempts.
pub(super) fn dead_page(
    found: impl Iterator<Item = (Sequence, i64, Time)>,
    events: Vec<Event>,
    attempts: impl Iterator<Item = (Sequence, Attempt)>,
    more: bool,
) -> DeadPage {
    let mut events: HashMap<Sequence, Event> =
        events.into_iter().map(|event| (event.sequence, event)).collect();
    let mut tried: HashMap<Sequence, Vec<Attempt>> = HashMap::new();
    for (event, attempt) in attempts {
        tried.entry(event).or_default().push(attempt);
    }
    let letters = found.filter_map(|(event, place, died_at)| {
        let attempts = tried.remove(&event).unwrap_or_default();
        Some(DeadLetter { event: events.remove(&event)?, place, died_at, attempts })
    });
    DeadPage { letters: letters.collect(), more }
}

/// Each of these once, in the order of events.
pub(super) fn distinct(receipts: &[Receipt]) -> Vec<Receipt> {
    let mut receipts = receipts.to_vec();
    receipts.sort_unstable();
    receipts.dedup();
    receipts
}

/// As much of what a worker says as is kept, in what every database takes as text.
pub(super) fn kept(error: Option<&str>) -> String {
    let error = error.filter(|error| !error.is_empty()).unwrap_or(NACKED).replace('\0', "\u{fffd}");
    error[..error.floor_char_boundary(ERROR_BYTES)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_kept_up_to_its_bound() {
        assert_eq!(kept(None), NACKED);
        assert_eq!(kept(Some("")), NACKED);
        assert_eq!(kept(Some("a\0b")), "a\u{fffd}b");
        let long = format!("a{}", "é".repeat(ERROR_BYTES));
        assert_eq!(kept(Some(&long)).len(), ERROR_BYTES - 1);
        assert_eq!(kept(Some(&"\0".repeat(ERROR_BYTES))).len(), ERROR_BYTES / 3 * 3);
    }
}
