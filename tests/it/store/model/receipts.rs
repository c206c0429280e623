//! What workers do with what they were given.

use super::{Model, State};

/// A receipt: it was given to a reader, with an event, by a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) reader: usize,
    pub(crate) event: usize,
    pub(crate) claim: usize,
}

/// How attempts are given up.
#[derive(Clone, Debug)]
pub(crate) struct Nack {
    /// The reader's backoff decides if none.
    pub(crate) delay: Option<i64>,
    pub(crate) error: String,
    pub(crate) dead: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nacked {
    Requeued,
    Dead,
    Stale,
}

impl Model {
    /// Of each whether its work is done by it. A request of one reader says nothing of another's.
    pub(crate) fn ack(&mut self, reader: usize, receipts: &[Given]) -> Vec<bool> {
        let now = self.now;
        let ack = |given: &Given| {
            if let Some(one) = self.held(reader, *given) {
                self.work[one].state = State::Done { claim: given.claim };
                self.work[one].finished = now;
            }
            let of_reader = self.work_of(reader, given.event).filter(|_| given.reader == reader);
            of_reader.is_some_and(|one| self.work[one].state == State::Done { claim: given.claim })
        };
        receipts.iter().map(ack).collect()
    }

    /// What becomes of each.
    pub(crate) fn nack(&mut self, reader: usize, receipts: &[Given], nack: &Nack) -> Vec<Nacked> {
        let held: Vec<Option<usize>> =
            receipts.iter().map(|given| self.held(reader, *given)).collect();
        let mut named: Vec<usize> = held.iter().flatten().copied().collect();
        named.sort_unstable();
        named.dedup();
        let wait = nack.delay.unwrap_or(self.readers[reader].backoff);
        for one in &named {
            self.fail(*one, self.now + wait, nack.dead, &nack.error);
        }
        for one in &named {
            self.give_back_behind(*one);
        }
        let end = |one: usize| match self.work[one].state {
            State::Dead => Nacked::Dead,
            _ => Nacked::Requeued,
        };
        held.into_iter().map(|one| one.map_or(Nacked::Stale, end)).collect()
    }

    /// Of each whether it held its work, which it now does for so long.
    pub(crate) fn extend(
        &mut self,
        reader: usize,
        receipts: &[Given],
        lease: Option<i64>,
    ) -> Vec<bool> {
        let until = self.now + lease.unwrap_or(self.readers[reader].lease);
        let extend = |given: &Given| {
            let held = self.held(reader, *given);
            held.inspect(|one| self.work[*one].due = until).is_some()
        };
        receipts.iter().map(extend).collect()
    }

    /// The work that this receipt holds: nobody finished it, gave it back or claimed it since.
    pub(crate) fn held(&self, reader: usize, given: Given) -> Option<usize> {
        let one = self.work_of(reader, given.event).filter(|_| given.reader == reader)?;
        (self.work[one].state == State::Leased { claim: given.claim }).then_some(one)
    }
}
