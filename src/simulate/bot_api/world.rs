//! The server without its sockets: bots, held requests, answers and time as a number.
//!
//! A caller says what time it is, hands in requests, and takes the answers, each with the moment
//! at which it is to be written. Nothing here waits, so a test runs through hours at once.

use std::collections::{BTreeMap, HashMap};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::answer::{self, Reply};
use super::args::Args;
use super::bot::{Bot, Poll, RequestId, Slot};
use super::fault::Action;
use super::journal::{Cause, Journal, Loss, What};
use super::kind::Allowed;
use super::queue::{Pushed, Removed};
use super::rules::{FIRST_IDS, Limits, Seconds, Timing};
use super::selector::{Faults, Selector};
use super::token::BotKey;
use super::update::Update;

/// An answer that a caller has to deliver.
#[derive(Clone, Debug)]
pub struct Answer {
    /// To which request.
    pub request: RequestId,
    /// Not before this moment.
    pub at: Seconds,
    /// What it says.
    pub reply: Reply,
}

/// Updates that a request has just deleted as confirmed, to be judged before its answer goes out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confirmation {
    /// The bot.
    pub bot: BotKey,
    /// The request.
    pub request: RequestId,
    /// Id and number of deliveries of each.
    pub updates: Vec<Removed>,
}

/// What a step has brought about.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Updates were confirmed.
    Confirmed(Confirmation),
    /// A request is answered.
    Answered(Answer),
}

/// The whole state.
#[derive(Debug)]
pub struct World {
    /// The server's durations.
    pub timing: Timing,
    /// The server's limits.
    pub limits: Limits,
    /// Malformed tokens are answered 404, as by what stands before the cloud's servers.
    pub cloud_front: bool,
    /// Whether careless requests are written down as violations.
    pub strict: bool,
    pub(super) bots: BTreeMap<BotKey, Bot>,
    pub(super) tokens: HashMap<(String, bool), BotKey>,
    pub(super) journal: Journal,
    pub(super) faults: Faults,
    pub(super) violations: Vec<String>,
    pub(super) last_request: RequestId,
    pub(super) rng: StdRng,
    effects: Vec<Effect>,
}

impl World {
    /// An empty world whose random draws follow from `seed`.
    pub fn new(timing: Timing, seed: u64) -> Self {
        Self {
            timing,
            limits: Limits::default(),
            cloud_front: false,
            strict: true,
            bots: BTreeMap::new(),
            tokens: HashMap::new(),
            journal: Journal::default(),
            faults: Faults::default(),
            violations: Vec::new(),
            last_request: 0,
            rng: StdRng::seed_from_u64(seed),
            effects: Vec::new(),
        }
    }

    /// The bot, which exists from the first time it is named.
    pub fn bot(&mut self, bot: impl Into<BotKey>, now: Seconds) -> &mut Bot {
        let key = bot.into();
        self.bots.entry(key).or_insert_with(|| Bot::new(key, now))
    }

    /// The bot as it is, if it has been named.
    pub fn find(&self, bot: impl Into<BotKey>) -> Option<&Bot> {
        self.bots.get(&bot.into())
    }

    /// Makes `token` good for `bot`; an earlier token stays good, as in a rotation.
    pub fn add_token(&mut self, bot: impl Into<BotKey>, token: &str, now: Seconds) {
        let key = bot.into();
        self.bot(key, now);
        self.tokens.insert((token.to_owned(), key.test_dc), key);
    }

    /// Makes `token` good for nothing.
    pub fn revoke(&mut self, token: &str) {
        self.tokens.retain(|(known, _), _| known != token);
    }

    /// Arms a fault.
    pub fn arm(&mut self, selector: Selector, action: Action) {
        self.faults.arm(selector, action);
    }

    /// Disarms every fault.
    pub fn clear_faults(&mut self) {
        self.faults.clear();
    }

    /// What happened so far.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// What the strict lint and the confirmation check have found.
    pub fn violations(&self) -> &[String] {
        &self.violations
    }

    /// Says that a process of the client starts, whose first call may hold an old offset.
    pub fn client_starts(&mut self) {
        for bot in self.bots.values_mut() {
            bot.seen.called = false;
        }
    }

