//! The lease of a bot's poller: taken, kept while there is work, given up.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use tokio::time::Instant;

use super::poller::Bot;
use super::state::State;
use crate::inbox::{Checkpoint, StoreError};
use crate::source::{Leased, NewGap, Poller};

/// The lease is not ours any more, or the store must be asked again what holds.
#[derive(Debug)]
pub(super) struct Lost(pub(super) StoreError);

/// A lease that is ours as far as we know, and what every renewal tells the store.
pub(super) struct Lease<'a> {
    bot: &'a Bot,
    token: [u8; 16],
    /// Whether the last answer was good, so that the poll under way covers the time.
    healthy: AtomicBool,
    /// Updates that wait at Telegram, negative until asked.
    pending: AtomicI64,
}

impl<'a> Lease<'a> {
    /// Waits until the lease is ours; also tells where the last holder had come to.
    pub(super) async fn take(bot: &'a Bot, state: &State) -> (Lease<'a>, Poller) {
        let mut standing_by = false;
        let mut failures = 0;
        loop {
            let leased = bot.inbox.lease_poller(bot.source, &bot.holder, bot.pace.lease()).await;
            let wait = match leased {
                Ok(Leased::Mine(lease)) => {
                    let (healthy, pending) = (AtomicBool::new(false), AtomicI64::new(-1));
                    return (Lease { bot, token: lease.token, healthy, pending }, lease.poller);
                }
                Ok(Leased::Held { holder }) => {
                    if !standing_by {
                        tracing::info!(
                            "bot {}: standing by, {} polls it",
                            bot.config.name,
                            holder.as_deref().unwrap_or("another process")
                        );
                    }
                    standing_by = true;
                    bot.pace.standby()
                }
                Err(error) => {
                    failures += 1;
                    state.log(&super::state::of_store(&error), failures > 1);
                    bot.pace.store(failures)
                }
            };
            tokio::time::sleep(wait).await;
        }
    }

    /// Does `work` while the lease is renewed. A lease that cannot be renewed for as long as it
    /// lasts is lost: somebody else may have it.
    pub(super) async fn keeping<T>(&self, work: impl Future<Output = T>) -> Result<T, Lost> {
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
                Err(Lost(StoreError::Unavailable(_)))
                    if renewed.elapsed() < self.bot.pace.lease() => {}
                Err(lost) => return Err(lost),
            }
        }
    }

    /// Holds the lease for its whole length from now on.
    pub(super) async fn renew(&self, gaps: Vec<NewGap>) -> Result<(), Lost> {
        let healthy = self.healthy.load(Ordering::Relaxed);
        let checkpoint = self.checkpoint();
        let ok_at = healthy.then(|| self.bot.clock.now());
        let checkpoint = Checkpoint { ok_at, gaps, ..checkpoint };
        let renewed = self.bot.inbox.renew_poller(checkpoint, self.bot.pace.lease()).await;
        renewed.map_err(Lost)
    }

    /// Whether it is ours still, by the store's word; yes if the store cannot say so now.
    pub(super) async fn is_ours(&self) -> Result<(), Lost> {
        match self.renew(Vec::new()).await {
            Err(Lost(StoreError::Unavailable(_))) => Ok(()),
            told => told,
        }
    }

    /// What a commit under this lease says, but for what it brings.
    pub(super) fn checkpoint(&self) -> Checkpoint {
        let pending = self.pending.load(Ordering::Relaxed);
        Checkpoint {
            source: self.bot.source,
            lease: self.token,
            next_offset: None,
            ok_at: None,
            pending: (pending >= 0).then_some(pending),
            gaps: Vec::new(),
        }
    }

    /// From now on polls go well, or do not.
    pub(super) fn set_healthy(&self, healthy: bool) {
        self.healthy.store(healthy, Ordering::Relaxed);
    }

    /// From now on so many updates wait at Telegram.
    pub(super) fn set_pending(&self, pending: i64) {
        self.pending.store(pending, Ordering::Relaxed);
    }

    /// Gives the lease up; the next holder goes on at once.
    pub(super) async fn release(&self) {
        if let Err(error) = self.bot.inbox.release_poller(self.bot.source, self.token).await {
            tracing::debug!("bot {}: the lease was not given up: {error}", self.bot.config.name);
        }
    }
}
