//! The duty of whoever holds a bot's lease: poll, commit, confirm.
//!
//! The offset goes out only to confirm: once at a start and after each commit, on polls that the
//! server does not hold, until one comes back empty. The long polls that follow leave it out,
//! because an offset that is repeated while nothing comes gains nothing, and would destroy up to ten
//! unseen updates if the server's own counter had been rolled back meanwhile.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::answer::Trouble;
use super::batch::{self, Update};
use super::bot_api::{BotApi, Poll};
use super::lease::{Lease, Lost};
use super::poller::Bot;
use super::state::{State, Words, words, worth_a_line};
use crate::clock::Time;
use crate::event::Appended;
use crate::inbox::{Checkpoint, StoreError};
use crate::source::{GapReason, NewGap, Poller};

/// Updates in one answer, at most: the server's own limit.
const LIMIT: u32 = 100;

/// What the polls of one turn share with what runs beside them.
pub(super) struct Duty<'a> {
    bot: &'a Bot,
    state: &'a State,
    lease: &'a Lease<'a>,
    /// The bot's id.
    account: i64,
    /// Good answers so far.
    good: AtomicU64,
}

/// How badly it goes. Outlasts a turn, so that what fails again in the next is not hurried.
pub(super) struct Misses {
    /// Answers in a row that were no good.
    pub(super) answers: u32,
    /// Batches in a row that were not committed or held nothing new.
    pub(super) batches: u32,
    /// How many updates to ask for: fewer on a line or a store that is too slow for many.
    limit: u32,
}

impl Default for Misses {
    fn default() -> Misses {
        Misses { answers: 0, batches: 0, limit: LIMIT }
    }
}

impl Misses {
    /// A batch was perhaps too much for the store.
    pub(super) fn commit_failed(&mut self) {
        self.batches += 1;
        self.limit = (self.limit / 2).max(1);
    }

    fn answer_failed(&mut self, trouble: &Trouble) {
        self.answers += 1;
        if matches!(trouble, Trouble::Network(_)) {
            self.limit = (self.limit / 2).max(1);
        }
    }

    fn progress(&mut self) {
        (self.answers, self.batches) = (0, 0);
        self.limit = (self.limit * 2).min(LIMIT);
    }
}

/// Where the polls have come to.
struct Place {
    /// What the next confirmation sends.
    next_offset: Option<i64>,
    /// Whether that confirmation is still to be made.
    confirm: bool,
    /// Until when a good poll covers the time.
    covered: Option<Time>,
    /// Polls in a row that were to be held and came back empty at once.
    empties: u32,
}

