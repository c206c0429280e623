//! The inbox in one SQLite file: one writer, a few readers.

mod append;
mod attempts;
mod audit;
mod consumers;
mod conversations;
mod effects;
mod error;
mod fill;
mod pollers;
mod read;
mod removal;
mod replay;
mod retention;
mod sources;
mod work;
mod writer;

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sqlx::migrate::Migrator;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Connection, SqliteConnection, SqlitePool};
use uuid::Uuid;

use super::{Batch, Checkpoint, Options, Result, Store, StoreError, migrate};
use crate::clock::{Clock, from_micros};
use crate::event::{Appended, EventDetail, EventQuery, Page, Sequence, SourceId};
use crate::source::{
    Bound, Gap, Leased, QuarantineLimits, Refused, Source, SourceKind, SourceState,
};
use crate::work::{ClaimRequest, Delivery, Receipt};
use error::unavailable;
use pollers::Locks;
use writer::Writer;

static MIGRATIONS: Migrator = sqlx::migrate!("migrations/sqlite");

/// Readers do not wait for the writer, and more of them than this only fight for the two cores.
const READERS: u32 = 4;
/// How long a write waits for another process that writes.
const BUSY: Duration = Duration::from_secs(5);

/// The embedded store.
pub struct SqliteStore {
    writer: Writer,
    locks: Locks,
    readers: SqlitePool,
    clock: Clock,
}

impl SqliteStore {
    /// Opens the file that `url` (`sqlite:PATH`) names, making it if migrations may be applied.
    pub async fn open(url: &str, options: Options) -> Result<SqliteStore> {
        let path = path_of(url)?;
        if !options.migrate && !path.exists() {
            return Err(StoreError::Unprepared(format!(
                "there is no inbox at {}; `inboxd migrate` or `inboxd serve` makes it",
                path.display()
            )));
        }
        let connect = SqliteConnectOptions::new()
            .filename(&path)
            .create_if_missing(options.migrate)
            // Bodies of about 2 KiB waste half of a smaller page; only a new file takes it.
            .page_size(8192)
            .journal_mode(SqliteJournalMode::Wal)
            // Without FULL the last commits before a power loss are gone though they were answered.
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(BUSY)
            .statement_cache_capacity(256)
            // 64 MiB: less often than SQLite's own 4 MiB, because each checkpoint rewrites the
            // leaves that random keys have touched.
            .pragma("wal_autocheckpoint", "8000")
            .pragma("cache_size", "-65536")
            .pragma("journal_size_limit", "67108864");
        prepare(&connect, options.migrate).await?;
        let readers = SqlitePoolOptions::new()
            .max_connections(READERS)
            .min_connections(0)
            .acquire_timeout(BUSY)
            .connect_lazy_with(connect.clone().create_if_missing(false).read_only(true));
        let locks = Locks::new(path.clone());
        let writer = Writer::start(connect.create_if_missing(false), path, options.clock.clone());
        Ok(SqliteStore { writer, locks, readers, clock: options.clock })
    }

    async fn reader(&self) -> Result<sqlx::pool::PoolConnection<sqlx::Sqlite>> {
        self.readers.acquire().await.map_err(unavailable)
    }
}

/// The path in `sqlite:PATH` or `sqlite://PATH`.
fn path_of(url: &str) -> Result<PathBuf> {
    let path = url.strip_prefix("sqlite:").unwrap_or(url);
    let path = path.strip_prefix("//").unwrap_or(path);
    if path.is_empty() || path.starts_with(':') || path.contains('?') {
        return Err(StoreError::Schema(format!(
            "\"{url}\" names no SQLite file; write it like sqlite:inboxd.db"
        )));
    }
    Ok(Path::new(path).to_owned())
}

async fn prepare(options: &SqliteConnectOptions, apply: bool) -> Result<()> {
    let path = options.get_filename();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        return Err(StoreError::Schema(format!(
            "the folder {} is not there; create it, or correct store.url",
            folder.display()
        )));
    }
    if apply {
        // Bodies hold sign-in codes, so a new file is for its owner alone; SQLite gives the files
        // beside it the same mode. Whatever stands in the way shows itself below.
        let _ = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    }
    let connection = SqliteConnection::connect_with(options).await;
    let mut connection = connection.map_err(error::opening)?;
    let outcome = migrate::bring_up(&MIGRATIONS, &mut connection, apply).await;
    let _ = connection.close().await;
    outcome
}

/// A JSON list, the form in which a statement takes many values as one.
fn json(values: impl Iterator<Item = impl Into<serde_json::Value>>) -> String {
    values.map(Into::into).collect::<serde_json::Value>().to_string()
}

#[async_trait]
impl Store for SqliteStore {
    async fn append(&self, batch: Arc<Batch>) -> Result<Vec<Appended>> {
        self.writer
            .run(move |connection, now| {
                Box::pin(async move { append::append(connection, now, &batch).await })
            })
            .await
    }

    async fn claim(&self, consumer: &str, request: ClaimRequest) -> Result<Vec<Delivery>> {
        let claimed = loop {
            let (consumer, request) = (consumer.to_owned(), request.clone());
            let claimed = self.writer.run(move |connection, now| {
                Box::pin(async move { work::claim(connection, now, &consumer, &request).await })
            });
            if let Some(claimed) = claimed.await? {
                break claimed;
            }
        };
        // Read beside the writer: what is leased is not removed.
        read::deliveries(&mut *self.reader().await?, &claimed).await
    }

