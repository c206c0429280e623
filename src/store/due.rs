//! What a claim takes, decided outside the database so that both decide the same.

use std::collections::HashMap;

use crate::clock::Time;
use crate::event::{Event, Sequence};
use crate::work::{ClaimRequest, Delivery, Receipt};

/// Looks that one transaction of a claim takes at most, where each finds only work that dies of it: what
/// a large claim left behind is much for small ones, and others wait for the same rows or the writer.
pub(super) const LOOKS: usize = 50;

/// Unfinished work that is, or stands behind, something due.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    pub(super) lane: Option<i64>,
    pub(super) event: Sequence,
    pub(super) due_at: i64,
    pub(super) pos: i64,
    pub(super) leased: bool,
    pub(super) attempt: i64,
    /// Bytes of the body.
    pub(super) size: i64,
}

/// What a claim leased, without the events.
#[derive(Debug, Default)]
pub(super) struct Claimed {
    pub(super) token: [u8; 16],
    pub(super) lease_until: Time,
    /// Place, event and attempt, in order of receipt.
    pub(super) work: Vec<(i64, Sequence, i64)>,
}

impl Claimed {
    /// The claim of `chosen` under a fresh token.
    pub(super) fn new(chosen: &[Due], lease_until: Time) -> Claimed {
        let work = chosen.iter().map(|due| (due.pos, due.event, due.attempt + 1));
        let mut work: Vec<_> = work.collect();
        work.sort_unstable();
        Claimed { token: rand::random(), lease_until, work }
    }

    /// The deliveries, given the events in any order.
    pub(super) fn deliveries(&self, events: impl Iterator<Item = Event>) -> Vec<Delivery> {
        let mut events: HashMap<Sequence, Event> =
            events.map(|event| (event.sequence, event)).collect();
        let delivery = |(_, sequence, attempt): &(i64, Sequence, i64)| {
            let event = events.remove(sequence)?;
            let receipt = Receipt { sequence: *sequence, token: self.token };
            Some(Delivery { receipt, attempt: *attempt, lease_until: self.lease_until, event })
        };
        self.work.iter().filter_map(delivery).collect()
    }
}

/// Reads a row of lane, event, due time, place, state, attempt and size.
macro_rules! due {
    ($row:expr) => {
        $crate::store::due::Due {
            lane: $row.get(0),
            event: $row.get(1),
            due_at: $row.get(2),
            pos: $row.get(3),
            leased: $row.get::<i64, _>(4) == 1,
            attempt: $row.get(5),
            size: $row.get(6),
        }
    };
}
pub(super) use due;

/// Heads of lanes and work without one, oldest due first, at most `max`.
pub(super) fn merge(mut heads: Vec<Due>, max: usize) -> Vec<Due> {
    heads.sort_unstable_by_key(|head| (head.due_at, head.pos));
    heads.truncate(max);
    heads
}

/// The work behind each head as far as it is due without a break, given what the lanes hold. What
/// is leased behind a head whose lease ran out comes back with it and has not counted, so that
/// `leased` is left only where a claim is to be given up.
pub(super) fn follow(heads: &[Due], lanes: impl Iterator<Item = Due>, now: Time) -> Vec<Due> {
    let mut by_lane: HashMap<i64, Vec<Due>> = HashMap::new();
    for due in lanes {
        by_lane.entry(due.lane.unwrap_or_default()).or_default().push(due);
    }
    let mut all = Vec::new();
    for head in heads {
        let Some(lane) = head.lane else {
            all.push(*head);
            continue;
        };
        let mut behind = by_lane.remove(&lane).unwrap_or_default();
        behind.sort_unstable_by_key(|due| due.pos);
        let expired = behind.first().is_some_and(|first| first.leased);
        for (place, mut due) in behind.into_iter().enumerate() {
            if expired && due.leased && place > 0 {
                due.leased = false;
                due.attempt -= 1;
            } else if due.due_at > now.micros() {
                break;
            }
            all.push(due);
        }
    }
    all
}

/// As much of `due`, from its start, as the request has room for, but always one.
pub(super) fn select(due: Vec<Due>, request: &ClaimRequest) -> Vec<Due> {
    let mut bytes = 0usize;
    let mut chosen = Vec::new();
    for due in due.into_iter().take(request.max) {
        bytes = bytes.saturating_add(answer_bytes(due.size));
        if bytes > request.max_bytes && !chosen.is_empty() {
            break;
        }
        chosen.push(due);
    }
    chosen
}

/// What of it is leased, which is over, since it is due.
pub(super) fn expired(chosen: &[Due]) -> Vec<Due> {
    chosen.iter().filter(|due| due.leased).copied().collect()
}

/// What of it is leased for the last time.
pub(super) fn spent(chosen: &[Due], max_attempts: i64) -> Vec<Due> {
    let mut expired = expired(chosen);
    expired.retain(|due| due.attempt >= max_attempts);
    expired
}

/// At most so much of an answer does one delivery take: the payload, possibly in base64, its view,
/// which may hold the payload's text once more with escapes, and the attributes.
fn answer_bytes(size: i64) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX).saturating_mul(7) / 3 + 4096
}
