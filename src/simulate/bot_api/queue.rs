//! One bot's queue of updates: what is stored, and what an `offset` does to it.
//!
//! Pure: time is an argument. Source: `TQueue.cpp` of `tdlib/td`, `do_get_updates` of
//! `tdlib/telegram-bot-api`.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::rules::{ID_END, Limits, Seconds};

/// A queued update.
#[derive(Clone, Debug)]
pub struct Event {
    /// The update's own member, `"kind":{…}`: frozen here, so every delivery is byte-identical.
    pub member: Bytes,
    /// The moment after which it vanishes.
    pub expires_at: Seconds,
    /// How many answers it has been put into.
    pub delivered: u32,
}

/// Why an update was not queued. The bot never hears of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It has no bytes.
    Empty,
    /// It is larger than [`Limits::max_event`].
    TooLarge,
    /// It was too old when it came.
    Expired,
    /// The queue holds [`Limits::max_events`] or [`Limits::max_queue_bytes`].
    Full,
}

/// What a push did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// Queued under this id.
    Stored(i32),
    /// Dropped, and no id used up, because `allowed_updates` leaves its kind out.
    Filtered,
    /// Dropped, and no id used up.
    Refused(Refusal),
}

impl Pushed {
    /// The id it was queued under.
    pub fn id(&self) -> Option<i32> {
        match self {
            Self::Stored(id) => Some(*id),
            Self::Filtered | Self::Refused(_) => None,
        }
    }
}

/// An update that left the queue, and how often it had been delivered.
pub type Removed = (i32, u32);

/// What one pass of `getUpdates` did.
#[derive(Debug, Default)]
pub struct Fetched {
    /// Deleted for being below the offset.
    pub confirmed: Vec<Removed>,
    /// Deleted by a negative offset.
    pub cut: Vec<Removed>,
    /// Deleted for being too old.
    pub expired: Vec<i32>,
    /// To be answered, ascending.
    pub ids: Vec<i32>,
}

/// Updates by id, and the id that the next one gets.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    events: BTreeMap<i32, Event>,
    tail: i32,
    bytes: usize,
}

impl Queue {
    /// The id the next update gets; 0 as long as the sequence has not begun.
    pub fn tail(&self) -> i32 {
        self.tail
    }

    /// The first queued id, or the tail if nothing is queued.
    pub fn head(&self) -> i32 {
        self.events.first_key_value().map_or(self.tail, |(id, _)| *id)
    }

