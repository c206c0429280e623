//! Questions to the journal that decide whether the product did right.
//!
//! Each is true of the time up to now, so it may be asked at any moment.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::RangeInclusive;

use bytes::Bytes;

use super::bot::RequestId;
use super::journal::{Answered, Journal, Loss, Received, What};
use super::rules::Seconds;
use super::token::BotKey;

/// Two `getUpdates` requests of one bot that were open at the same time.
#[derive(Clone, Debug, PartialEq)]
pub struct Overlap {
    /// The one that came first.
    pub older: RequestId,
    /// The one that came while it was open.
    pub newer: RequestId,
    /// How long both were open.
    pub lasted: Seconds,
}

impl Journal {
    /// Every request with the moment it arrived.
    pub fn requests(&self) -> impl Iterator<Item = (Seconds, &Received)> {
        self.entries().iter().filter_map(|entry| match &entry.what {
            What::Received(received) => Some((entry.at, received)),
            _ => None,
        })
    }

    /// Every `getUpdates` request with the moment it arrived.
    pub fn polls(&self) -> impl Iterator<Item = (Seconds, &Received)> {
        self.requests().filter(|(_, received)| received.method == "getupdates")
    }

    /// Every answer in the order written.
    pub fn answers(&self) -> impl Iterator<Item = &Answered> {
        self.entries().iter().filter_map(|entry| match &entry.what {
            What::Answered(answered) => Some(answered),
            _ => None,
        })
    }

    /// Updates deleted by an offset that no answer had ever held, and no excuse for it.
    pub fn unexcused_losses(&self) -> Vec<&Loss> {
        self.losses().filter(|loss| !loss.excused).collect()
    }

    /// Updates deleted by an offset that no answer had ever held.
    pub fn losses(&self) -> impl Iterator<Item = &Loss> {
        self.entries().iter().filter_map(|entry| match &entry.what {
            What::LostUnseen(loss) => Some(loss),
            _ => None,
        })
    }

    /// The exact bytes of every update that any answer held, even one that was cut off. Whatever
    /// the product has stored is among these.
    pub fn sent_updates(&self) -> BTreeSet<Bytes> {
        self.answers().flat_map(|answer| &answer.updates).map(|(_, bytes)| bytes.clone()).collect()
    }

    /// The exact bytes of every update in an answer that was written to the end. A product that
    /// lived on has stored all of these; one that was killed has those it got again.
    pub fn whole_updates(&self) -> BTreeSet<Bytes> {
        self.whole_answers().map(|(_, bytes)| bytes.clone()).collect()
    }

    fn whole_answers(&self) -> impl Iterator<Item = &(i32, Bytes)> {
        self.answers().filter(|answer| answer.whole).flat_map(|answer| &answer.updates)
    }

    /// How many requests arrived in `from ..= to`.
    pub fn requests_between(&self, from: Seconds, to: Seconds) -> usize {
        self.requests().filter(|(at, _)| (from..=to).contains(at)).count()
    }

    /// The most requests that arrived within any `window`.
    pub fn busiest_window(&self, window: Seconds) -> usize {
        let times: Vec<Seconds> = self.requests().map(|(at, _)| at).collect();
        let mut first = 0;
        let mut most = 0;
        for (last, at) in times.iter().enumerate() {
            while at - times[first] > window {
                first += 1;
            }
            most = most.max(last + 1 - first);
        }
        most
    }

    /// Polls of one bot that were open at once for longer than `grace`. Some is needed after a
    /// kill, because the server learns of the closed connection a little later than the next
    /// process connects.
    pub fn overlaps(&self, grace: Seconds) -> Vec<Overlap> {
        let mut ends: HashMap<RequestId, Seconds> = HashMap::new();
        for entry in self.entries() {
            if let What::Answering { request }
            | What::ClientGone { request }
            | What::Answered(Answered { request, .. }) = entry.what
            {
                ends.entry(request).or_insert(entry.at);
            }
        }
        let until = self.entries().last().map_or(0.0, |entry| entry.at);
        let mut overlaps = Vec::new();
        let mut open: Vec<(Option<BotKey>, RequestId, Seconds)> = Vec::new();
        for (at, poll) in self.polls() {
            let end = ends.get(&poll.request).copied().unwrap_or(until);
            open.retain(|(_, _, older_end)| *older_end > at);
            for (bot, older, older_end) in &open {
                let lasted = older_end.min(end) - at;
                if *bot == poll.bot && lasted > grace {
                    overlaps.push(Overlap { older: *older, newer: poll.request, lasted });
                }
            }
            open.push((poll.bot, poll.request, end));
        }
        overlaps
    }

    /// The holes a client can see: ids that left the queue without it, between two ids that it
    /// received. One list for each sequence, oldest first. Received is what a whole answer held,
    /// so a client that was killed with it in hand may see more.
    pub fn gaps(&self, bot: impl Into<BotKey>) -> Vec<Vec<RangeInclusive<i32>>> {
        let bot = bot.into();
        let mine: HashSet<RequestId> = self
            .polls()
            .filter(|(_, poll)| poll.bot == Some(bot))
            .map(|(_, p)| p.request)
            .collect();
        let mut sequences = vec![Sequence::default()];
        for entry in self.entries() {
            let Some(now) = sequences.last_mut() else { continue };
            match &entry.what {
                What::SequenceMoved { bot: moved, .. } if *moved == bot => {
                    sequences.push(Sequence::default());
                }
                What::Removed { bot: of, ids, .. } if *of == bot => now.gone.extend(ids),
                What::LostUnseen(loss) if loss.bot == bot => now.gone.extend(&loss.ids),
                What::DeletedNegative { bot: of, updates, .. } if *of == bot => {
                    now.gone.extend(updates.iter().map(|(id, _)| id));
                }
                What::Answered(answer) if answer.whole && mine.contains(&answer.request) => {
                    now.received.extend(answer.updates.iter().map(|(id, _)| id));
                }
                _ => {}
            }
        }
        sequences.iter().map(Sequence::gaps).collect()
    }

    /// The `allowed_updates` of every poll; `None` where it was left out.
    pub fn allowed_lists(&self) -> Vec<Option<&str>> {
        self.polls().map(|(_, poll)| poll.args.get("allowed_updates")).collect()
    }

    /// How many faults of each class were done.
    pub fn faults_by_class(&self) -> BTreeMap<&'static str, u64> {
        let mut counts = BTreeMap::new();
        for entry in self.entries() {
            if let What::Faulted { class, .. } = entry.what {
                *counts.entry(class).or_default() += 1;
            }
        }
        counts
    }
}

#[derive(Default)]
struct Sequence {
    gone: BTreeSet<i32>,
    received: BTreeSet<i32>,
}

impl Sequence {
    fn gaps(&self) -> Vec<RangeInclusive<i32>> {
        let (Some(first), Some(last)) = (self.received.first(), self.received.last()) else {
            return Vec::new();
        };
        let mut ranges: Vec<RangeInclusive<i32>> = Vec::new();
        for id in self.gone.range(first..=last).filter(|id| !self.received.contains(id)) {
            match ranges.last_mut() {
                Some(range) if *range.end() + 1 == *id => *range = *range.start()..=*id,
                _ => ranges.push(*id..=*id),
            }
        }
        ranges
    }
}
