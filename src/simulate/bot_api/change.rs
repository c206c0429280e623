//! Things that happen to a bot's queue behind its client's back.

use super::answer::{self, Reply};
use super::bot::Slot;
use super::journal::{Cause, What};
use super::kind::Allowed;
use super::queue::Queue;
use super::rules::Seconds;
use super::token::BotKey;
use super::update::Update;
use super::world::{Answer, World};

/// One such thing.
#[derive(Clone, Debug)]
pub enum Change {
    /// Everything queued expires now.
    ExpireNow,
    /// Everything queued is dropped; the sequence goes on.
    Drop,
    /// Another consumer confirms the next so many.
    Thief(usize),
    /// The sequence begins anew and what was queued is lost.
    NewSequence(Start),
    /// The server forgets the last so many ids and what was queued under them.
    RollBack(i32),
    /// The server is as it was at a snapshot.
    Restore(Snapshot),
    /// The server restarts, and keeps its queue or loses it together with the last id. The
    /// connections are another matter: [`FakeBotApi::break_connections`].
    ///
    /// [`FakeBotApi::break_connections`]: super::FakeBotApi::break_connections
    Restart {
        /// Whether it keeps it.
        keep_queue: bool,
    },
    /// The queue is filled to its cap.
    Fill,
    /// The last queued update is queued again under a new id.
    Repeat,
    /// Someone else sets `allowed_updates` to this argument.
    Allow(String),
    /// Someone else sets a webhook; empty removes it.
    Webhook(String),
}

/// Where a new sequence begins.
#[derive(Clone, Copy, Debug)]
pub enum Start {
    /// At this id.
    At(i32),
    /// Far below the last.
    Lower,
    /// Far above the last.
    Higher,
    /// So many below the offset that follows from the last delivery: 1 … 10 is where a repeated
    /// offset destroys updates, more repeats ids that the client has stored.
    BelowOffset(i32),
}

/// A bot's queue at some moment.
#[derive(Clone, Debug)]
pub struct Snapshot(Queue);

impl Change {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::ExpireNow => "expire now",
            Self::Drop => "drop",
            Self::Thief(_) => "thief",
            Self::NewSequence(_) => "new sequence",
            Self::RollBack(_) => "roll back",
            Self::Restore(_) => "restore",
            Self::Restart { .. } => "restart",
            Self::Fill => "fill",
            Self::Repeat => "repeat",
            Self::Allow(_) => "allow",
            Self::Webhook(_) => "webhook",
        }
    }
}

impl World {
    /// The queue of `bot`, to be restored later.
    pub fn snapshot(&mut self, bot: impl Into<BotKey>, now: Seconds) -> Snapshot {
        Snapshot(self.bot(bot, now).queue.clone())
    }

    /// Does one such thing.
    pub fn change(&mut self, bot: impl Into<BotKey>, change: &Change, now: Seconds) {
        let key = bot.into();
        match change {
            Change::ExpireNow => self.remove_all(key, Cause::Expired, now),
            Change::Drop => self.remove_all(key, Cause::Dropped, now),
            Change::Thief(count) => {
                let stolen = self.bot(key, now).queue.take_first(*count);
                self.note_gone(key, stolen, Cause::Stolen, now);
            }
            Change::NewSequence(start) => self.start_sequence(key, *start, now),
            Change::RollBack(count) => {
                let undone = self.bot(key, now).queue.roll_back(*count);
                self.note_gone(key, undone, Cause::RolledBack, now);
                self.note_moved(key, now);
            }
            Change::Restore(Snapshot(queue)) => {
                self.bot(key, now).queue = queue.clone();
                self.note_moved(key, now);
            }
            Change::Restart { keep_queue } => self.restart(key, *keep_queue, now),
            Change::Fill => {
                let update = Update::text(0, 0, "fill");
                while self.push(key, &update, now).id().is_some() {}
            }
            Change::Repeat => {
                if let Some(member) = self.bot(key, now).queue.last().map(|e| e.member.clone()) {
                    self.push(key, &Update::raw("message", member), now);
                }
            }
            Change::Allow(argument) => {
                if let Some(allowed) = Allowed::parse(argument) {
                    self.bot(key, now).allowed = allowed;
                }
            }
            Change::Webhook(url) => self.place_webhook(key, url, now),
        }
    }

    pub(super) fn remove_all(&mut self, key: BotKey, cause: Cause, now: Seconds) {
        let removed = self.bot(key, now).queue.clear();
        self.note_gone(key, removed, cause, now);
    }

    /// Sets or removes the webhook; a held request learns of it only when one is set.
    pub(super) fn place_webhook(&mut self, key: BotKey, url: &str, now: Seconds) {
        let timing = self.timing.clone();
        let bot = self.bot(key, now);
        url.clone_into(&mut bot.webhook_url);
        if url.is_empty() {
            return;
        }
        if let Some(Slot { poll, .. }) = bot.slot.take() {
            let at = bot.conflict_at(now, &timing);
            let reply = Reply::error(409, answer::TERMINATED_BY_WEBHOOK);
            self.answer(Answer { request: poll.request, at, reply });
        }
    }

    fn start_sequence(&mut self, key: BotKey, start: Start, now: Seconds) {
        let bot = self.bot(key, now);
        let tail = bot.queue.tail();
        let offset = bot.seen.last_batch.map_or(tail, |id| id + 1);
        let begin = match start {
            Start::At(id) => id,
            Start::Lower => tail / 2,
            Start::Higher => tail.saturating_add(50_000_000),
            Start::BelowOffset(below) => offset.saturating_sub(below),
        };
        // An id is at least 1 here, because a tail of 0 says that there is no sequence.
        let removed = bot.queue.restart_at(begin.max(1));
        self.note_gone(key, removed, Cause::Dropped, now);
        self.note_moved(key, now);
    }

    /// A held request is answered as one that a dying server leaves: 429, retry after 5.
    fn restart(&mut self, key: BotKey, keep_queue: bool, now: Seconds) {
        let bot = self.bot(key, now);
        let slot = bot.slot.take();
        bot.previous_offset = -1;
        bot.previous_start = now - 100.0;
        bot.next_conflict_at = now - 100.0;
        bot.opened_at = now;
        let removed = if keep_queue { Vec::new() } else { bot.queue.restart_at(0) };
        if let Some(Slot { poll, .. }) = slot {
            self.answer(Answer { request: poll.request, at: now, reply: Reply::too_many(5) });
        }
        self.note_gone(key, removed, Cause::Dropped, now);
        if !keep_queue {
            self.note_moved(key, now);
        }
    }

    fn note_gone(
        &mut self,
        key: BotKey,
        removed: Vec<super::queue::Removed>,
        cause: Cause,
        now: Seconds,
    ) {
        let ids = removed.into_iter().map(|(id, _)| id).collect();
        self.journal.note_removed(now, key, ids, cause);
    }

    pub(super) fn note_moved(&mut self, key: BotKey, now: Seconds) {
        let bot = self.bot(key, now);
        bot.seen.highest = None;
        let tail = bot.queue.tail();
        self.journal.note(now, What::SequenceMoved { bot: key, tail });
    }
}
