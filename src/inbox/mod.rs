//! The one inbox: what receivers put in and workers take out. Policy stands here, SQL in the store.
//!
//! Receivers wait for the commit and for nothing else; workers wait for work and hold nothing
//! while they do.

mod attempts;
mod consumers;
mod conversations;
mod effects;
mod follow;
mod group;
mod queue;
mod refuse;
mod replay;
mod retention;
mod upkeep;
mod wake;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit, oneshot};
use uuid::Uuid;

use crate::event::{Appended, EventDetail, EventQuery, NewEvent, Page, SourceId};
use crate::shutdown::Shutdown;
use crate::source::{
    Bound, Gap, Leased, QuarantineLimits, Refused, Source, SourceKind, SourceState,
};
use crate::store::Batch;
use crate::work::{ClaimRequest, Delivery, Receipt};
use consumers::Noted;
use group::Receipt as Waiting;
use queue::Queue;
use refuse::Refusals;
use wake::Wake;

pub use retention::Ages;

pub use crate::store::{Checkpoint, Store, StoreError};
pub use replay::replay;

/// Calls of workers that are at the store at once. The others wait here, so that a thousand workers who
/// are woken together are not between a receipt and the store.
const TURNS: usize = 8;
/// Receipts that may wait for a commit.
const QUEUE_ROWS: usize = 4096;

/// Bounds of what waits in memory.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Bytes of receipts that wait for a commit.
    pub queue_bytes: usize,
    /// What quarantine may hold.
    pub quarantine: QuarantineLimits,
}

/// Why a receipt was not committed, or may not have been.
#[derive(Debug, thiserror::Error)]
pub enum NotReceived {
    /// Too much waits already.
    #[error("too many deliveries wait for the store")]
    QueueFull,
    /// The store's word.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The inbox; cheap to share behind an `Arc`.
pub struct Inbox {
    store: Arc<dyn Store>,
    receipts: Queue<Waiting>,
    refusals: Refusals,
    wake: Arc<Wake>,
    noted: Noted,
    turns: Semaphore,
    shutdown: Shutdown,
}

impl Inbox {
    /// Starts the tasks that commit, quarantine and wake. They end when `shutdown` says so, the
    /// first two once nobody holds the inbox any more.
    pub fn start(store: Arc<dyn Store>, bounds: Bounds, shutdown: &Shutdown) -> Arc<Inbox> {
        let (receipts, waiting) = queue::bounded(QUEUE_ROWS, bounds.queue_bytes);
        let (refusals, waits) = refuse::queues();
        let wake = Arc::new(Wake::default());
        shutdown.spawn_supervised(
            "the group commit",
            group::run(store.clone(), wake.clone(), waiting, shutdown.clone()),
        );
        shutdown.spawn_supervised(
            "the quarantine",
            refuse::run(store.clone(), waits, bounds.quarantine, shutdown.clone()),
        );
        shutdown.spawn_supervised("the wake-up", wake.clone().run(store.clone(), shutdown.clone()));
        let (noted, turns) = (Noted::default(), Semaphore::new(TURNS));
        let shutdown = shutdown.clone();
        Arc::new(Inbox { store, receipts, refusals, wake, noted, turns, shutdown })
    }

    /// Commits `event`, together with what else waits. Whoever stops waiting loses the answer and
    /// nothing else.
    pub async fn receive(&self, event: NewEvent) -> Result<Appended, NotReceived> {
        let (reply, answer) = oneshot::channel();
        let bytes = event.body.len();
        let receipt = Waiting { event, reply };
        self.receipts.push(receipt, bytes).map_err(|_| NotReceived::QueueFull)?;
        let gone = || StoreError::Unavailable("the inbox is closing".to_owned());
        Ok(answer.await.map_err(|_| gone())??)
    }

    /// Keeps a refused delivery in quarantine if there is room; tells whether there was.
    pub fn refuse(&self, refused: Refused) -> bool {
        self.refusals.push(refused)
    }

