//! Removing what is finished and old.

use std::collections::HashSet;
use std::time::Duration;

use async_trait::async_trait;

use super::Result;
use crate::clock::Time;
use crate::event::Sequence;

/// Which events to remove, and how much of it in one transaction.
#[derive(Clone, Copy, Debug)]
pub struct Removal {
    /// Only events received longer ago than this.
    pub older_than: Duration,
    /// How long an event that was removed is still known, so that a duplicate of it is seen as one.
    pub identities_for: Duration,
    /// Looks behind this event, in order of receipt.
    pub after: Sequence,
    /// Looks at so many at most.
    pub limit: usize,
    /// Removes so many bytes of bodies at most, but always one event.
    pub max_bytes: usize,
}

/// What one transaction removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// How many events.
    pub events: u64,
    /// Where to look on; none if nothing that is old enough stands behind.
    pub next: Option<Sequence>,
}

/// Removing what is finished and old.
#[async_trait]
pub trait Retention {
    /// Removes old events that nobody needs any more, with all that belongs to them: bodies, variants,
    /// work, attempts, effects, and the lanes of conversations that no event is left of. Their
    /// identities stay, so that a duplicate is still known as one. What stays, however old: an event
    /// that is unfinished or dead for any consumer, that a consumer still being filled will get, or
    /// with an effect that was begun and not finished; and one that was finished in the last hour,
    /// because its worker may ask once more whether its ack counted.
    async fn remove_finished(&self, removal: Removal) -> Result<Removed>;

    /// Forgets at most `limit` identities of removed events whose time is over, with the variants that
    /// came under them since; tells how many.
    async fn forget_identities(&self, limit: usize) -> Result<u64>;
}

/// For so long what was finished stays, or as long as events stay at all if that is shorter.
const FINISHED: Duration = Duration::from_secs(3600);

/// The bounds of a removal in the store's time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// An event received before this is old.
    pub(super) received: Time,
    /// Work finished at this time or later keeps its event.
    pub(super) finished: Time,
    /// Until when the identities stay.
    pub(super) expires: Time,
}

impl Removal {
    pub(super) fn bounds(&self, now: Time) -> Bounds {
        Bounds {
            received: now - self.older_than,
            finished: now - self.older_than.min(FINISHED),
            expires: now + self.identities_for,
        }
    }
}

// What holds an event is asked for by the range of those that were looked at and for one consumer at
// a time, because then every way to answer is a short one, whatever a planner believes of the tables.

/// The events behind `$1`, at most `$2`.
pub(super) const LOOK: &str = "SELECT seq, conversation, size, received_at FROM events
    WHERE seq > $1 ORDER BY seq LIMIT $2";

/// All consumers, each with the range that it is still being filled with.
pub(super) const CONSUMERS: &str = "SELECT id, fill_next, fill_last FROM consumers";

/// The events between `$2` and `$3` that a consumer has not finished, or not before `$4`.
pub(super) const UNFINISHED: &str = "SELECT event_seq FROM work
    WHERE consumer_id = $1 AND event_seq BETWEEN $2 AND $3 AND (state <> 2 OR finished_at >= $4)";

/// The events between `$1` and `$2` with an effect that was begun and not finished.
pub(super) const BEGUN: &str = "SELECT event_seq FROM effects
    WHERE event_seq BETWEEN $1 AND $2 AND state = 'begun'";

/// An event that was looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Looked {
    pub(super) seq: Sequence,
    pub(super) conversation: Option<i64>,
    pub(super) size: i64,
    pub(super) received_at: Time,
}

/// Reads a row of [`LOOK`].
macro_rules! looked {
    ($row:expr) => {
        $crate::store::retention::Looked {
            seq: $row.get(0),
            conversation: $row.get(1),
            size: $row.get(2),
            received_at: $crate::clock::Time::from_micros($row.get(3)),
        }
    };
}
pub(super) use looked;

/// A consumer's id and the range that it is still being filled with, a row of [`CONSUMERS`].
pub(super) type Filling = (i64, Option<Sequence>, Option<Sequence>);

