//! An open store of a test's own, a hold on its time, and a way to look behind it.

use std::sync::Arc;
use std::time::Duration;

use inboxd::clock::{Clock, Time};
use inboxd::event::{Appended, EventDetail, NewEvent, Sequence, SourceId, WorkState};
use inboxd::source::SourceKind;
use inboxd::store::{Batch, Checkpoint, Options, Result, Store, StoreError, open};
use inboxd::work::{ClaimRequest, Consumer, Delivery, Filter, Nack, Nacked, Ordering, Receipt};

use super::raw::Raw;

/// The lease of [`consumer`].
pub(crate) const LEASE: Duration = Duration::from_secs(60);

/// A store with one source, `main`, and one consumer, `default`.
pub(crate) struct Fixture {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) raw: Raw,
    /// The source.
    pub(crate) main: SourceId,
    url: String,
    clock: Clock,
}

/// A consumer of everything, in order within a conversation, with three attempts.
pub(crate) fn consumer(name: &str) -> Consumer {
    Consumer {
        name: name.to_owned(),
        ordering: Ordering::Conversation,
        lease: LEASE,
        max_attempts: 3,
        backoff_first: Duration::from_secs(1),
        backoff_max: Duration::from_secs(900),
        filter: Filter::default(),
    }
}

/// A claim of so many, for the consumer's own lease and of any size.
pub(crate) fn request(max: usize) -> ClaimRequest {
    ClaimRequest { max, max_bytes: usize::MAX, lease: None }
}

/// A poller's new place and nothing else, under this lease.
pub(crate) fn place(source: SourceId, lease: [u8; 16], next_offset: Option<i64>) -> Checkpoint {
    Checkpoint { source, lease, next_offset, ok_at: None, pending: None, gaps: Vec::new() }
}

/// The names of the events delivered, see [`super::sample::sample`].
pub(crate) fn names(deliveries: &[Delivery]) -> Vec<&str> {
    deliveries.iter().map(|delivery| &*delivery.event.attributes.external_id).collect()
}

/// The attempts of what was delivered.
pub(crate) fn attempts(deliveries: &[Delivery]) -> Vec<i64> {
    deliveries.iter().map(|delivery| delivery.attempt).collect()
}

/// The receipts of what was delivered.
pub(crate) fn receipts(deliveries: &[Delivery]) -> Vec<Receipt> {
    deliveries.iter().map(|delivery| delivery.receipt).collect()
}

impl Fixture {
    /// On SQLite, with a clock that stands still.
    pub(crate) async fn sqlite() -> Fixture {
        let raw = Raw::sqlite();
        Fixture::on(raw, Clock::manual(Time::parse("2026-06-08T12:00:00Z").unwrap())).await
    }

    /// On PostgreSQL, whose clock runs.
    pub(crate) async fn postgres() -> Fixture {
        Fixture::on(Raw::postgres(), Clock::wall()).await
    }

    async fn on(raw: Raw, clock: Clock) -> Fixture {
        let url = raw.fresh_url();
        let store = open(&url, options(true, &clock)).await.unwrap();
        raw.connect(&url).await;
        let main = store.register_source(SourceKind::UnifyPort, "main").await.unwrap();
        store.put_consumers(vec![consumer("default")]).await.unwrap();
        Fixture { store, raw, main, url, clock }
    }

    /// Where the store is.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Opens the same store once more.
    pub(crate) async fn open_again(&self, migrate: bool) -> Result<Arc<dyn Store>> {
        open(&self.url, options(migrate, &self.clock)).await
    }

    /// Opens a store of that URL.
    pub(crate) async fn open(&self, url: &str, migrate: bool) -> Result<Arc<dyn Store>> {
        open(url, options(migrate, &self.clock)).await
    }

    /// Closes the store and opens it again.
    pub(crate) async fn reopen(&mut self) {
        self.store.close().await;
        self.store = self.open_again(false).await.unwrap();
    }

