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

/// The latest event of each conversation that has any before `$1` and not before `$2`, unless it has
/// later ones: then it was found there. Grouped first, because a long conversation would else be
/// looked up once for each of its events.
pub(super) const LATEST: &str = "SELECT w.seq FROM (
        SELECT e.conversation, e.subject, max(e.seq) AS seq FROM events AS e
        CROSS JOIN sources AS s
        WHERE e.seq < $1 AND e.seq >= $2 AND e.subject IS NOT NULL AND s.id = e.source_id
          AND (CAST($3 AS TEXT) IS NULL OR e.channel = $3)
          AND (CAST($4 AS TEXT) IS NULL OR s.name = $4)
        GROUP BY e.conversation, e.subject) AS w
    WHERE NOT EXISTS (SELECT 1 FROM events AS n WHERE n.conversation = w.conversation
                      AND n.seq > w.seq AND n.subject = w.subject)
    ORDER BY w.seq DESC LIMIT $5";

/// Numbers that are looked at first; where they do not hold enough conversations, the next window is
/// larger, because they are few among many events.
const WINDOW: Sequence = 1000;

/// The numbers that a page looks at, part by part: not before the first, before the second.
pub(super) fn windows(
    ends: (Option<Sequence>, Option<Sequence>),
    query: &ConversationQuery,
) -> Vec<(Sequence, Sequence)> {
    let (Some(first), Some(last)) = ends else { return Vec::new() };
    let mut before = last.saturating_add(1).min(query.after.unwrap_or(Sequence::MAX));
    let end = before.saturating_sub(query.look).max(first);
    let mut size = WINDOW;
    let mut windows = Vec::new();
    while end < before {
        let from = before.saturating_sub(size).max(end);
        windows.push((from, before));
        before = from;
        size = size.saturating_mul(4);
    }
    windows
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

/// Where the next page goes on: behind the last conversation chosen if there may be more of them,
/// else before the numbers that were looked at, if there are any.
pub(super) fn next(
    chosen: &[Chosen],
    is_whole: bool,
    looked_from: Sequence,
    first: Option<Sequence>,
) -> Option<Sequence> {
    let last = chosen.last().filter(|_| !is_whole).map(|(latest, _)| *latest);
    last.or_else(|| first.filter(|first| looked_from > *first).map(|_| looked_from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_grow_until_all_that_may_be_is_looked_at() {
        let look = |ends, after, look| {
            windows(ends, &ConversationQuery { after, look, ..ConversationQuery::default() })
        };
        let ends = (Some(3), Some(20));
        assert_eq!(look(ends, None, 100), [(3, 21)]);
        assert_eq!(look(ends, None, 5), [(16, 21)]);
        assert_eq!(look(ends, Some(16), 5), [(11, 16)]);
        assert_eq!(look(ends, Some(3), 5), []);
        assert_eq!(look(ends, Some(i64::MIN), i64::MAX), []);
        assert_eq!(look((None, None), None, 5), []);
        let many = (Some(1), Some(10_000));
        assert_eq!(look(many, None, i64::MAX), [(9001, 10_001), (5001, 9001), (1, 5001)]);
        assert_eq!(look(many, None, 6000), [(9001, 10_001), (5001, 9001), (4001, 5001)]);
        assert_eq!(look(many, Some(i64::MAX), 1), [(10_000, 10_001)]);
    }

    #[test]
    fn the_next_page_goes_on_below() {
        assert_eq!(next(&[(18, vec![])], true, 16, Some(3)), Some(16));
        assert_eq!(next(&[(18, vec![])], false, 16, Some(3)), Some(18));
        assert_eq!(next(&[(18, vec![])], true, 3, Some(3)), None);
        assert_eq!(next(&[], true, 3, None), None);
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