    /// How many updates are queued, expired ones that nobody has looked at included.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether nothing is queued.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The queued ids, ascending.
    pub fn ids(&self) -> impl Iterator<Item = i32> + '_ {
        self.events.keys().copied()
    }

    /// The update queued under `id`.
    pub fn get(&self, id: i32) -> Option<&Event> {
        self.events.get(&id)
    }

    /// The last update queued.
    pub fn last(&self) -> Option<&Event> {
        self.events.last_key_value().map(|(_, event)| event)
    }

    /// Queues an update. `first_id` is asked for when the sequence begins or begins anew; the
    /// second value is what was deleted because the ids ran out.
    pub fn push(
        &mut self,
        member: Bytes,
        expires_at: Seconds,
        limits: &Limits,
        mut first_id: impl FnMut() -> i32,
    ) -> (Result<i32, Refusal>, Vec<Removed>) {
        if let Some(refusal) = self.refusal(&member, expires_at, limits) {
            return (Err(refusal), Vec::new());
        }
        if self.tail == 0 {
            self.tail = first_id();
        }
        let mut wrapped = Vec::new();
        if self.tail + 1 >= ID_END {
            wrapped = self.clear();
            self.tail = first_id();
        }
        let id = self.tail;
        self.bytes += member.len();
        self.events.insert(id, Event { member, expires_at, delivered: 0 });
        self.tail += 1;
        (Ok(id), wrapped)
    }

    fn refusal(&self, member: &Bytes, expires_at: Seconds, limits: &Limits) -> Option<Refusal> {
        if self.events.len() >= limits.max_events
            || self.bytes + member.len() > limits.max_queue_bytes
        {
            return Some(Refusal::Full);
        }
        if member.is_empty() {
            return Some(Refusal::Empty);
        }
        if member.len() > limits.max_event {
            return Some(Refusal::TooLarge);
        }
        (expires_at <= 0.0).then_some(Refusal::Expired)
    }

    /// One pass: deletes what `offset` says, and collects up to `limit` updates.
    ///
    /// An offset that is far above the tail, far below the head or no id at all confirms nothing
    /// and is answered from the head. One up to [`Limits::id_tolerance`] too high destroys
    /// updates that nobody has seen.
    pub fn fetch(&mut self, offset: i32, limit: usize, now: Seconds, limits: &Limits) -> Fetched {
        let mut fetched = Fetched::default();
        if offset < 0 {
            // In i64 because -i32::MIN is not an i32.
            let keep = usize::try_from(-i64::from(offset)).unwrap_or(usize::MAX);
            fetched.cut = self.take_first(self.events.len().saturating_sub(keep));
        }
        let head = self.head();
        let mut from = head;
        if offset > 0 {
            if self.accepts(offset, limits) {
                from = offset;
            }
            fetched.confirmed = self.take_below(from);
        }
        for (id, event) in self.events.range(from..) {
            if fetched.ids.len() >= limit {
                break;
            }
            if event.expires_at < now {
                fetched.expired.push(*id);
            } else {
                fetched.ids.push(*id);
            }
        }
        for id in &fetched.expired {
            self.remove(*id);
        }
        fetched
    }

    fn accepts(&self, offset: i32, limits: &Limits) -> bool {
        let above = i64::from(self.tail) + i64::from(limits.id_tolerance);
        let below = i64::from(self.head()) - i64::from(limits.past_tolerance);
        let offset = i64::from(offset);
        offset < i64::from(ID_END) && (self.tail == 0 || (offset <= above && offset >= below))
    }

    /// The members of `ids` that fit one answer, each counted as one more delivery.
    pub fn deliver(&mut self, ids: &[i32], limits: &Limits) -> Vec<(i32, Bytes)> {
        let mut left = limits.max_batch_bytes;
        let mut batch = Vec::with_capacity(ids.len());
        for id in ids {
            let Some(event) = self.events.get_mut(id) else { continue };
            left = left.saturating_sub(50 + event.member.len());
            if left == 0 {
                break;
            }
            event.delivered += 1;
            batch.push((*id, event.member.clone()));
        }
        batch
    }

    /// Deletes everything; the sequence goes on where it was.
    pub fn clear(&mut self) -> Vec<Removed> {
        self.take_first(self.events.len())
    }

    /// Deletes the first `count` updates.
    pub fn take_first(&mut self, count: usize) -> Vec<Removed> {
        (0..count).filter_map(|_| self.pop_first()).collect()
    }

    fn take_below(&mut self, from: i32) -> Vec<Removed> {
        let mut taken = Vec::new();
        while self.events.first_key_value().is_some_and(|(id, _)| *id < from) {
            taken.extend(self.pop_first());
        }
        taken
    }

    /// Deletes every update and lets the next one get the id `tail`.
    pub fn restart_at(&mut self, tail: i32) -> Vec<Removed> {
        let removed = self.clear();
        self.tail = tail;
        removed
    }

    /// Takes back the last `count` ids, with what is queued under them.
    pub fn roll_back(&mut self, count: i32) -> Vec<Removed> {
        self.tail = self.tail.saturating_sub(count).max(1);
        let undone: Vec<i32> = self.events.range(self.tail..).map(|(id, _)| *id).collect();
        undone.into_iter().filter_map(|id| self.remove(id)).collect()
    }

    fn remove(&mut self, id: i32) -> Option<Removed> {
        let event = self.events.remove(&id)?;
        self.bytes -= event.member.len();
        Some((id, event.delivered))
    }

    fn pop_first(&mut self) -> Option<Removed> {
        let (id, event) = self.events.pop_first()?;
        self.bytes -= event.member.len();
        Some((id, event.delivered))
    }
}
