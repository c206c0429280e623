//! The durable inbox: one trait of operations, two databases, one conformance suite.
//!
//! SQL stands only below this module. Each operation is one transaction and is durable against
//! power loss when it returns well. An operation that has begun runs to its end even if the future
//! that waits for it is dropped, because a client that hangs up must leave no connection in the
//! middle of a transaction.

mod attempts;
mod consumers;
mod conversations;
mod due;
mod effects;
mod migrate;
mod plan;
pub mod postgres;
mod query;
mod replay;
mod retention;
pub mod sqlite;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use uuid::Uuid;

use crate::clock::{Clock, Time};
use crate::event::{Appended, EventDetail, EventQuery, NewEvent, Page, Sequence, SourceId};
use crate::source::{
    Bound, Gap, Leased, NewGap, QuarantineLimits, Refused, Source, SourceKind, SourceState,
};
use crate::work::{ClaimRequest, Delivery, Receipt};

pub use attempts::Attempts;
pub use consumers::Consumers;
pub use conversations::Conversations;
pub use effects::Effects;
pub use replay::Replays;
pub use retention::{Removal, Removed, Retention};

/// Why an operation did not happen, or may not have.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// The database cannot do it now: away, locked, full, read-only, or it is not known whether the
    /// commit took place. Trying the same again later is right and harmless.
    #[error("{0}")]
    Unavailable(String),
    /// The database does not take this data, whenever it is tried.
    #[error("{0}")]
    Refused(String),
    /// No consumer has that name.
    #[error("there is no consumer named {0:?}")]
    UnknownConsumer(String),
    /// The lease of the poller that sent the batch is not, or no longer, the one in the store.
    #[error("another process polls this bot now")]
    LeaseLost,
    /// The schema is not one that this program can work with.
    #[error("{0}")]
    Schema(String),
    /// There is no schema yet, or an older one, and migrating was not asked for.
    #[error("{0}")]
    Unprepared(String),
}

/// What an operation returns.
pub type Result<T> = std::result::Result<T, StoreError>;

/// Events to append in one transaction.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// In order of receipt.
    pub events: Vec<NewEvent>,
    /// A poller's new place, committed with them.
    pub checkpoint: Option<Checkpoint>,
}

/// A poller's new place, valid only under its lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The bot.
    pub source: SourceId,
    /// Must be the lease token in the store, or nothing is committed.
    pub lease: [u8; 16],
    /// The offset that the next poll sends; none leaves it as it is.
    pub next_offset: Option<i64>,
    /// Until when a poll that went well covers the time; none leaves it as it is.
    pub ok_at: Option<Time>,
    /// Updates that wait at Telegram; none leaves it as it is.
    pub pending: Option<i64>,
    /// Possible losses to record.
    pub gaps: Vec<NewGap>,
}