    /// Leases what is due, waiting up to `wait` for something to be. Ends early, and empty, when
    /// the process drains.
    pub async fn claim(
        &self,
        consumer: &str,
        request: ClaimRequest,
        wait: Duration,
    ) -> Result<Vec<Delivery>, StoreError> {
        let end = tokio::time::Instant::now() + wait;
        let mut place = None;
        loop {
            let called = place.as_ref().map(wake::Place::called);
            let turn = self.turn().await;
            let deliveries = self.store.claim(consumer, request.clone()).await?;
            self.note_claim(consumer);
            drop(turn);
            if !deliveries.is_empty() {
                // The next in line may find more, or find that there is none.
                self.wake.perhaps(consumer);
                return Ok(deliveries);
            }
            if wait.is_zero() {
                return Ok(deliveries);
            }
            let Some(called) = called else {
                // Only from now on do calls count, so look once more before waiting.
                place = Some(self.wake.join(consumer));
                continue;
            };
            tokio::select! {
                () = called => {}
                () = tokio::time::sleep_until(end) => return Ok(deliveries),
                () = self.shutdown.soft() => return Ok(deliveries),
            }
        }
    }

    /// A worker's turn at the store, until it is dropped.
    async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        // It is never closed.
        self.turns.acquire().await.ok()
    }

    /// Finishes what these receipts hold; tells of each whether it is done.
    pub async fn ack(
        &self,
        consumer: &str,
        receipts: Vec<Receipt>,
    ) -> Result<Vec<bool>, StoreError> {
        let turn = self.turn().await;
        let done = self.store.ack(consumer, receipts).await?;
        drop(turn);
        if done.contains(&true) {
            self.wake.perhaps(consumer);
        }
        Ok(done)
    }

    /// Reads a page of events.
    pub async fn events(&self, query: EventQuery) -> Result<Page, StoreError> {
        self.store.events(query).await
    }

    /// Reads one event and what is known about it.
    pub async fn event(&self, id: Uuid) -> Result<Option<EventDetail>, StoreError> {
        self.store.event(id).await
    }

    /// The source of that kind and name.
    pub async fn register_source(
        &self,
        kind: SourceKind,
        name: &str,
    ) -> Result<SourceId, StoreError> {
        self.store.register_source(kind, name).await
    }

    /// All sources that are not forgotten.
    pub async fn sources(&self) -> Result<Vec<Source>, StoreError> {
        self.store.sources().await
    }

    /// Keeps what a receiver says of itself.
    pub async fn tell_source(
        &self,
        source: SourceId,
        state: SourceState,
    ) -> Result<(), StoreError> {
        self.store.tell_source(source, state).await
    }

    /// Binds a bot's source to the id that Telegram tells.
    pub async fn bind_account(&self, source: SourceId, account: &str) -> Result<Bound, StoreError> {
        self.store.bind_account(source, account).await
    }

    /// Takes the lease of a bot's poller if it is free.
    pub async fn lease_poller(
        &self,
        source: SourceId,
        holder: &str,
        ttl: Duration,
    ) -> Result<Leased, StoreError> {
        self.store.lease_poller(source, holder, ttl).await
    }

    /// Holds the lease, and keeps what `checkpoint` tells.
    pub async fn renew_poller(
        &self,
        checkpoint: Checkpoint,
        ttl: Duration,
    ) -> Result<(), StoreError> {
        self.store.renew_poller(checkpoint, ttl).await
    }

    /// Gives the lease up.
    pub async fn release_poller(
        &self,
        source: SourceId,
        lease: [u8; 16],
    ) -> Result<(), StoreError> {
        self.store.release_poller(source, lease).await
    }

    /// Which of these identities of a source are known.
    pub async fn known(
        &self,
        source: SourceId,
        keys: Vec<Vec<u8>>,
    ) -> Result<Vec<bool>, StoreError> {
        self.store.known(source, keys).await
    }

    /// Commits a poller's batch and its new place in one transaction.
    pub async fn receive_batch(
        &self,
        events: Vec<NewEvent>,
        checkpoint: Checkpoint,
    ) -> Result<Vec<Appended>, StoreError> {
        let batch = Batch { events, checkpoint: Some(checkpoint) };
        let appended = self.store.append(Arc::new(batch)).await?;
        let stored = appended.iter().filter(|one| matches!(one, Appended::Stored(_)));
        self.wake.work_made(stored.count());
        Ok(appended)
    }

    /// Possible losses, newest first.
    pub async fn gaps(&self, source: Option<&str>, limit: usize) -> Result<Vec<Gap>, StoreError> {
        self.store.gaps(source, limit).await
    }

    /// Answers if the store can read and write now.
    pub async fn ready(&self) -> Result<(), StoreError> {
        self.store.ready().await
    }
}