/// The first and the last of what was looked at, if any of it is old.
pub(super) fn span(looked: &[Looked], bounds: &Bounds) -> Option<(Sequence, Sequence)> {
    let old = looked.iter().any(|event| event.received_at < bounds.received);
    let (first, last) = (looked.first()?, looked.last()?);
    old.then_some((first.seq, last.seq))
}

/// What to remove of what was looked at.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) events: Vec<Sequence>,
    /// The conversations that they are of, each once.
    pub(super) lanes: Vec<i64>,
    pub(super) next: Option<Sequence>,
}

impl Chosen {
    pub(super) fn removed(&self) -> Removed {
        Removed { events: self.events.len() as u64, next: self.next }
    }
}

/// Chooses among `looked`, of which some is old, what nothing holds. Receipt goes with time, so that the
/// look goes on until nothing is old any more.
pub(super) fn choose(
    looked: &[Looked],
    consumers: &[Filling],
    held: &HashSet<Sequence>,
    removal: &Removal,
    bounds: &Bounds,
) -> Chosen {
    let filled = |seq: Sequence, (_, next, last): &Filling| {
        next.zip(*last).is_some_and(|(next, last)| (next..=last).contains(&seq))
    };
    let mut chosen = Chosen::default();
    let mut bytes = 0usize;
    for event in looked {
        let free = event.received_at < bounds.received
            && !held.contains(&event.seq)
            && !consumers.iter().any(|consumer| filled(event.seq, consumer));
        if free {
            bytes = bytes.saturating_add(usize::try_from(event.size).unwrap_or(usize::MAX));
            if bytes > removal.max_bytes && !chosen.events.is_empty() {
                chosen.next = Some(event.seq - 1);
                break;
            }
            chosen.events.push(event.seq);
            chosen.lanes.extend(event.conversation);
        }
    }
    chosen.lanes.sort_unstable();
    chosen.lanes.dedup();
    if chosen.next.is_none() && looked.len() >= removal.limit {
        chosen.next = looked.last().map(|event| event.seq);
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    const REMOVAL: Removal = Removal {
        older_than: Duration::from_secs(10),
        identities_for: Duration::from_secs(5),
        after: 0,
        limit: 4,
        max_bytes: 100,
    };

    /// Of events numbered from 1, each an age and a size.
    fn chosen(events: &[(i64, i64)], held: &[i64]) -> (Vec<Sequence>, Option<Sequence>) {
        let looked = |(place, &(age, size)): (usize, &(i64, i64))| Looked {
            seq: place as i64 + 1,
            conversation: Some(age),
            size,
            received_at: Time::from_micros(100_000_000 - age * 1_000_000),
        };
        let looked: Vec<_> = events.iter().enumerate().map(looked).collect();
        let bounds = REMOVAL.bounds(Time::from_micros(100_000_000));
        if span(&looked, &bounds).is_none() {
            return (vec![], None);
        }
        let held = held.iter().copied().collect();
        let chosen = choose(&looked, &[(1, None, None)], &held, &REMOVAL, &bounds);
        (chosen.events, chosen.next)
    }

    #[test]
    fn what_nothing_holds_is_removed() {
        assert_eq!(chosen(&[], &[]), (vec![], None));
        assert_eq!(chosen(&[(20, 9), (19, 9), (18, 9)], &[2]), (vec![1, 3], None));
    }

    #[test]
    fn the_look_goes_on_while_there_may_be_more_that_is_old() {
        assert_eq!(chosen(&[(20, 9), (20, 9), (20, 9), (9, 9)], &[2]), (vec![1, 3], Some(4)));
        assert_eq!(chosen(&[(9, 9); 4], &[]), (vec![], None));
        assert_eq!(chosen(&[(20, 9); 4], &[1, 2, 3, 4]), (vec![], Some(4)), "what follows may go");
    }

    #[test]
    fn many_bytes_are_removed_in_several_steps() {
        let large = [(20, 60), (20, 60), (20, 60), (20, 1)];
        assert_eq!(chosen(&large, &[2]), (vec![1], Some(2)));
        assert_eq!(chosen(&[(20, 1000), (20, 1)], &[]), (vec![1], Some(1)));
        assert_eq!(chosen(&[(20, 1000)], &[]), (vec![1], None));
    }
}
