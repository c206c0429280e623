//! What an append has to write, decided outside the database so that both decide the same.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::clock::Time;
use crate::event::{Appended, Flags, NewEvent, Sequence, SourceId};

/// The key of one identity.
pub(super) type Key = (SourceId, Vec<u8>);

/// What an identity names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) seq: Sequence,
    pub(super) body_hash: [u8; 32],
    /// Until when it is known, if the event itself is removed.
    pub(super) expires_at: Option<i64>,
}

/// A key that an event gains.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NewKey {
    pub(super) key: Key,
    pub(super) seq: Sequence,
    /// What the other keys of the event hold if that is removed: its hash, and until when.
    pub(super) removed: Option<([u8; 32], i64)>,
}

impl Known {
    fn gains(&self, key: Key) -> NewKey {
        let removed = self.expires_at.map(|expires_at| (self.body_hash, expires_at));
        NewKey { key, seq: self.seq, removed }
    }
}

/// The rows of one append, free of inner duplicates and sorted by key where they are locked.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// One for each event.
    pub(super) outcomes: Vec<Appended>,
    /// New rows: number and place in the batch.
    pub(super) rows: Vec<(Sequence, usize)>,
    /// New identities, by key.
    pub(super) identities: Vec<NewKey>,
    /// Counts for rows that were there before this batch, or that recur within it, by number.
    pub(super) repeats: Vec<(Sequence, Repeat)>,
    /// Receipts of other bytes, by row and hash.
    pub(super) variants: Vec<Variant>,
    /// What to count on each source.
    pub(super) tallies: Vec<(SourceId, Tally)>,
}

/// Further receipts of one row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repeat {
    pub(super) count: i64,
    pub(super) last: Time,
    pub(super) flags: Flags,
}

/// Receipts of one other body.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variant {
    pub(super) seq: Sequence,
    /// The first event of the batch that has it.
    pub(super) event: usize,
    pub(super) count: i64,
    pub(super) last: Time,
}

/// Receipts of one source.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) stored: i64,
    pub(super) duplicates: i64,
    pub(super) conflicts: i64,
    pub(super) last: Time,
}

/// All keys of these events, without repetition, sorted.
pub(super) fn keys(events: &[NewEvent]) -> Vec<Key> {
    let mut keys: Vec<Key> = events.iter().flat_map(keys_of).collect();
    keys.sort();
    keys.dedup();
    keys
}

/// The keys of one event, the one that wins first.
fn keys_of(event: &NewEvent) -> impl Iterator<Item = Key> {
    let identity = &event.identity;
    let keys = identity.alias.iter().chain(std::iter::once(&identity.key));
    keys.map(|key| (event.source, key.clone()))
}

/// Decides what to write for `events`, given what their keys name in the store; new rows are
/// numbered from `next`, which must be beyond every number used.
pub(super) fn plan(events: &[NewEvent], mut known: HashMap<Key, Known>, next: Sequence) -> Plan {
    let mut plan = Plan::default();
    let mut next = next;
    let mut repeats: HashMap<Sequence, Repeat> = HashMap::new();
    let mut variants: HashMap<(Sequence, [u8; 32]), Variant> = HashMap::new();
    let mut tallies: HashMap<SourceId, Tally> = HashMap::new();
    for (place, event) in events.iter().enumerate() {
        let found = keys_of(event).find_map(|key| known.get(&key).copied());
        let named =
            found.unwrap_or(Known { seq: next, body_hash: event.body_hash, expires_at: None });
        let outcome = match found {
            None => Appended::Stored(named.seq),
            Some(known) if known.body_hash == event.body_hash => Appended::Duplicate(known.seq),
            Some(known) => Appended::Conflict(known.seq),
        };
        let tally = tallies.entry(event.source).or_default();
        tally.last = tally.last.max(event.received_at);
        match outcome {
            Appended::Stored(seq) => {
                tally.stored += 1;
                plan.rows.push((seq, place));
                next += 1;
            }
            Appended::Duplicate(seq) => {
                tally.duplicates += 1;
                repeat(&mut repeats, seq, event, event.flags);
            }
            Appended::Conflict(seq) => {
                tally.conflicts += 1;
                repeat(&mut repeats, seq, event, event.flags | Flags::CONFLICT);
                let variant = variants.entry((seq, event.body_hash));
                let variant = variant.or_insert(Variant {
                    seq,
                    event: place,
                    count: 0,
                    last: event.received_at,
                });
                variant.count += 1;
                variant.last = variant.last.max(event.received_at);
            }
        }
        // A row that was found gains no key: it would let a delivery replayed under the header of
        // one still to come take that one's place. What was signed cannot be guessed, so it may.
        // So does one that is removed, for as long as it is known.
        let new_row = matches!(outcome, Appended::Stored(_));
        let gained = keys_of(event).filter(|(_, key)| new_row || *key != event.identity.key);
        for key in gained {
            if let Entry::Vacant(entry) = known.entry(key) {
                plan.identities.push(named.gains(entry.key().clone()));
                entry.insert(named);
            }
        }
        plan.outcomes.push(outcome);
    }
    plan.identities.sort();
    plan.repeats = repeats.into_iter().collect();
    plan.repeats.sort_by_key(|(seq, _)| *seq);
    plan.variants = variants.into_values().collect();
    plan.variants.sort_by_key(|variant| (variant.seq, events[variant.event].body_hash));
    plan.tallies = tallies.into_iter().collect();
    plan.tallies.sort_by_key(|(source, _)| *source);
    plan
}

fn repeat(repeats: &mut HashMap<Sequence, Repeat>, seq: Sequence, event: &NewEvent, flags: Flags) {
    let repeat = repeats.entry(seq).or_insert(Repeat {
        count: 0,
        last: event.received_at,
        flags: Flags::default(),
    });
    repeat.count += 1;
    repeat.last = repeat.last.max(event.received_at);
    repeat.flags |= flags;
}

/// The event with nothing derived, for a database that does not take what was derived.
pub(super) fn bare(event: &NewEvent) -> NewEvent {
    let mut event = event.clone();
    let attributes = &mut event.attributes;
    let channel = if attributes.channel == "telegram" { "telegram" } else { "unifyport" };
    attributes.event_type = format!("{channel}.unknown");
    attributes.channel = channel.to_owned();
    attributes.account = "-".to_owned();
    attributes.external_id = format!("sha256:{}", hex::encode(event.body_hash));
    attributes.origin = format!("/{channel}");
    attributes.subject = None;
    attributes.time = None;
    event.headers = None;
    event.flags |= Flags::UNREADABLE;
    event
}

/// 64 bits of the subject's SHA-256. Two subjects that share them share a lane, which costs them
/// some waiting and nothing else: reads compare the subject itself.
pub(super) fn conversation(subject: &str) -> i64 {
    use sha2::Digest;
    let hash = sha2::Sha256::digest(subject.as_bytes());
    let mut bits = [0; 8];
    bits.copy_from_slice(&hash[..8]);
    i64::from_be_bytes(bits)
}
