//! The duty of whoever holds a bot's lease: poll, commit, confirm.
//!
//! The offset goes out only to confirm: once at a start and after each commit, on polls that the
//! server does not hold, until one comes back empty. The long polls that follow leave it out,
//! because an offset that is repeated while nothing comes gains nothing, and would destroy up to ten
//! unseen updates if the server's own counter had been rolled back meanwhile.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::answer::Trouble;
use super::batch::{self, Update};
use super::bot_api::{BotApi, Poll};
use super::poller::Bot;
use super::state::{State, Words, words, worth_a_line};
use crate::clock::Time;
use crate::event::Appended;
use crate::inbox::{Checkpoint, StoreError};
use crate::source::{GapReason, NewGap, Poller};

/// The lease is not ours any more, or the store must be asked again what holds.
pub(super) struct Lost(pub(super) Option<StoreError>);

/// What the polls of one lease share with what runs beside them.
pub(super) struct Duty<'a> {
    bot: &'a Bot,
    state: &'a State,
    lease: [u8; 16],
    /// Whether the last answer was good, so that the poll under way covers the time.
    healthy: AtomicBool,
    /// Good answers so far.
    good: AtomicU64,
    /// Updates that wait at Telegram, negative until asked.
    pending: AtomicI64,
}

/// Where the polls have come to.
struct Place {
    /// What the next confirmation sends.
    next_offset: Option<i64>,
    /// Whether that confirmation is still to be made.
    confirm: bool,
    /// Until when a good poll covers the time.
    covered: Option<Time>,
    /// Answers in a row that brought no progress.
    failures: u32,
    /// Polls in a row that were to be held and came back empty at once.
    empties: u32,
}