/// The inbox as the rest of the program sees it; what belongs together by subject stands in a trait of
/// its own.
#[async_trait]
pub trait Store:
    Attempts + Replays + Effects + Consumers + Retention + Conversations + Send + Sync + 'static
{
    /// Commits a batch: each event becomes a row with work for every consumer that wants it, or is
    /// counted on the row that has its identity, or is kept as a variant of it. The answer has one
    /// entry for each event, in order. An event whose derived attributes the database does not take
    /// is stored without them, flagged. `LeaseLost` if the checkpoint's lease is not the store's.
    async fn append(&self, batch: Arc<Batch>) -> Result<Vec<Appended>>;

    /// Leases what is due, oldest due first, each conversation in order of receipt and to one
    /// claimer. Work whose lease ran out is due; where that was its last attempt it becomes dead
    /// instead, much of it in transactions of its own. The answer is in order of receipt.
    async fn claim(&self, consumer: &str, request: ClaimRequest) -> Result<Vec<Delivery>>;

    /// Finishes what these receipts still hold, or have finished before; tells of each whether so.
    async fn ack(&self, consumer: &str, receipts: Vec<Receipt>) -> Result<Vec<bool>>;

    /// How long until something may become claimable: zero if something is due now, none if nothing
    /// is unfinished.
    async fn next_due(&self, consumer: &str) -> Result<Option<Duration>>;

    /// Reads a page of events. Pages by sequence miss nothing that is committed later with a smaller
    /// number, because numbers are given in commit order.
    async fn events(&self, query: EventQuery) -> Result<Page>;

    /// The number of the newest event that is there, zero if none is. All that are numbered up to it
    /// are there, or were removed.
    async fn newest(&self) -> Result<Sequence>;

    /// Reads one event and what is known about it.
    async fn event(&self, id: Uuid) -> Result<Option<EventDetail>>;

    /// The source of that kind and name, made if it is new, no longer forgotten if it was.
    async fn register_source(&self, kind: SourceKind, name: &str) -> Result<SourceId>;

    /// All sources that are not forgotten, by kind and name.
    async fn sources(&self) -> Result<Vec<Source>>;

    /// Keeps what a receiver says of itself.
    async fn tell_source(&self, source: SourceId, state: SourceState) -> Result<()>;

    /// Lets a source go: its events stay, its checkpoint and account do not.
    async fn forget_source(&self, source: SourceId) -> Result<()>;

    /// Binds a bot's source to the id that Telegram tells; changes nothing that is bound already.
    async fn bind_account(&self, source: SourceId, account: &str) -> Result<Bound>;

    /// Takes the lease of a bot's poller for `ttl` if nobody holds it, under a fresh token. `holder`
    /// is for people. On SQLite a file lock beside the store decides, and is free at once when its
    /// holder dies; on PostgreSQL the lease is free `ttl` after it was last renewed.
    async fn lease_poller(&self, source: SourceId, holder: &str, ttl: Duration) -> Result<Leased>;

    /// Holds the lease for another `ttl`, and keeps what `checkpoint` tells; `LeaseLost` if it is
    /// not ours any more.
    async fn renew_poller(&self, checkpoint: Checkpoint, ttl: Duration) -> Result<()>;

    /// Gives the lease up, so that the next one has it at once.
    async fn release_poller(&self, source: SourceId, lease: [u8; 16]) -> Result<()>;

    /// Which of these identities of a source are known.
    async fn known(&self, source: SourceId, keys: Vec<Vec<u8>>) -> Result<Vec<bool>>;

    /// Possible losses, newest first; of one source by its name, or of all.
    async fn gaps(&self, source: Option<&str>, limit: usize) -> Result<Vec<Gap>>;

    /// Takes note of these possible losses, or of all; tells how many were open.
    async fn acknowledge_gaps(&self, ids: Option<Vec<i64>>) -> Result<u64>;

    /// Keeps refused deliveries and removes the oldest beyond the limits, each kind for itself.
    async fn quarantine(&self, refused: Vec<Refused>, limits: QuarantineLimits) -> Result<()>;

    /// Refused deliveries of a source, newest first.
    async fn quarantined(&self, source: SourceId) -> Result<Vec<Refused>>;

    /// Answers if the store can read and write now.
    async fn ready(&self) -> Result<()>;

    /// What an operator should know of how this database is set up; a sentence for each.
    async fn notes(&self) -> Result<Vec<String>>;

    /// Looks for work that no claim would find and rows that point nowhere; a sentence for each.
    /// Empty, or there is a fault in this program.
    async fn audit(&self) -> Result<Vec<String>>;

    /// Returns only if the store's own task has died, which no later operation can mend.
    async fn failed(&self);

    /// Ends all connections.
    async fn close(&self);
}

/// How to open a store.
#[derive(Clone, Debug)]
pub struct Options {
    /// Apply missing migrations; otherwise a store that lacks any is refused.
    pub migrate: bool,
    /// Accept a PostgreSQL that may lose committed rows in a crash.
    pub allow_unsafe_durability: bool,
    /// Tells the time on SQLite; PostgreSQL has its own.
    pub clock: Clock,
}

/// Opens the store that the URL names: `sqlite:PATH`, `postgres://…` or `postgresql://…`.
pub async fn open(url: &str, options: Options) -> Result<Arc<dyn Store>> {
    if url.starts_with("sqlite:") {
        Ok(Arc::new(sqlite::SqliteStore::open(url, options).await?))
    } else {
        Ok(Arc::new(postgres::PostgresStore::open(url, options).await?))
    }
}

/// A bound as both databases take it.
fn bound(limit: u64) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// The length of a body as both databases keep it.
fn size(body: &[u8]) -> i64 {
    i64::try_from(body.len()).unwrap_or(i64::MAX)
}