    /// Lets time pass for leases and for work that is put off.
    pub(crate) async fn advance(&self, by: Duration) {
        self.clock.advance(by);
        self.raw.pass_time(by).await;
    }

    /// The clock that the store asks, if it asks ours.
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Appends these in one batch.
    pub(crate) async fn append(&self, events: &[NewEvent]) -> Vec<Appended> {
        let batch = Batch { events: events.to_vec(), checkpoint: None };
        self.store.append(Arc::new(batch)).await.unwrap()
    }

    /// Appends these in one batch, all of them new, and gives their sequences.
    pub(crate) async fn stored(&self, events: &[NewEvent]) -> Vec<Sequence> {
        let appended = self.append(events).await;
        let stored = appended.iter().map(|one| match one {
            Appended::Stored(sequence) => *sequence,
            other => panic!("{other:?}"),
        });
        stored.collect()
    }

    /// Appends these in one batch with a new place of the poller.
    pub(crate) async fn checkpoint(
        &self,
        events: &[NewEvent],
        checkpoint: Checkpoint,
    ) -> Result<Vec<Appended>> {
        let batch = Batch { events: events.to_vec(), checkpoint: Some(checkpoint) };
        self.store.append(Arc::new(batch)).await
    }

    /// Claims up to so many for `default`.
    pub(crate) async fn claim(&self, max: usize) -> Vec<Delivery> {
        self.store.claim("default", request(max)).await.unwrap()
    }

    /// Acks these for `default`.
    pub(crate) async fn ack(&self, deliveries: &[Delivery]) -> Vec<bool> {
        self.store.ack("default", receipts(deliveries)).await.unwrap()
    }

    /// Nacks these for `default`, to be due again after so long.
    pub(crate) async fn nack(&self, deliveries: &[Delivery], delay: Duration) -> Vec<Nacked> {
        let nack = Nack { delay: Some(delay), ..Nack::default() };
        self.store.nack("default", receipts(deliveries), nack).await.unwrap()
    }

    /// Nacks these for `default`, for good.
    pub(crate) async fn bury(&self, deliveries: &[Delivery]) -> Vec<Nacked> {
        let nack = Nack { dead: true, ..Nack::default() };
        self.store.nack("default", receipts(deliveries), nack).await.unwrap()
    }

    /// Extends these for `default`, for its own lease.
    pub(crate) async fn extend(&self, deliveries: &[Delivery]) -> Vec<bool> {
        self.store.extend("default", receipts(deliveries), None).await.unwrap()
    }

    /// What is known about an event that is stored.
    pub(crate) async fn detail(&self, event: &NewEvent) -> EventDetail {
        self.store.event(event.id).await.unwrap().expect("the event is stored")
    }

    /// State and attempt of the work of `default` with an event.
    pub(crate) async fn work(&self, event: &NewEvent) -> (&'static str, i64) {
        let work = self.work_state(event).await;
        (work.state, work.attempt)
    }

    /// Where `default` stands with an event.
    pub(crate) async fn work_state(&self, event: &NewEvent) -> WorkState {
        let mut work = self.detail(event).await.work;
        work.retain(|work| work.consumer == "default");
        work.pop().unwrap()
    }

    /// Lets the consumer `name` rest, as an operator does.
    pub(crate) async fn pause(&self, name: &str, paused: bool) {
        self.store.pause_consumer(name, paused).await.unwrap();
    }

    /// What must hold at the end of every case.
    pub(crate) async fn finish(self) {
        assert_eq!(self.store.audit().await.unwrap(), Vec::<String>::new());
        self.store.close().await;
        let closed = self.store.claim("default", request(1)).await;
        assert!(matches!(closed, Err(StoreError::Unavailable(_))), "{closed:?}");
        self.raw.close().await;
    }
}

fn options(migrate: bool, clock: &Clock) -> Options {
    Options { migrate, allow_unsafe_durability: false, clock: clock.clone() }
}