    async fn ack(&self, consumer: &str, receipts: Vec<Receipt>) -> Result<Vec<bool>> {
        let consumer = consumer.to_owned();
        self.writer
            .run(move |connection, now| {
                Box::pin(async move { work::ack(connection, now, &consumer, &receipts).await })
            })
            .await
    }

    async fn next_due(&self, consumer: &str) -> Result<Option<Duration>> {
        let mut connection = self.reader().await?;
        let due = work::next_due(&mut connection, self.clock.now(), consumer).await?;
        Ok(due.map(from_micros))
    }

    async fn events(&self, query: EventQuery) -> Result<Page> {
        read::events(&mut *self.reader().await?, &query).await
    }

    async fn newest(&self) -> Result<Sequence> {
        read::newest(&mut *self.reader().await?).await
    }

    async fn event(&self, id: Uuid) -> Result<Option<EventDetail>> {
        read::event(&mut *self.reader().await?, id).await
    }

    async fn register_source(&self, kind: SourceKind, name: &str) -> Result<SourceId> {
        let name = name.to_owned();
        self.writer
            .run(move |connection, now| {
                Box::pin(async move { sources::register(connection, now, kind, &name).await })
            })
            .await
    }

    async fn sources(&self) -> Result<Vec<Source>> {
        sources::list(&mut *self.reader().await?).await
    }

    async fn tell_source(&self, source: SourceId, state: SourceState) -> Result<()> {
        self.writer
            .run(move |connection, _| {
                Box::pin(async move { sources::tell(connection, source, &state).await })
            })
            .await
    }

    async fn forget_source(&self, source: SourceId) -> Result<()> {
        self.writer
            .run(move |connection, now| {
                Box::pin(async move { sources::forget(connection, now, source).await })
            })
            .await
    }

    async fn bind_account(&self, source: SourceId, account: &str) -> Result<Bound> {
        let account = account.to_owned();
        self.writer
            .run(move |connection, _| {
                Box::pin(async move { pollers::bind(connection, source, &account).await })
            })
            .await
    }

    async fn lease_poller(&self, source: SourceId, holder: &str, ttl: Duration) -> Result<Leased> {
        // Whoever asked may go away while the store is written: then the lock ends with this.
        let Some(lock) = self.locks.take(source)? else {
            let holder = pollers::holder(&mut *self.reader().await?, source).await?;
            return Ok(Leased::Held { holder });
        };
        let holder = holder.to_owned();
        let lease = self
            .writer
            .run(move |connection, now| {
                Box::pin(
                    async move { pollers::lease(connection, source, &holder, now + ttl).await },
                )
            })
            .await?;
        self.locks.keep(source, lease.token, lock);
        Ok(Leased::Mine(lease))
    }

    async fn renew_poller(&self, checkpoint: Checkpoint, ttl: Duration) -> Result<()> {
        self.writer
            .run(move |connection, now| {
                Box::pin(async move {
                    pollers::checkpoint(connection, now, &checkpoint).await?;
                    pollers::renew(connection, checkpoint.source, now + ttl).await
                })
            })
            .await
    }

    async fn release_poller(&self, source: SourceId, lease: [u8; 16]) -> Result<()> {
        // First, because whoever asked may go away; the next holder has a token of its own.
        self.locks.free(source, lease);
        self.writer
            .run(move |connection, _| {
                Box::pin(async move { pollers::release(connection, source, &lease).await })
            })
            .await
    }

    async fn known(&self, source: SourceId, keys: Vec<Vec<u8>>) -> Result<Vec<bool>> {
        pollers::known(&mut *self.reader().await?, source, &keys).await
    }

    async fn gaps(&self, source: Option<&str>, limit: usize) -> Result<Vec<Gap>> {
        pollers::gaps(&mut *self.reader().await?, source, limit).await
    }

    async fn acknowledge_gaps(&self, ids: Option<Vec<i64>>) -> Result<u64> {
        self.writer
            .run(move |connection, now| {
                Box::pin(async move { pollers::acknowledge(connection, now, ids).await })
            })
            .await
    }

    async fn quarantine(&self, refused: Vec<Refused>, limits: QuarantineLimits) -> Result<()> {
        self.writer
            .run(move |connection, _| {
                Box::pin(async move { sources::quarantine(connection, &refused, limits).await })
            })
            .await
    }

    async fn quarantined(&self, source: SourceId) -> Result<Vec<Refused>> {
        sources::quarantined(&mut *self.reader().await?, source).await
    }

    async fn ready(&self) -> Result<()> {
        self.writer.run(|_, _| Box::pin(async { Ok(()) })).await?;
        let mut connection = self.reader().await?;
        let one = sqlx::query_scalar::<_, i64>("SELECT 1").fetch_one(&mut *connection).await;
        one.map(drop).map_err(unavailable)
    }

    async fn notes(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    async fn audit(&self) -> Result<Vec<String>> {
        audit::audit(&mut *self.reader().await?).await
    }

    async fn failed(&self) {
        self.writer.failed().await;
    }

    async fn close(&self) {
        // The writer last, because only it can move the write-ahead log into the file, and only
        // once nobody else has that open.
        self.readers.close().await;
        self.writer.close().await;
    }
}
