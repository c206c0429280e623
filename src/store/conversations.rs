//! Conversations, the latest first.

use std::collections::HashMap;

use async_trait::async_trait;

use super::Result;
use crate::conversation::{
    Conversation, ConversationPage, ConversationQuery, TypedQuery, UNFINISHED_COUNTED,
};
use crate::event::{Event, Page, Sequence};

/// Reading by conversation.
#[async_trait]
pub trait Conversations {
    /// Reads a page of conversations, the one with the latest event first. A conversation is a
    /// subject: two whose 64 bits are the same are two.
    async fn conversations(&self, query: ConversationQuery) -> Result<ConversationPage>;

    /// Reads a page of one conversation's events of certain types, oldest first.
    async fn typed_events(&self, query: TypedQuery) -> Result<Page>;
}

/// Events of a conversation that may be read for what the latest does not say.
pub(super) const RECENT: i64 = 10;
/// Bytes of them: a title and a line of text need no more, and a page has many conversations.
const RECENT_BYTES: i64 = 64 << 10;

/// The first and the last number there is.
pub(super) const ENDS: &str = "SELECT (SELECT min(seq) FROM events), (SELECT max(seq) FROM events)";

/// The latest event of each conversation, before `$1` and not before `$2`: one that no other of the
/// same subject follows. Numbers are walked down, so the limit ends the reading.
pub(super) const LATEST: &str = "SELECT e.seq FROM events AS e
    CROSS JOIN sources AS s
    WHERE e.seq < $1 AND e.seq >= $2 AND e.subject IS NOT NULL AND s.id = e.source_id
      AND (CAST($3 AS TEXT) IS NULL OR e.channel = $3)
      AND (CAST($4 AS TEXT) IS NULL OR s.name = $4)
      AND NOT EXISTS (SELECT 1 FROM events AS n WHERE n.conversation = e.conversation
                      AND n.seq > e.seq AND n.subject = e.subject)
    ORDER BY e.seq DESC LIMIT $5";

/// The part of the numbers that a page looks at: not before the first, before the second. None if
/// there is nothing to look at.
pub(super) fn window(
    ends: (Option<Sequence>, Option<Sequence>),
    query: &ConversationQuery,
) -> Option<(Sequence, Sequence)> {
    let (first, last) = (ends.0?, ends.1?);
    let before = last.saturating_add(1).min(query.after.unwrap_or(Sequence::MAX));
    let from = before.saturating_sub(query.look).max(first);
    (from < before).then_some((from, before))
}

/// A conversation's latest event and, newest first, those to be read with it.
pub(super) type Chosen = (Sequence, Vec<Sequence>);

/// Chooses which events of these conversations to read, given for each conversation number and size
/// of its recent ones, the latest included; tells whether all conversations fit.
pub(super) fn choose(
    latest: &[Sequence],
    recent: impl Iterator<Item = (Sequence, Sequence, i64)>,
    max_bytes: usize,
) -> (Vec<Chosen>, bool) {
    let mut of: HashMap<Sequence, Vec<(Sequence, i64)>> = HashMap::new();
    for (latest, sequence, size) in recent {
        of.entry(latest).or_default().push((sequence, size));
    }
    let max_bytes = i64::try_from(max_bytes).unwrap_or(i64::MAX);
    let mut total = 0_i64;
    let mut chosen = Vec::new();
    for latest in latest {
        let mut recent = of.remove(latest).unwrap_or_default();
        recent.sort_unstable_by_key(|(sequence, _)| std::cmp::Reverse(*sequence));
        let mut bytes = 0_i64;
        let mut before = Vec::new();
        for (sequence, size) in recent {
            bytes = bytes.saturating_add(size);
            if sequence == *latest {
                continue;
            }
            if bytes > RECENT_BYTES {
                bytes -= size;
                break;
            }
            before.push(sequence);
        }
        total = total.saturating_add(bytes);
        if total > max_bytes && !chosen.is_empty() {
            return (chosen, false);
        }
        chosen.push((*latest, before));
    }
    (chosen, true)
}

/// The page of what was chosen, given its events and how much work of each conversation is
/// unfinished. What was removed meanwhile is left out.
pub(super) fn page(
    chosen: Vec<Chosen>,
    events: Vec<Event>,
    mut unfinished: HashMap<Sequence, i64>,
    next: Option<Sequence>,
) -> ConversationPage {
    let mut events: HashMap<Sequence, Event> =
        events.into_iter().map(|event| (event.sequence, event)).collect();
    let mut read = |(latest, before): Chosen| {
        Some(Conversation {
            latest: events.remove(&latest)?,
            before: before.iter().filter_map(|sequence| events.remove(sequence)).collect(),
            unfinished: unfinished.remove(&latest).unwrap_or(0).min(UNFINISHED_COUNTED),
        })
    };
    ConversationPage { conversations: chosen.into_iter().filter_map(&mut read).collect(), next }
}

/// Where the next page goes on: behind the last conversation if there may be more in this window,
/// else before the window if there is anything.
pub(super) fn next(
    chosen: &[Chosen],
    is_whole: bool,
    (from, first): (Sequence, Sequence),
) -> Option<Sequence> {
    let last = chosen.last().filter(|_| !is_whole).map(|(latest, _)| *latest);
    last.or((from > first).then_some(from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_looked_at_and_the_next_goes_on_below() {
        let query = |after, look| ConversationQuery { after, look, ..ConversationQuery::default() };
        let ends = (Some(3), Some(20));
        assert_eq!(window(ends, &query(None, 100)), Some((3, 21)));
        assert_eq!(window(ends, &query(None, 5)), Some((16, 21)));
        assert_eq!(window(ends, &query(Some(16), 5)), Some((11, 16)));
        assert_eq!(window(ends, &query(Some(3), 5)), None);
        assert_eq!(window(ends, &query(Some(i64::MIN), i64::MAX)), None);
        assert_eq!(window((None, None), &query(None, 5)), None);
        assert_eq!(next(&[(18, vec![])], true, (16, 3)), Some(16));
        assert_eq!(next(&[(18, vec![])], false, (16, 3)), Some(18));
        assert_eq!(next(&[], true, (3, 3)), None);
    }

    #[test]
    fn bytes_bound_what_is_read_beside_the_latest() {
        let small = RECENT_BYTES / 4;
        let recent = [(9, 9, small), (9, 5, small), (9, 7, small), (9, 3, 3 * small), (9, 2, 1)];
        let all = |max| choose(&[9, 1], recent.into_iter().chain([(1, 1, 40 * small)]), max);
        assert_eq!(all(usize::MAX), (vec![(9, vec![7, 5]), (1, vec![])], true));
        assert_eq!(all(1), (vec![(9, vec![7, 5])], false));
    }
}
