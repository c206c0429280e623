//! What is finished and old goes; who it was is known for a while.

use super::{Model, State};

/// Work that was finished no longer ago keeps its event: an hour in the model's unit.
const FINISHED: i64 = 3_600_000_000;

impl Model {
    /// Removes what was received longer ago than `older_than` and what nobody needs any more, to be
    /// known for so long. Gives the number of events.
    pub(crate) fn remove(&mut self, older_than: i64, known_for: i64) -> usize {
        let received = self.now - older_than;
        let finished = self.now - older_than.min(FINISHED);
        let gone: Vec<usize> = (0..self.events.len())
            .filter(|event| {
                let is_old = self.events[*event].received < received;
                is_old && !self.gone(*event) && !self.needed(*event, finished)
            })
            .collect();
        for event in &gone {
            let event = &mut self.events[*event];
            event.known_until = Some(self.now + known_for);
            event.variants.clear();
        }
        self.work.retain(|work| !gone.contains(&work.event));
        self.effects.retain(|_, effect| !gone.contains(&effect.event));
        gone.len()
    }

    /// Forgets the keys of what is gone and whose time is over. Gives their number.
    pub(crate) fn forget(&mut self) -> usize {
        let now = self.now;
        let over = |until: Option<i64>| until.is_some_and(|until| until <= now);
        let before = self.keys.len();
        self.keys.retain(|_, event| !over(self.events[*event].known_until));
        for event in &mut self.events {
            if over(event.known_until) {
                event.variants.clear();
            }
        }
        before - self.keys.len()
    }

    /// Whether the event was removed.
    pub(crate) fn gone(&self, event: usize) -> bool {
        self.events[event].known_until.is_some()
    }

    /// Whether somebody has yet to do with it, or had since that time.
    fn needed(&self, event: usize, since: i64) -> bool {
        let mut work = self.work.iter().filter(|work| work.event == event);
        work.any(|work| !matches!(work.state, State::Done { .. }) || work.finished >= since)
            || self.effects.values().any(|effect| effect.event == event && !effect.finished())
    }
}
