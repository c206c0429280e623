//! What a claim takes.

use super::{Model, State};

impl Model {
    /// The number of the claim, and events with attempts in the order of work.
    pub(crate) fn claim(
        &mut self,
        reader: usize,
        max: usize,
        lease: Option<i64>,
    ) -> (usize, Vec<(usize, i64)>) {
        self.claims += 1;
        if self.paused[reader] {
            return (self.claims, Vec::new());
        }
        let mut chosen = loop {
            let heads = self.due_heads(reader, max);
            let mut chosen: Vec<usize> =
                heads.iter().flat_map(|head| self.consecutive(*head)).collect();
            chosen.truncate(max);
            let ran_out = heads
                .into_iter()
                .filter(|head| chosen.contains(head) && self.work[*head].leased())
                .collect::<Vec<_>>();
            let is_last = |one: usize| self.work[one].attempt >= self.readers[reader].max_attempts;
            let spent: Vec<usize> = ran_out.iter().copied().filter(|one| is_last(*one)).collect();
            let over = if spent.is_empty() { &ran_out } else { &spent };
            for one in over {
                // It is due as it has been since.
                self.fail(*one, self.work[*one].due, false, "the lease ran out");
                self.give_back_behind(*one);
            }
            if spent.is_empty() {
                break chosen;
            }
        };
        let lease = lease.unwrap_or(self.readers[reader].lease);
        for one in &chosen {
            let work = &mut self.work[*one];
            assert!(work.due <= self.now && work.state == State::Ready, "leased to two");
            work.attempt += 1;
            work.due = self.now + lease;
            work.state = State::Leased { claim: self.claims };
        }
        chosen.sort_by_key(|one| self.work[*one].place);
        let claimed = chosen.iter().map(|one| &self.work[*one]);
        (self.claims, claimed.map(|work| (work.event, work.attempt)).collect())
    }

    /// An attempt ended badly: the work waits until `due`, or is dead.
    pub(super) fn fail(&mut self, one: usize, due: i64, dead: bool, error: &str) {
        let work = &mut self.work[one];
        work.failures.push((work.attempt, error.to_owned()));
        if work.failures.len() > 10 {
            work.failures.remove(0);
        }
        work.due = due;
        work.state = State::Ready;
        if dead || work.attempt >= self.readers[work.reader].max_attempts {
            work.state = State::Dead;
            work.finished = self.now;
        }
    }

    /// What is leased behind this in its conversation comes back with it, and has not counted.
    pub(super) fn give_back_behind(&mut self, one: usize) {
        for other in self.conversation(one) {
            let place = self.work[one].place;
            let other = &mut self.work[other];
            if other.place > place && other.leased() {
                other.attempt -= 1;
                other.state = State::Ready;
                other.due = self.now;
            }
        }
    }

    fn due_heads(&self, reader: usize, max: usize) -> Vec<usize> {
        let mut heads = self.heads(reader);
        heads.retain(|head| self.work[*head].due <= self.now);
        heads.sort_by_key(|head| (self.work[*head].due, self.work[*head].place));
        heads.truncate(max);
        heads
    }

    /// What can go out with this head without leaving out any of its conversation: what is due, and
    /// what comes back with the head because its lease ran out.
    fn consecutive(&self, head: usize) -> Vec<usize> {
        let ran_out = self.work[head].leased();
        let goes =
            |one: &usize| self.work[*one].due <= self.now || (ran_out && self.work[*one].leased());
        self.conversation(head).into_iter().take_while(goes).collect()
    }
}
