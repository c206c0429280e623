//! The inbox as a reader of its contract would write it down: plain lists, no database.

use std::collections::BTreeMap;

/// A consumer's settings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader {
    pub(crate) name: &'static str,
    /// Whether events of one conversation go out in order.
    pub(crate) ordered: bool,
    pub(crate) max_attempts: i64,
    /// Whether it wants nothing but rare events.
    pub(crate) rare_only: bool,
}

/// One thing that comes in.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) header: u8,
    pub(crate) signed: Option<u8>,
    pub(crate) body: u8,
}

impl Item {
    pub(crate) fn chat(&self) -> Option<u8> {
        [None, Some(0), Some(1), Some(1), Some(2)][usize::from(self.header) % 5]
    }

    pub(crate) fn rare(&self) -> bool {
        self.header.is_multiple_of(3)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Stored,
    Duplicate,
    Conflict,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Ready,
    Leased { claim: usize },
    Done { claim: usize },
    Dead,
}

#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) item: Item,
    pub(crate) receipts: i64,
    /// Receipts of other bodies.
    pub(crate) variants: BTreeMap<u8, i64>,
}

#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) reader: usize,
    pub(crate) event: usize,
    pub(crate) state: State,
    pub(crate) attempt: i64,
    /// Claimable from.
    due: i64,
}

impl Work {
    fn unfinished(&self) -> bool {
        matches!(self.state, State::Ready | State::Leased { .. })
    }

    fn leased(&self) -> bool {
        matches!(self.state, State::Leased { .. })
    }
}

/// All of it. Events go by their place in the order of receipt, claims by their number; time is in
/// any unit.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) now: i64,
    pub(crate) events: Vec<Event>,
    /// In the order of events for each reader.
    pub(crate) work: Vec<Work>,
    readers: Vec<Reader>,
    keys: BTreeMap<(char, u8), usize>,
    claims: usize,
}

impl Model {
    pub(crate) fn new(readers: &[Reader]) -> Model {
        let readers = readers.to_vec();
        let (events, work, keys) = (Vec::new(), Vec::new(), BTreeMap::new());
        Model { now: 0, events, work, readers, keys, claims: 0 }
    }

    /// What becomes of an item, and which event it is.
    pub(crate) fn append(&mut self, item: &Item) -> (Outcome, usize) {
        let signed = item.signed.map(|signed| ('s', signed));
        let header = ('h', item.header);
        let by_signature = signed.and_then(|key| self.keys.get(&key).copied());
        let known = by_signature.or_else(|| self.keys.get(&header).copied());
        let event = known.unwrap_or(self.events.len());
        if let Some(signed) = signed {
            self.keys.entry(signed).or_insert(event);
        }
        if known.is_some() {
            let known = &mut self.events[event];
            known.receipts += 1;
            if known.item.body == item.body {
                return (Outcome::Duplicate, event);
            }
            *known.variants.entry(item.body).or_default() += 1;
            return (Outcome::Conflict, event);
        }
        self.keys.insert(header, event);
        self.events.push(Event { item: item.clone(), receipts: 1, variants: BTreeMap::new() });
        for (reader, settings) in self.readers.iter().enumerate() {
            if item.rare() || !settings.rare_only {
                let (state, attempt, due) = (State::Ready, 0, self.now);
                self.work.push(Work { reader, event, state, attempt, due });
            }
        }
        (Outcome::Stored, event)
    }

    /// The number of the claim, and events with attempts in order of receipt.
    pub(crate) fn claim(
        &mut self,
        reader: usize,
        max: usize,
        lease: i64,
    ) -> (usize, Vec<(usize, i64)>) {
        self.claims += 1;
        let last = self.readers[reader].max_attempts;
        let mut chosen = loop {
            let heads = self.due_heads(reader, max);
            let chosen = self.follow(&heads, max);
            let expired: Vec<usize> = heads
                .into_iter()
                .filter(|head| chosen.contains(head) && self.work[*head].leased())
                .collect();
            let spent = |head: &usize| self.work[*head].attempt >= last;
            if !expired.iter().any(spent) {
                expired.into_iter().for_each(|head| self.end_claim(head));
                break chosen;
            }
            for head in expired {
                if self.work[head].attempt >= last {
                    self.end_claim(head);
                    self.work[head].state = State::Dead;
                }
            }
        };
        for place in &chosen {
            let work = &mut self.work[*place];
            assert!(work.due <= self.now && !work.leased(), "leased to two");
            work.attempt += 1;
            work.due = self.now + lease;
            work.state = State::Leased { claim: self.claims };
        }
        chosen.sort_unstable();
        let claimed = chosen.iter().map(|place| &self.work[*place]);
        (self.claims, claimed.map(|work| (work.event, work.attempt)).collect())
    }