    /// Takes what the steps since the last call have brought about, in order.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    pub(super) fn answer(&mut self, answer: Answer) {
        self.effects.push(Effect::Answered(answer));
    }

    /// Queues an update for its kind's lifetime from now, or its own.
    pub fn push(&mut self, bot: impl Into<BotKey>, update: &Update, now: Seconds) -> Pushed {
        let key = bot.into();
        let Self { bots, journal, timing, limits, rng, .. } = self;
        let bot = bots.entry(key).or_insert_with(|| Bot::new(key, now));
        if !bot.allowed.admits(update.kind()) {
            journal.note(now, What::Filtered { bot: key, kind: update.kind().to_owned() });
            return Pushed::Filtered;
        }
        let lifetime = update.lifetime();
        let expires_at = if lifetime > 0.0 { now + lifetime } else { 0.0 };
        let (stored, wrapped) = bot
            .queue
            .push(update.member().clone(), expires_at, limits, || rng.random_range(FIRST_IDS));
        let id = match stored {
            Ok(id) => id,
            Err(reason) => {
                journal.note(now, What::Refused { bot: key, reason });
                return Pushed::Refused(reason);
            }
        };
        if bot.webhook_url.is_empty()
            && let Some(slot) = &mut bot.slot
        {
            slot.wake(now, timing);
        }
        if !wrapped.is_empty() {
            let ids = wrapped.into_iter().map(|(id, _)| id).collect();
            journal.note_removed(now, key, ids, Cause::Wrapped);
            self.note_moved(key, now);
        }
        Pushed::Stored(id)
    }

    /// Runs one `getUpdates` up to its answer or until it is held.
    pub fn get_updates(
        &mut self,
        bot: impl Into<BotKey>,
        request: RequestId,
        args: &Args,
        now: Seconds,
    ) {
        let key = bot.into();
        let offset = args.integer("offset", 0, i32::MIN..=i32::MAX);
        let limit = args.integer("limit", 100, 1..=100);
        let timeout = f64::from(args.integer("timeout", 0, 0..=i32::MAX));
        let timing = self.timing.clone();
        let bot = self.bot(key, now);
        if !bot.webhook_url.is_empty() {
            let at = bot.conflict_at(now, &timing);
            return self.answer(Answer { request, at, reply: Bot::webhook_conflict() });
        }
        if let Some(allowed) = args.get("allowed_updates").and_then(Allowed::parse) {
            bot.allowed = allowed;
        }
        // The clamp leaves 1 … 100, so the cast loses nothing.
        let limit = usize::try_from(limit).unwrap_or(1);
        let (timeout, limit) =
            bot.throttle(offset, timeout.min(timing.hold_max), limit, now, &timing);
        self.run(key, Poll { request, offset, limit }, timeout, now, false);
    }

    fn run(&mut self, key: BotKey, poll: Poll, timeout: Seconds, now: Seconds, held: bool) {
        let limits = self.limits.clone();
        let bot = self.bot(key, now);
        let fetched = bot.queue.fetch(poll.offset, poll.limit, now, &limits);
        // Only a batch's own confirmation is excused, not a request that repeats the offset.
        let fresh = !held
            && !bot.seen.settled
            && bot.seen.last_batch.is_some_and(|id| id + 1 == poll.offset);
        let excused = fresh || (!held && !bot.seen.called);
        if fresh && fetched.ids.is_empty() {
            bot.seen.settling = Some(poll.request);
        }
        self.note_confirmed(key, poll.request, fetched.confirmed, excused, now);
        if !fetched.cut.is_empty() {
            let (updates, request) = (fetched.cut, poll.request);
            self.journal.note(now, What::DeletedNegative { bot: key, updates, request });
        }
        self.journal.note_removed(now, key, fetched.expired, Cause::Expired);
        if timeout > 0.0 && fetched.ids.is_empty() {
            return self.hold(key, poll, now + timeout, now);
        }
        let bot = self.bot(key, now);
        let batch = bot.queue.deliver(&fetched.ids, &limits);
        let ids: Vec<i32> = batch.iter().map(|(id, _)| *id).collect();
        if let Some(last) = ids.last() {
            bot.seen.highest = bot.seen.highest.max(Some(*last));
            bot.seen.last_batch = Some(*last);
            bot.seen.settled = false;
            self.journal.note(now, What::Delivered { bot: key, ids, request: poll.request });
        }
        self.answer(Answer { request: poll.request, at: now, reply: Reply::Updates(batch) });
    }

    fn note_confirmed(
        &mut self,
        bot: BotKey,
        request: RequestId,
        updates: Vec<Removed>,
        excused: bool,
        now: Seconds,
    ) {
        if updates.is_empty() {
            return;
        }
        let unseen: Vec<i32> =
            updates.iter().filter(|(_, delivered)| *delivered == 0).map(|(id, _)| *id).collect();
        let confirmation = Confirmation { bot, request, updates: updates.clone() };
        self.journal.note(now, What::Confirmed { bot, updates, request });
        if !unseen.is_empty() {
            self.journal.note(now, What::LostUnseen(Loss { bot, ids: unseen, request, excused }));
        }
        self.effects.push(Effect::Confirmed(confirmation));
    }

    /// The newer request wins the slot; the older one is told so.
    fn hold(&mut self, key: BotKey, poll: Poll, deadline: Seconds, now: Seconds) {
        let timing = self.timing.clone();
        let bot = self.bot(key, now);
        if let Some(older) = bot.slot.replace(Slot { poll, deadline, wake: None }) {
            let at = bot.conflict_at(now, &timing);
            let reply = Reply::error(409, answer::TERMINATED_BY_POLL);
            self.answer(Answer { request: older.poll.request, at, reply });
        }
    }

    /// When a 409 that arises now is answered.
    pub(super) fn conflict_at(&mut self, key: BotKey, now: Seconds) -> Seconds {
        let timing = self.timing.clone();
        self.bot(key, now).conflict_at(now, &timing)
    }

    /// The next moment at which a held request is answered.
    pub fn next_due(&self) -> Option<Seconds> {
        self.bots
            .values()
            .filter_map(|bot| bot.slot.as_ref().map(Slot::due))
            .min_by(Seconds::total_cmp)
    }

    /// Answers the held requests that are due by `now`.
    pub fn advance(&mut self, now: Seconds) {
        let due: Vec<BotKey> = self
            .bots
            .values()
            .filter(|bot| bot.slot.as_ref().is_some_and(|slot| slot.due() <= now))
            .map(|bot| bot.key)
            .collect();
        for key in due {
            if let Some(slot) = self.bot(key, now).slot.take() {
                let at = slot.due();
                self.run(key, slot.poll, 0.0, at, true);
            }
        }
    }

    /// Says that the answer to `request` has been written, or given up. After a whole answer its
    /// client knows that a batch is confirmed, and is no longer a process that just started.
    pub(super) fn settle(&mut self, bot: BotKey, request: RequestId, whole: bool) {
        let Some(bot) = self.bots.get_mut(&bot).filter(|_| whole) else { return };
        bot.seen.called = true;
        if bot.seen.settling == Some(request) {
            bot.seen.settling = None;
            bot.seen.settled = true;
        }
    }
}
