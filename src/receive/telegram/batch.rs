//! A batch of updates: cut out of an answer byte by byte, named, and compared with what was
//! expected.

use std::ops::Range;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::update::{self, UpdateFacts};
use crate::clock::Time;
use crate::event::{Attributes, Flags, Identity, NewEvent, SourceId, encode_id, new_id};
use crate::json;
use crate::source::{GapReason, NewGap};

/// One update of a batch.
#[derive(Clone, Debug)]
pub struct Update {
    /// The exact bytes, as Telegram froze them.
    pub bytes: Bytes,
    /// Their SHA-256.
    pub hash: [u8; 32],
    /// What it says of itself.
    pub facts: UpdateFacts,
}

/// Cuts the updates out of the body of a good answer; none if `result` is no list. The body may
/// hold bytes that are not UTF-8, lone surrogates and any depth.
#[must_use]
pub fn cut(body: Bytes) -> Option<Vec<Update>> {
    let spans = json::array_element_spans(&body, "result")?;
    let update = |span: Range<usize>| {
        let bytes = body.slice(span);
        let (hash, facts) = (Sha256::digest(&bytes).into(), update::read(&bytes));
        // A copy of its own, so that one update does not keep the whole answer in memory.
        Update { bytes: Bytes::copy_from_slice(&bytes), hash, facts }
    };
    Some(spans.into_iter().map(update).collect())
}

impl Update {
    /// What deduplicates it. Telegram freezes an update's bytes when it is queued, so a redelivery
    /// is byte-identical, and an id that comes back with other bytes is another update.
    #[must_use]
    pub fn key(&self) -> Vec<u8> {
        match self.facts.update_id {
            Some(id) => [&b"u"[..], &id.to_be_bytes(), &self.hash].concat(),
            None => [&b"x"[..], &self.hash].concat(),
        }
    }

    /// The event of this update of the bot `account`.
    #[must_use]
    pub fn event(&self, source: SourceId, account: i64, at: Time) -> NewEvent {
        let facts = &self.facts;
        let chat = facts.chat_id.map(|chat| match &facts.business_connection_id {
            Some(connection) => {
                format!("telegram/{account}/business/{}/chat/{chat}", encode_id(connection))
            }
            None => format!("telegram/{account}/chat/{chat}"),
        });
        let external_id = match facts.update_id {
            Some(id) => id.to_string(),
            None => format!("sha256:{}", hex::encode(self.hash)),
        };
        let odd = !facts.anomalies.is_empty();
        NewEvent {
            id: new_id(at),
            source,
            identity: Identity { key: self.key(), alias: None },
            received_at: at,
            attributes: Attributes {
                event_type: format!("telegram.{}", facts.kind),
                channel: "telegram".to_owned(),
                account: account.to_string(),
                external_id,
                origin: format!("/telegram/{account}"),
                subject: chat,
                time: facts.time_us.map(Time::from_micros),
            },
            flags: if odd { Flags::ODD_UPDATE } else { Flags::default() },
            secret: None,
            body_hash: self.hash,
            body: self.bytes.clone(),
            headers: None,
        }
    }
}

/// The offset that confirms this batch: its highest usable id and one more, even if that is lower
/// than the one before, because the sequence may have begun anew. None if no id is usable.
#[must_use]
pub fn next_offset(batch: &[Update]) -> Option<i64> {
    batch.iter().filter_map(|update| update.facts.update_id).max().map(|id| id + 1)
}

/// Possible losses between what was expected and what came: `ids` with whether each is new to the
/// store, in any order; `expected` is the offset that the last batch left. What is known already
/// was looked at when it came first.
#[must_use]
pub fn losses(expected: Option<i64>, ids: &[(i64, bool)], now: Time) -> Vec<NewGap> {
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    // One id may come twice in a batch; it is new if any of its updates is.
    ids.dedup_by(|later, kept| {
        kept.1 |= later.0 == kept.0 && later.1;
        later.0 == kept.0
    });
    let gap = |reason, ids, detail| NewGap { reason, ids, from: None, to: now, detail };
    let mut gaps = Vec::new();
    let mut next = expected;
    let mut restarted = false;
    for (id, new) in ids {
        match next {
            Some(expected) if new && id < expected && !restarted => {
                let detail = format!(
                    "the sequence of update ids began anew at {id} where {expected} was expected; \
                     what had not been fetched of the old one is gone"
                );
                gaps.push(gap(GapReason::Restart, None, detail));
                restarted = true;
                next = Some(id + 1);
            }
            Some(expected) if new && id > expected => {
                let (from, to) = (expected, id - 1);
                let detail = format!(
                    "updates {from} to {to} never arrived: they expired, were dropped, or another \
                     program took them"
                );
                gaps.push(gap(GapReason::Hole, Some((from, to)), detail));
                next = Some(id + 1);
            }
            _ => next = next.max(Some(id + 1)),
        }
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(expected: Option<i64>, new: &[i64]) -> Vec<(GapReason, Option<(i64, i64)>)> {
        let new: Vec<_> = new.iter().map(|id| (*id, true)).collect();
        let gaps = losses(expected, &new, Time::default());
        gaps.into_iter().map(|gap| (gap.reason, gap.ids)).collect()
    }

    #[test]
    fn holes_are_found_before_and_within_a_batch() {
        assert_eq!(ranges(None, &[7, 8]), []);
        assert_eq!(ranges(Some(7), &[7, 8]), []);
        assert_eq!(
            ranges(Some(5), &[9, 7]),
            [(GapReason::Hole, Some((5, 6))), (GapReason::Hole, Some((8, 8)))]
        );
        assert_eq!(ranges(None, &[7, 9, 9]), [(GapReason::Hole, Some((8, 8)))]);
        assert_eq!(ranges(Some(7), &[]), []);
    }

    #[test]
    fn a_lower_id_is_a_restart_and_a_higher_one_the_hole_it_looks_like() {
        assert_eq!(
            ranges(Some(100), &[20, 22]),
            [(GapReason::Restart, None), (GapReason::Hole, Some((21, 21)))]
        );
        assert_eq!(ranges(Some(100), &[500]), [(GapReason::Hole, Some((100, 499)))]);
    }

    #[test]
    fn what_is_known_was_looked_at_when_it_came_first() {
        let known = |expected, ids: &[(i64, bool)]| losses(expected, ids, Time::default()).len();
        assert_eq!(known(Some(10), &[(7, false), (9, false), (10, true)]), 0);
        assert_eq!(known(Some(8), &[(8, false), (9, false), (10, true)]), 0);
        assert_eq!(known(Some(10), &[(7, false), (12, true)]), 1);
        assert_eq!(known(Some(10), &[(3, false)]), 0);
    }

    #[test]
    fn the_offset_follows_the_batch_and_unusable_ids_do_not_move_it() {
        let body = br#"{"ok":true,"result":[{"update_id":5,
"message":{}},{"update_id":3,
"poll":{}},{"update_id":-1,"x":1},{"update_id":2000000000,"x":1},7]}"#;
        let batch = cut(Bytes::from_static(body)).unwrap();
        assert_eq!(batch.len(), 5);
        assert_eq!(&batch[0].bytes[..], b"{\"update_id\":5,\n\"message\":{}}");
        assert_eq!(next_offset(&batch), Some(6));
        assert_eq!(next_offset(&batch[2..]), None);
        assert_eq!(cut(Bytes::from_static(br#"{"ok":true,"result":{}}"#)).map(|b| b.len()), None);
    }
}
