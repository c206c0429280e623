//! The inbox as a reader of its contract would write it down: plain lists, no database.

mod claims;
mod effects;
mod receipts;
mod replay;
mod retention;

use std::collections::BTreeMap;

pub(crate) use self::effects::{Begun, Effect, EffectState};
pub(crate) use self::receipts::{Given, Nack, Nacked};
pub(crate) use self::replay::{Replay, Selection};

/// A consumer's settings; times in the model's unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader {
    pub(crate) name: &'static str,
    /// Whether events of one conversation go out in order.
    pub(crate) ordered: bool,
    pub(crate) max_attempts: i64,
    /// Whether it wants nothing but rare events.
    pub(crate) rare_only: bool,
    /// How long a claim holds unless it says otherwise.
    pub(crate) lease: i64,
    /// How long failed work waits unless the worker says otherwise.
    pub(crate) backoff: i64,
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
        [None, Some(0), Some(0), Some(1), Some(1)][usize::from(self.header) % 5]
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
    received: i64,
    pub(crate) receipts: i64,
    /// Receipts of other bodies.
    pub(crate) variants: BTreeMap<u8, i64>,
    /// Until when its keys are known, once it is removed.
    known_until: Option<i64>,
}

#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) reader: usize,
    pub(crate) event: usize,
    /// Its place in the order of work.
    pub(crate) place: usize,
    pub(crate) state: State,
    pub(crate) attempt: i64,
    /// Claimable from, or leased until.
    pub(crate) due: i64,
    /// When it became done or dead for the last time.
    finished: i64,
    /// Number and error of the last ten failed attempts, oldest first.
    pub(crate) failures: Vec<(i64, String)>,
}

impl Work {
    pub(crate) fn unfinished(&self) -> bool {
        matches!(self.state, State::Ready | State::Leased { .. })
    }

    pub(crate) fn leased(&self) -> bool {
        matches!(self.state, State::Leased { .. })
    }
}

/// All of it. Events go by their place in the order of receipt, work by its place in its list,
/// claims and tokens by their number; time is in any unit.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) now: i64,
    pub(crate) events: Vec<Event>,
    pub(crate) work: Vec<Work>,
    readers: Vec<Reader>,
    paused: Vec<bool>,
    keys: BTreeMap<(char, u8), usize>,
    claims: usize,
    /// The last place that was given out.
    places: usize,
    effects: BTreeMap<(usize, u8), Effect>,
    tokens: usize,
}

impl Model {
    pub(crate) fn new(readers: &[Reader]) -> Model {
        Model {
            now: 0,
            events: Vec::new(),
            work: Vec::new(),
            readers: readers.to_vec(),
            paused: vec![false; readers.len()],
            keys: BTreeMap::new(),
            claims: 0,
            places: 0,
            effects: BTreeMap::new(),
            tokens: 0,
        }
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
        self.events.push(Event {
            item: item.clone(),
            received: self.now,
            receipts: 1,
            variants: BTreeMap::new(),
            known_until: None,
        });
        self.places += 1;
        for (reader, settings) in self.readers.iter().enumerate() {
            if item.rare() || !settings.rare_only {
                self.work.push(Work {
                    reader,
                    event,
                    place: self.places,
                    state: State::Ready,
                    attempt: 0,
                    due: self.now,
                    finished: 0,
                    failures: Vec::new(),
                });
            }
        }
        (Outcome::Stored, event)
    }

    /// How many keys are known.
    pub(crate) fn known(&self) -> usize {
        self.keys.len()
    }

    /// Lets a reader rest, or ends that.
    pub(crate) fn pause(&mut self, reader: usize, paused: bool) {
        self.paused[reader] = paused;
    }

    pub(crate) fn paused(&self, reader: usize) -> bool {
        self.paused[reader]
    }

    /// How long until something is claimable.
    pub(crate) fn next_due(&self, reader: usize) -> Option<i64> {
        if self.paused[reader] {
            return None;
        }
        let heads = self.heads(reader).into_iter().map(|head| self.work[head].due);
        heads.min().map(|due| (due - self.now).max(0))
    }

    /// A reader's work, in its order.
    pub(crate) fn in_order(&self, reader: usize) -> Vec<usize> {
        let mut all: Vec<usize> =
            (0..self.work.len()).filter(|one| self.work[*one].reader == reader).collect();
        all.sort_by_key(|one| self.work[*one].place);
        all
    }

    /// Unfinished work that nothing unfinished must go before.
    fn heads(&self, reader: usize) -> Vec<usize> {
        let mut heads = self.in_order(reader);
        heads.retain(|one| self.work[*one].unfinished());
        heads.retain(|one| self.conversation(*one).first() == Some(one));
        heads
    }

    /// The unfinished work that goes out in one order with this, itself included if it is
    /// unfinished, in that order.
    fn conversation(&self, of: usize) -> Vec<usize> {
        let reader = self.work[of].reader;
        let chat = |one: usize| self.events[self.work[one].event].item.chat();
        let mut all = self.in_order(reader);
        all.retain(|other| {
            let together = self.readers[reader].ordered && chat(of).is_some();
            let same = *other == of || (together && chat(*other) == chat(of));
            same && self.work[*other].unfinished()
        });
        all
    }

    fn work_of(&self, reader: usize, event: usize) -> Option<usize> {
        let mut all = 0..self.work.len();
        all.find(|one| (self.work[*one].reader, self.work[*one].event) == (reader, event))
    }
}
