//! Finished work that becomes due again.

use super::{Model, State};

/// Which finished work is meant: that of events for which all that is given holds.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    pub(crate) dead: bool,
    pub(crate) events: Option<Vec<usize>>,
    pub(crate) chat: Option<u8>,
    pub(crate) rare: Option<bool>,
}

/// One that goes on in steps.
#[derive(Clone, Debug)]
pub(crate) struct Replay {
    pub(crate) reader: usize,
    pub(crate) selection: Selection,
    /// Events before this one are behind it.
    next: usize,
    /// Events that there were when it began.
    end: usize,
    began: i64,
}

impl Model {
    /// One that begins now.
    pub(crate) fn begin_replay(&self, reader: usize, selection: Selection) -> Replay {
        Replay { reader, selection, next: 0, end: self.events.len(), began: self.now }
    }

    /// Takes it on up to this event, and tells how much work is due again: in order of receipt
    /// behind all work there is, as if it were new.
    pub(crate) fn replay(&mut self, replay: &mut Replay, end: Option<usize>) -> usize {
        let end = end.unwrap_or(replay.end);
        assert!(replay.next <= end && end <= replay.end, "it goes on, and not beyond its end");
        let mut count = 0;
        for event in replay.next..end {
            let Some(one) = self.work_of(replay.reader, event) else { continue };
            if self.meant(one, replay) {
                count += 1;
                self.places += 1;
                let work = &mut self.work[one];
                (work.place, work.state, work.attempt) = (self.places, State::Ready, 0);
                work.due = self.now;
                work.failures.clear();
            }
        }
        replay.next = end;
        count
    }

    fn meant(&self, one: usize, replay: &Replay) -> bool {
        let Selection { dead, events, chat, rare } = &replay.selection;
        let work = &self.work[one];
        let item = &self.events[work.event].item;
        !work.unfinished()
            && work.finished <= replay.began
            && (!dead || work.state == State::Dead)
            && events.as_ref().is_none_or(|events| events.contains(&work.event))
            && chat.is_none_or(|chat| item.chat() == Some(chat))
            && rare.is_none_or(|rare| item.rare() == rare)
    }
}