impl<'a> Duty<'a> {
    pub(super) fn new(
        bot: &'a Bot,
        state: &'a State,
        lease: &'a Lease<'a>,
        account: i64,
    ) -> Duty<'a> {
        Duty { bot, state, lease, account, good: AtomicU64::new(0) }
    }

    /// Polls for as long as the lease is ours.
    pub(super) async fn polls(
        &self,
        api: &mut BotApi,
        poller: &Poller,
        misses: &mut Misses,
    ) -> Lost {
        let mut place = Place {
            next_offset: poller.next_offset,
            confirm: sendable(poller.next_offset),
            covered: poller.last_ok_at,
            empties: 0,
        };
        match self.poll_on(api, &mut place, misses).await {
            Err(lost) => lost,
            Ok(never) => match never {},
        }
    }

    async fn poll_on(
        &self,
        api: &mut BotApi,
        place: &mut Place,
        misses: &mut Misses,
    ) -> Result<Infallible, Lost> {
        let allowed = self.bot.config.updates.allowed();
        let held = self.bot.config.poll_timeout.as_secs();
        loop {
            let poll = Poll {
                offset: place.next_offset.filter(|_| place.confirm),
                limit: misses.limit,
                timeout: if place.confirm { 0 } else { held },
                allowed_updates: &allowed,
            };
            let (started, begun) = (self.bot.clock.now(), Instant::now());
            let answer = self.lease.keeping(api.get_updates(&poll)).await?;
            let cut = |body: Vec<u8>| batch::cut(body.into());
            let batch = answer
                .and_then(|body| cut(body).ok_or(Trouble::Odd("its result is no list of updates")));
            let dealt = async {
                let batch = match batch {
                    Err(trouble) => return self.met(&trouble, api, misses).await,
                    Ok(batch) => batch,
                };
                self.good.fetch_add(1, Ordering::Relaxed);
                self.lease.set_healthy(true);
                misses.answers = 0;
                let silence = self.silence(place.covered, started);
                if batch.is_empty() {
                    let at_once = begun.elapsed() < self.bot.pace.held(held).mul_f64(0.8);
                    self.empty(at_once, silence, place, misses).await
                } else {
                    self.take(&batch, silence, place, misses).await
                }
            };
            let wait = self.lease.keeping(dealt).await??;
            if !wait.is_zero() {
                self.lease.keeping(tokio::time::sleep(wait)).await?;
            }
        }
    }

    /// An answer that brings nothing: say so, and wait.
    async fn met(
        &self,
        trouble: &Trouble,
        api: &mut BotApi,
        misses: &mut Misses,
    ) -> Result<Duration, Lost> {
        misses.answer_failed(trouble);
        self.lease.set_healthy(false);
        // Whoever has the lease now speaks for the bot.
        self.lease.is_ours().await?;
        let mut words = words(trouble, &self.bot.config.name);
        if *trouble == Trouble::Webhook
            && let Ok(info) = api.get_webhook_info().await
            && let Some(host) = info.host()
        {
            words.detail = format!("{} (it points to {host})", words.detail);
        }
        let worth = misses.answers >= worth_a_line(trouble);
        self.state.bad(&self.bot.inbox, words, worth).await;
        if trouble.is_of_the_line() {
            api.reconnect();
        }
        Ok(self.bot.pace.trouble(trouble, misses.answers))
    }

    /// A good answer without updates. A confirmation that comes back so has been made.
    async fn empty(
        &self,
        at_once: bool,
        silence: Vec<NewGap>,
        place: &mut Place,
        misses: &mut Misses,
    ) -> Result<Duration, Lost> {
        let now = self.bot.clock.now();
        if !silence.is_empty() {
            self.warn(&silence);
            self.lease.renew(silence).await?;
        }
        place.covered = Some(now);
        if !place.confirm && !at_once {
            // Held to its end, so there is nothing that could not be taken in.
            misses.progress();
        }
        if misses.batches == 0 {
            self.state.ok(&self.bot.inbox).await;
        }
        if place.confirm {
            place.confirm = false;
            return Ok(Duration::ZERO);
        }
        place.empties = if at_once { place.empties + 1 } else { 0 };
        Ok(if at_once { self.bot.pace.empty(place.empties) } else { Duration::ZERO })
    }

    /// A batch: committed with its offset and what it tells of losses, in one transaction.
    async fn take(
        &self,
        batch: &[Update],
        silence: Vec<NewGap>,
        place: &mut Place,
        misses: &mut Misses,
    ) -> Result<Duration, Lost> {
        let now = self.bot.clock.now();
        let gaps = self.losses(batch, place, silence, now).await.map_err(Lost)?;
        let event = |update: &Update| update.event(self.bot.source, self.account, now);
        let events = batch.iter().map(event).collect();
        let next_offset = batch::next_offset(batch);
        let checkpoint = self.lease.checkpoint();
        let checkpoint = Checkpoint { next_offset, gaps, ok_at: Some(now), ..checkpoint };
        let appended = self.bot.inbox.receive_batch(events, checkpoint).await.map_err(Lost)?;
        place.covered = Some(now);
        place.empties = 0;
        place.next_offset = next_offset.or(place.next_offset);
        place.confirm = sendable(place.next_offset);
        let progress =
            next_offset.is_some() && appended.iter().any(|one| matches!(one, Appended::Stored(_)));
        if progress {
            misses.progress();
            self.state.ok(&self.bot.inbox).await;
            return Ok(Duration::ZERO);
        }
        misses.batches += 1;
        let detail = "Telegram sends again what is stored already, or only updates without a usable \
                      id; it is asked again with patience";
        let words = Words { name: "no_progress", detail: detail.to_owned() };
        if misses.batches > 1 {
            self.state.bad(&self.bot.inbox, words, misses.batches > 2).await;
        }
        Ok(self.bot.pace.no_progress(misses.batches))
    }

    async fn losses(
        &self,
        batch: &[Update],
        place: &Place,
        silence: Vec<NewGap>,
        now: Time,
    ) -> Result<Vec<NewGap>, StoreError> {
        let usable: Vec<(i64, &Update)> =
            batch.iter().filter_map(|one| Some((one.facts.update_id?, one))).collect();
        let again = |expected: i64| usable.iter().any(|(id, _)| *id < expected);
        // Only an id below what was expected can be one that the store has.
        let known = if place.next_offset.is_none_or(again) {
            let keys = usable.iter().map(|(_, update)| update.key()).collect();
            self.bot.inbox.known(self.bot.source, keys).await?
        } else {
            vec![false; usable.len()]
        };
        let ids: Vec<(i64, bool)> =
            usable.iter().zip(known).map(|((id, _), known)| (*id, !known)).collect();
        let mut gaps = silence;
        gaps.extend(batch::losses(place.next_offset, &ids, now));
        self.warn(&gaps);
        Ok(gaps)
    }

    fn warn(&self, gaps: &[NewGap]) {
        for gap in gaps {
            tracing::warn!("bot {}: possible loss: {}", self.bot.config.name, gap.detail);
        }
    }

    /// The possible loss of a time without a good poll, from `covered` to the start of this one.
    fn silence(&self, covered: Option<Time>, started: Time) -> Vec<NewGap> {
        let Some(covered) = covered else { return Vec::new() };
        let kinds = self.bot.pace.expired(started.since(covered));
        if kinds.is_empty() {
            return Vec::new();
        }
        let detail = format!(
            "no poll went well from {covered} to {started}, longer than these live at Telegram: {}",
            kinds.join("; ")
        );
        let (reason, from) = (GapReason::Silence, Some(covered));
        vec![NewGap { reason, ids: None, from, to: started, detail }]
    }
}

