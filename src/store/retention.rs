//! Removing what is finished and old.

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// The events behind `$1`, at most `$2`, with what holds each of them: how many consumers for their
/// work, effects, and consumers being filled, if it was received before `$3`; `$4` is
/// [`Bounds::finished`]. Work is not joined, because SQLite would go through all of it.
pub(super) const LOOK: &str = "SELECT e.seq, e.conversation, e.size, e.received_at,
        CASE WHEN e.received_at >= $3 THEN 1 ELSE
            (SELECT count(*) FROM consumers AS c WHERE EXISTS
                 (SELECT 1 FROM work AS w WHERE w.consumer_id = c.id AND w.event_seq = e.seq
                    AND (w.state <> 2 OR w.finished_at >= $4)))
            + (SELECT count(*) FROM effects AS f WHERE f.event_seq = e.seq AND f.state = 'begun')
            + (SELECT count(*) FROM consumers AS c WHERE e.seq BETWEEN c.fill_next AND c.fill_last)
        END
    FROM events AS e WHERE e.seq > $1 ORDER BY e.seq LIMIT $2";

/// An event that was looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Looked {
    pub(super) seq: Sequence,
    pub(super) conversation: Option<i64>,
    pub(super) size: i64,
    pub(super) received_at: Time,
    /// How many things hold it.
    pub(super) held: i64,
}

/// Reads a row of [`LOOK`].
macro_rules! looked {
    ($row:expr) => {
        $crate::store::retention::Looked {
            seq: $row.get(0),
            conversation: $row.get(1),
            size: $row.get(2),
            received_at: $crate::clock::Time::from_micros($row.get(3)),
            held: $row.get(4),
        }
    };
}
pub(super) use looked;

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

/// Chooses among `looked`, which is as much as the removal's limit allows if there is as much. Receipt
/// goes with time, so where nothing is old nothing behind it is.
pub(super) fn choose(looked: &[Looked], removal: &Removal, bounds: &Bounds) -> Chosen {
    let mut chosen = Chosen::default();
    let mut bytes = 0usize;
    let mut last = None;
    for event in looked {
        if event.held == 0 {
            bytes = bytes.saturating_add(usize::try_from(event.size).unwrap_or(usize::MAX));
            if bytes > removal.max_bytes && !chosen.events.is_empty() {
                chosen.next = last;
                break;
            }
            chosen.events.push(event.seq);
            chosen.lanes.extend(event.conversation);
        }
        last = Some(event.seq);
    }
    chosen.lanes.sort_unstable();
    chosen.lanes.dedup();
    let old = looked.iter().any(|event| event.received_at < bounds.received);
    if looked.len() >= removal.limit && old {
        chosen.next = chosen.next.or(last);
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

    fn chosen(events: &[(i64, i64, i64)]) -> (Vec<Sequence>, Option<Sequence>) {
        let looked = |(place, &(age, held, size)): (usize, &(i64, i64, i64))| Looked {
            seq: place as i64 + 1,
            conversation: Some(age),
            size,
            received_at: Time::from_micros(100_000_000 - age * 1_000_000),
            held,
        };
        let looked: Vec<_> = events.iter().enumerate().map(looked).collect();
        let bounds = REMOVAL.bounds(Time::from_micros(100_000_000));
        let chosen = choose(&looked, &REMOVAL, &bounds);
        (chosen.events, chosen.next)
    }

    #[test]
    fn what_nothing_holds_is_removed() {
        assert_eq!(chosen(&[]), (vec![], None));
        assert_eq!(chosen(&[(20, 0, 9), (19, 2, 9), (18, 0, 9)]), (vec![1, 3], None));
    }

    #[test]
    fn the_look_goes_on_while_there_may_be_more_that_is_old() {
        let old = [(20, 0, 9), (20, 1, 9), (20, 0, 9), (9, 1, 9)];
        assert_eq!(chosen(&old), (vec![1, 3], Some(4)));
        assert_eq!(chosen(&[(9, 1, 9); 4]), (vec![], None));
        assert_eq!(
            chosen(&[(20, 1, 9); 4]),
            (vec![], Some(4)),
            "held, but something behind may go"
        );
    }

    #[test]
    fn many_bytes_are_removed_in_several_steps() {
        let large = [(20, 0, 60), (20, 3, 60), (20, 0, 60), (20, 0, 1)];
        assert_eq!(chosen(&large), (vec![1], Some(2)));
        assert_eq!(chosen(&[(20, 0, 1000), (20, 0, 1)]), (vec![1], Some(1)));
        assert_eq!(chosen(&[(20, 0, 1000)]), (vec![1], None));
    }
}