impl<'a> Duty<'a> {
    pub(super) fn new(bot: &'a Bot, state: &'a State, lease: [u8; 16]) -> Duty<'a> {
        Duty {
            bot,
            state,
            lease,
            healthy: AtomicBool::new(false),
            good: AtomicU64::new(0),
            pending: AtomicI64::new(-1),
        }
    }

    /// Polls for as long as the lease is ours.
    pub(super) async fn polls(&self, api: &mut BotApi, account: i64, poller: &Poller) -> Lost {
        let mut place = Place {
            next_offset: poller.next_offset,
            confirm: sendable(poller.next_offset),
            covered: poller.last_ok_at,
            failures: 0,
            empties: 0,
        };
        match self.poll_on(api, account, &mut place).await {
            Err(lost) => lost,
            Ok(never) => match never {},
        }
    }

    async fn poll_on(
        &self,
        api: &mut BotApi,
        account: i64,
        place: &mut Place,
    ) -> Result<Infallible, Lost> {
        let allowed = self.bot.config.updates.allowed();
        let held = self.bot.config.poll_timeout.as_secs();
        loop {
            let poll = Poll {
                offset: place.next_offset.filter(|_| place.confirm),
                limit: 100,
                timeout: if place.confirm { 0 } else { held },
                allowed_updates: &allowed,
            };
            let (started, begun) = (self.bot.clock.now(), Instant::now());
            let answer = self.keeping(api.get_updates(&poll)).await?;
            let cut = |body: Vec<u8>| batch::cut(body.into());
            let batch = answer
                .and_then(|body| cut(body).ok_or(Trouble::Odd("its result is no list of updates")));
            let wait = match batch {
                Err(trouble) => self.met(&trouble, api, place).await,
                Ok(batch) => {
                    self.good.fetch_add(1, Ordering::Relaxed);
                    self.healthy.store(true, Ordering::Relaxed);
                    let silence = self.silence(place.covered, started);
                    if batch.is_empty() {
                        let at_once = begun.elapsed() < self.bot.pace.held(held).mul_f64(0.8);
                        self.empty(at_once, silence, place).await?
                    } else {
                        self.keeping(self.take(&batch, account, silence, place)).await??
                    }
                }
            };
            if !wait.is_zero() {
                self.keeping(tokio::time::sleep(wait)).await?;
            }
        }
    }

    /// An answer that brings nothing: say so, and wait.
    async fn met(&self, trouble: &Trouble, api: &mut BotApi, place: &mut Place) -> Duration {
        place.failures += 1;
        self.healthy.store(false, Ordering::Relaxed);
        let mut words = words(trouble, &self.bot.config.name);
        if *trouble == Trouble::Webhook
            && let Ok(info) = api.get_webhook_info().await
            && let Some(host) = info.host()
        {
            words.detail = format!("{} (it points to {host})", words.detail);
        }
        let worth = place.failures >= worth_a_line(trouble);
        self.state.bad(&self.bot.inbox, words, worth).await;
        api.reconnect();
        self.bot.pace.trouble(trouble, place.failures)
    }

    /// A good answer without updates. A confirmation that comes back so has been made.
    async fn empty(
        &self,
        at_once: bool,
        silence: Vec<NewGap>,
        place: &mut Place,
    ) -> Result<Duration, Lost> {
        let now = self.bot.clock.now();
        if !silence.is_empty() {
            self.renew(silence).await?;
        }
        self.state.ok(&self.bot.inbox).await;
        (place.failures, place.covered) = (0, Some(now));
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
        account: i64,
        silence: Vec<NewGap>,
        place: &mut Place,
    ) -> Result<Duration, Lost> {
        let now = self.bot.clock.now();
        let again = |error| Lost(Some(error));
        let gaps = self.losses(batch, place, silence, now).await.map_err(again)?;
        let event = |update: &Update| update.event(self.bot.source, account, now);
        let events = batch.iter().map(event).collect();
        let next_offset = batch::next_offset(batch);
        let checkpoint = Checkpoint { next_offset, gaps, ..self.checkpoint(Some(now)) };
        let appended = self.bot.inbox.receive_batch(events, checkpoint).await.map_err(again)?;
        place.covered = Some(now);
        place.empties = 0;
        place.next_offset = next_offset.or(place.next_offset);
        place.confirm = sendable(place.next_offset);
        let progress =
            next_offset.is_some() && appended.iter().any(|one| matches!(one, Appended::Stored(_)));
        if progress {
            place.failures = 0;
            self.state.ok(&self.bot.inbox).await;
            return Ok(Duration::ZERO);
        }
        place.failures += 1;
        let detail = "Telegram sends again what is stored already, or only updates without a usable \
                      id; it is asked again with patience";
        let words = Words { name: "no_progress", detail: detail.to_owned() };
        if place.failures > 1 {
            self.state.bad(&self.bot.inbox, words, place.failures > 2).await;
        }
        Ok(self.bot.pace.no_progress(place.failures))
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
        for gap in &gaps {
            tracing::warn!("bot {}: possible loss: {}", self.bot.config.name, gap.detail);
        }
        Ok(gaps)
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

    fn checkpoint(&self, ok_at: Option<Time>) -> Checkpoint {
        let pending = self.pending.load(Ordering::Relaxed);
        Checkpoint {
            source: self.bot.source,
            lease: self.lease,
            next_offset: None,
            ok_at,
            pending: (pending >= 0).then_some(pending),
            gaps: Vec::new(),
        }
    }

    /// Does `work` while the lease is renewed. A lease that cannot be renewed for as long as it
    /// lasts is lost: somebody else may have it.
    async fn keeping<T>(&self, work: impl Future<Output = T>) -> Result<T, Lost> {
        let mut work = std::pin::pin!(work);
        let mut renewed = Instant::now();
        loop {
            let pause = tokio::time::sleep(self.bot.pace.renewal());
            tokio::select! {
                biased;
                done = work.as_mut() => return Ok(done),
                () = pause => {}
            }
            match self.renew(Vec::new()).await {
                Ok(()) => renewed = Instant::now(),
                Err(Lost(Some(StoreError::Unavailable(_))))
                    if renewed.elapsed() < self.bot.pace.lease() => {}
                Err(lost) => return Err(lost),
            }
        }
    }

    async fn renew(&self, gaps: Vec<NewGap>) -> Result<(), Lost> {
        for gap in &gaps {
            tracing::warn!("bot {}: possible loss: {}", self.bot.config.name, gap.detail);
        }
        let healthy = self.healthy.load(Ordering::Relaxed);
        let checkpoint = self.checkpoint(healthy.then(|| self.bot.clock.now()));
        let checkpoint = Checkpoint { gaps, ..checkpoint };
        let renewed = self.bot.inbox.renew_poller(checkpoint, self.bot.pace.lease()).await;
        renewed.map_err(|error| Lost(Some(error)))
    }

    /// Looks at the server's own state now and then, on a connection of its own.
    pub(super) async fn probes(&self, mut api: BotApi) {
        api.reconnect();
        let mut waited = None;
        loop {
            if let Ok(info) = api.get_webhook_info().await {
                self.pending.store(info.pending_update_count, Ordering::Relaxed);
                let good = self.good.load(Ordering::Relaxed);
                // Twice something waited, and no poll went well in between.
                if info.pending_update_count > 0 && waited.replace(good) == Some(good) {
                    tracing::warn!(
                        "bot {}: {} updates wait at Telegram and no poll brings them",
                        self.bot.config.name,
                        info.pending_update_count
                    );
                }
                if let Some(date) = info.last_synchronization_error_date {
                    tracing::info!(
                        "bot {}: Telegram's servers last failed to synchronise at {}",
                        self.bot.config.name,
                        Time::from_micros(date.saturating_mul(1_000_000))
                    );
                }
            }
            tokio::time::sleep(self.bot.pace.probe()).await;
        }
    }

    /// Gives the lease up; the next holder goes on at once.
    pub(super) async fn release(&self) {
        if let Err(error) = self.bot.inbox.release_poller(self.bot.source, self.lease).await {
            tracing::debug!("bot {}: the lease was not given up: {error}", self.bot.config.name);
        }
    }

    /// Ends the duty at a stop: says so, and gives the lease up. No last confirming call: it is not
    /// needed, it can take 3 s, and it could end the next holder's poll.
    pub(super) async fn hand_over(&self) {
        let words = Words { name: "stopped", detail: "the gateway was stopped".to_owned() };
        // Also keeps until when the polls were good.
        if self.renew(Vec::new()).await.is_ok() {
            self.state.tell(&self.bot.inbox, words).await;
        }
        self.release().await;
    }
}

/// Whether an offset may go out: the server takes none of 2,000,000,000 or more, and begins a new
/// sequence before that.
fn sendable(offset: Option<i64>) -> bool {
    offset.is_some_and(|offset| (1..2_000_000_000).contains(&offset))
}