/// Looks at the server's own state now and then, on a connection of its own.
pub(super) async fn probes(bot: &Bot, duty: &Duty<'_>, mut api: BotApi) -> Infallible {
    api.reconnect();
    let mut waited = None;
    loop {
        if let Ok(info) = api.get_webhook_info().await {
            duty.lease.set_pending(info.pending_update_count);
            let good = duty.good.load(Ordering::Relaxed);
            // Twice something waited, and no poll went well in between.
            if info.pending_update_count > 0 && waited.replace(good) == Some(good) {
                tracing::warn!(
                    "bot {}: {} updates wait at Telegram and no poll brings them",
                    bot.config.name,
                    info.pending_update_count
                );
            }
            if let Some(date) = info.last_synchronization_error_date {
                tracing::info!(
                    "bot {}: Telegram's servers last failed to synchronise at {}",
                    bot.config.name,
                    Time::from_micros(date.saturating_mul(1_000_000))
                );
            }
        }
        tokio::time::sleep(bot.pace.probe()).await;
    }
}

/// Whether an offset may go out: the server takes none of 2,000,000,000 or more, and begins a new
/// sequence before that.
fn sendable(offset: Option<i64>) -> bool {
    offset.is_some_and(|offset| (1..2_000_000_000).contains(&offset))
}
