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
    /// Takes one step of a replay, from its beginning if `from` is none: looks at the next `limit`
    /// events that may be meant, in order of receipt, and makes the finished work of `consumer` with
    /// those that `selection` means due now. Such work is as new: no attempt counts, no receipt of
    /// before is good, its lane is that of the consumer's ordering as it is now. It stands in order of
    /// receipt behind all work there is.
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

/// Where to go on after these events were looked at, the next `limit` at the most.
pub(super) fn beyond(place: &Place, looked_at: &[Sequence], limit: usize) -> Option<Place> {
    let last = looked_at.last().filter(|_| looked_at.len() >= limit);
    last.map(|last| Place { after: *last, ..*place })
}

/// The least state that is meant: 2 is done, 3 dead.
pub(super) fn least_state(selection: &Selection) -> i64 {
    if selection.dead { 3 } else { 2 }
}
