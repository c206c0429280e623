//! Finished and dead work that becomes due again.

use std::sync::Arc;

use async_trait::async_trait;
use uuid::Uuid;

use super::Result;
use super::plan::conversation;
use crate::event::Sequence;
use crate::replay::{Place, Replayed, Selection};

/// Finished and dead work that becomes due again.
#[async_trait]
pub trait Replays {
    /// Takes one step of a replay, from its beginning if `from` is none: looks at the next events that
    /// may be meant, in order of receipt, a few times `limit`, and makes at most `limit` pieces of the
    /// finished work of `consumer` with those that `selection` means due now. Such work is as new: no
    /// attempt counts, no receipt of before is good, its lane is that of the consumer's ordering as it
    /// is now. It stands in order of receipt behind all work there is.
    ///
    /// Unfinished work is never touched, and neither is what was finished, or appended, after the
    /// replay began, so that workers who are as fast as the replay do not keep it going for ever.
    async fn replay(
        &self,
        consumer: &str,
        selection: Arc<Selection>,
        from: Option<Place>,
        limit: usize,
    ) -> Result<Replayed>;
}

/// An event and the lane of its work.
pub(super) type Meant = (Sequence, Option<i64>);

/// By which index the events that may be meant are found; each gives them in order of receipt.
#[derive(Debug)]
pub(super) enum Way<'a> {
    /// By their ids.
    Ids(&'a [Uuid]),
    /// Those of one conversation, by 64 bits of its hash.
    Conversation(i64),
    /// Those whose work is dead.
    Dead,
    /// All that are work of the consumer.
    All,
}

/// The narrowest way to what is meant.
pub(super) fn way(selection: &Selection) -> Way<'_> {
    match (&selection.ids, &selection.conversation) {
        (Some(ids), _) => Way::Ids(ids),
        (None, Some(subject)) => Way::Conversation(conversation(subject)),
        (None, None) if selection.dead => Way::Dead,
        (None, None) => Way::All,
    }
}

/// How many events to look at for `limit` pieces of work: to look costs less than to change.
pub(super) fn looks(limit: usize) -> usize {
    limit.saturating_mul(5)
}

/// Where to go on after these events were looked at and these of them taken.
pub(super) fn beyond(
    place: &Place,
    looked_at: &[Sequence],
    taken: &[Meant],
    limit: usize,
) -> Option<Place> {
    let last = if taken.len() >= limit {
        taken.last().map(|(event, _)| *event)
    } else {
        looked_at.last().copied().filter(|_| looked_at.len() >= looks(limit))
    };
    last.map(|after| Place { after, ..*place })
}

/// The least state that is meant: 2 is done, 3 dead.
pub(super) fn least_state(selection: &Selection) -> i64 {
    if selection.dead { 3 } else { 2 }
}

/// A count as both databases take it.
pub(super) fn bound(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replay_goes_on_behind_what_it_has_seen() {
        let place = Place { after: 3, last: 90, began: crate::clock::Time::from_micros(7) };
        let after = |looked_at: &[Sequence], taken: &[Sequence], limit| {
            let taken: Vec<Meant> = taken.iter().map(|event| (*event, None)).collect();
            let next = beyond(&place, looked_at, &taken, limit);
            assert!(next.is_none_or(|next| (next.last, next.began) == (90, place.began)));
            next.map(|next| next.after)
        };
        assert_eq!(after(&[4, 5, 6, 7, 8], &[4], 1), Some(4), "the rest is looked at again");
        assert_eq!(after(&[4, 5, 6, 7, 8], &[], 1), Some(8));
        assert_eq!(after(&[4, 5, 6], &[], 1), None, "there are no more");
        assert_eq!(after(&[4, 5, 6], &[4, 6], 2), Some(6), "there may be more");
        assert_eq!(after(&[], &[], 0), None);
    }
}