    /// Whether the work is done by this claim.
    pub(crate) fn ack(&mut self, reader: usize, event: usize, claim: usize) -> bool {
        let mut work = self.work.iter_mut();
        let Some(work) = work.find(|work| (work.reader, work.event) == (reader, event)) else {
            return false;
        };
        if work.state == (State::Leased { claim }) {
            work.state = State::Done { claim };
        }
        work.state == State::Done { claim }
    }

    /// What becomes of work given up by these events and claims: requeued, dead (false) or neither.
    pub(crate) fn nack(
        &mut self,
        reader: usize,
        receipts: &[(usize, usize)],
        delay: i64,
        dead: bool,
    ) -> Vec<Option<bool>> {
        let held: Vec<Option<usize>> =
            receipts.iter().map(|(event, claim)| self.held(reader, *event, *claim)).collect();
        let conversations: Vec<(usize, Vec<usize>)> =
            held.iter().flatten().map(|place| (*place, self.conversation(*place))).collect();
        for (place, _) in &conversations {
            let work = &mut self.work[*place];
            let is_last = dead || work.attempt >= self.readers[reader].max_attempts;
            work.state = if is_last { State::Dead } else { State::Ready };
            work.due = self.now + delay;
        }
        for (place, conversation) in conversations {
            self.give_back(conversation.into_iter().filter(|other| *other > place));
        }
        let outcome = |place: &usize| self.work[*place].state == State::Ready;
        held.iter().map(|place| place.as_ref().map(outcome)).collect()
    }

    /// Whether the claim holds the work, now for so long.
    pub(crate) fn extend(&mut self, reader: usize, event: usize, claim: usize, lease: i64) -> bool {
        let held = self.held(reader, event, claim);
        if let Some(place) = held {
            self.work[place].due = self.now + lease;
        }
        held.is_some()
    }

    /// The work that this claim of this event holds.
    fn held(&self, reader: usize, event: usize, claim: usize) -> Option<usize> {
        let holds = |work: &Work| {
            (work.reader, work.event) == (reader, event) && work.state == State::Leased { claim }
        };
        self.work.iter().position(holds)
    }

    /// What of it is leased goes back and has not counted.
    fn give_back(&mut self, places: impl Iterator<Item = usize>) {
        for place in places {
            let work = &mut self.work[place];
            if work.leased() {
                work.attempt -= 1;
                work.state = State::Ready;
                work.due = self.now;
            }
        }
    }

    /// How long until something is claimable.
    pub(crate) fn next_due(&self, reader: usize) -> Option<i64> {
        let heads = self.heads(reader).into_iter().map(|head| self.work[head].due);
        heads.min().map(|due| (due - self.now).max(0))
    }

    /// The lease of this head ran out: the rest of its claim comes back and has not counted.
    fn end_claim(&mut self, head: usize) {
        self.give_back(self.conversation(head).into_iter().filter(|place| *place != head));
        self.work[head].state = State::Ready;
    }

    /// The work of these heads and behind them, up to the first of each that is put off. No claim
    /// looks at more than `max` pieces of conversations.
    fn follow(&self, heads: &[usize], max: usize) -> Vec<usize> {
        let mut looks = max;
        let mut chosen = Vec::new();
        for head in heads {
            let conversation = self.conversation(*head);
            let in_lane = self.in_lane(*head);
            let seen = if in_lane { conversation.len().min(looks) } else { conversation.len() };
            looks -= if in_lane { seen } else { 0 };
            let comes = |place: &&usize| {
                let work = &self.work[**place];
                work.due <= self.now || (self.work[*head].leased() && work.leased())
            };
            chosen.extend(conversation[..seen].iter().take_while(comes));
        }
        chosen.truncate(max);
        chosen
    }

    fn in_lane(&self, place: usize) -> bool {
        let work = &self.work[place];
        self.readers[work.reader].ordered && self.events[work.event].item.chat().is_some()
    }

    /// Unfinished work that nothing unfinished must go before.
    fn heads(&self, reader: usize) -> Vec<usize> {
        let of_reader = |place: &usize| {
            self.work[*place].reader == reader && self.conversation(*place).first() == Some(place)
        };
        (0..self.work.len()).filter(of_reader).collect()
    }

    fn due_heads(&self, reader: usize, max: usize) -> Vec<usize> {
        let mut heads = self.heads(reader);
        heads.retain(|head| self.work[*head].due <= self.now);
        heads.sort_by_key(|head| (self.work[*head].due, *head));
        heads.truncate(max);
        heads
    }

    /// The unfinished work that goes out in one order with this, itself included.
    fn conversation(&self, place: usize) -> Vec<usize> {
        let reader = self.work[place].reader;
        let chat = |place: usize| self.events[self.work[place].event].item.chat();
        let together = |other: &usize| {
            let same_chat = self.readers[reader].ordered
                && chat(place).is_some()
                && chat(*other) == chat(place);
            self.work[*other].unfinished()
                && self.work[*other].reader == reader
                && (*other == place || same_chat)
        };
        (0..self.work.len()).filter(together).collect()
    }
}
