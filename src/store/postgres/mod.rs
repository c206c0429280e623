//! The inbox on PostgreSQL, for when one machine is not enough.
//!
//! Time is the database's: gateways' clocks decide nothing but what an event says of its receipt.

mod append;
mod attempts;
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
mod session;
mod sources;
mod work;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sqlx::migrate::Migrator;
use uuid::Uuid;

use super::{Batch, Checkpoint, Options, Result, Store, StoreError, migrate};
use crate::clock::from_micros;
use crate::event::{Appended, EventDetail, EventQuery, Page, Sequence, SourceId};
use crate::source::{
    Bound, Gap, Leased, QuarantineLimits, Refused, Source, SourceKind, SourceState,
};
use crate::work::{ClaimRequest, Delivery, Receipt};
use append::Manner;
use session::Sessions;

static MIGRATIONS: Migrator = sqlx::migrate!("migrations/postgres");

/// The database's time in microseconds; the same throughout a statement, so that an index serves
/// comparisons with it.
macro_rules! now {
    () => {
        "(extract(epoch FROM statement_timestamp()) * 1000000)::bigint"
    };
}
use now;

/// The store on a server.
#[derive(Debug)]
pub struct PostgresStore {
    sessions: Sessions,
}

impl PostgresStore {
    /// Connects to the database that `url` names, and refuses one that may lose what it committed.
    pub async fn open(url: &str, options: Options) -> Result<PostgresStore> {
        let sessions = Sessions::new(url, options.allow_unsafe_durability)?;
        let mut connection = sessions.acquire().await?;
        session::check_durability(&mut connection, options.allow_unsafe_durability).await?;
        migrate::bring_up(&MIGRATIONS, &mut *connection, options.migrate).await?;
        drop(connection);
        Ok(PostgresStore { sessions })
    }
}

/// Runs one operation in a transaction, with what it needs moved into it.
macro_rules! transaction {
    ($store:expr, ($($kept:ident),*), |$connection:ident| $work:expr) => {{
        $(let $kept = std::sync::Arc::new($kept);)*
        $store
            .sessions
            .transaction(move |$connection| {
                $(let $kept = $kept.clone();)*
                Box::pin(async move { $work.await })
            })
            .await
    }};
}
use transaction;

#[async_trait]
impl Store for PostgresStore {
    async fn append(&self, batch: Arc<Batch>) -> Result<Vec<Appended>> {
        let together = batch.clone();
        let appended = transaction!(self, (together), |connection| append::append(
            connection,
            &together,
            Manner::Together
        ));
        match appended {
            Err(StoreError::Refused(_)) => {
                transaction!(self, (batch), |connection| append::append(
                    connection,
                    &batch,
                    Manner::Careful
                ))
            }
            appended => appended,
        }
    }

    async fn claim(&self, consumer: &str, request: ClaimRequest) -> Result<Vec<Delivery>> {
        loop {
            let (consumer, request) = (consumer.to_owned(), request.clone());
            let claimed = transaction!(self, (consumer, request), |connection| async move {
                match work::claim(connection, &consumer, &request).await? {
                    Some(claimed) => read::deliveries(connection, &claimed).await.map(Some),
                    None => Ok(None),
                }
            })?;
            if let Some(deliveries) = claimed {
                return Ok(deliveries);
            }
        }
    }

    async fn ack(&self, consumer: &str, mut receipts: Vec<Receipt>) -> Result<Vec<bool>> {
        let asked = receipts.clone();
        receipts.sort_unstable();
        receipts.dedup();
        let (consumer, sorted) = (consumer.to_owned(), Arc::new(receipts));
        let receipts = sorted.clone();
        let done = transaction!(self, (consumer, receipts), |connection| work::ack(
            connection, &consumer, &receipts
        ))?;
        let place = |receipt: &Receipt| sorted.binary_search(receipt).ok();
        Ok(asked.iter().map(|receipt| place(receipt).is_some_and(|at| done[at])).collect())
    }

    async fn next_due(&self, consumer: &str) -> Result<Option<Duration>> {
        let consumer = consumer.to_owned();
        // Asked for many times a second as long as somebody waits.
        let consumer = Arc::new(consumer);
        let due = self
            .sessions
            .read(move |connection| {
                let consumer = consumer.clone();
                Box::pin(async move { work::next_due(connection, &consumer).await })
            })
            .await?;
        Ok(due.map(from_micros))
    }

    async fn events(&self, query: EventQuery) -> Result<Page> {
        transaction!(self, (query), |connection| read::events(connection, &query))
    }

    async fn newest(&self) -> Result<Sequence> {
        self.sessions.read(|connection| Box::pin(read::newest(connection))).await
    }

    async fn event(&self, id: Uuid) -> Result<Option<EventDetail>> {
        transaction!(self, (), |connection| read::event(connection, id))
    }

    async fn register_source(&self, kind: SourceKind, name: &str) -> Result<SourceId> {
        let name = name.to_owned();
        transaction!(self, (name), |connection| sources::register(connection, kind, &name))
    }

    async fn sources(&self) -> Result<Vec<Source>> {
        transaction!(self, (), |connection| sources::list(connection))
    }

    async fn tell_source(&self, source: SourceId, state: SourceState) -> Result<()> {
        transaction!(self, (state), |connection| sources::tell(connection, source, &state))
    }

    async fn forget_source(&self, source: SourceId) -> Result<()> {
        transaction!(self, (), |connection| sources::forget(connection, source))
    }

    async fn bind_account(&self, source: SourceId, account: &str) -> Result<Bound> {
        let account = account.to_owned();
        transaction!(self, (account), |connection| pollers::bind(connection, source, &account))
    }

    async fn lease_poller(&self, source: SourceId, holder: &str, ttl: Duration) -> Result<Leased> {
        let holder = holder.to_owned();
        transaction!(self, (holder), |connection| pollers::lease(connection, source, &holder, ttl))
    }

    async fn renew_poller(&self, checkpoint: Checkpoint, ttl: Duration) -> Result<()> {
        transaction!(self, (checkpoint), |connection| pollers::renew(connection, &checkpoint, ttl))
    }

    async fn release_poller(&self, source: SourceId, lease: [u8; 16]) -> Result<()> {
        transaction!(self, (), |connection| pollers::release(connection, source, lease))
    }

    async fn known(&self, source: SourceId, keys: Vec<Vec<u8>>) -> Result<Vec<bool>> {
        transaction!(self, (keys), |connection| pollers::known(connection, source, &keys))
    }

    async fn gaps(&self, source: Option<&str>, limit: usize) -> Result<Vec<Gap>> {
        // No row can hold what PostgreSQL's text cannot.
        let source = source.map(|source| source.replace('\0', "\u{fffd}"));
        transaction!(self, (source), |connection| pollers::gaps(
            connection,
            source.as_deref(),
            limit
        ))
    }

    async fn acknowledge_gaps(&self, ids: Option<Vec<i64>>) -> Result<u64> {
        transaction!(self, (ids), |connection| pollers::acknowledge(connection, ids.as_deref()))
    }

    async fn quarantine(&self, refused: Vec<Refused>, limits: QuarantineLimits) -> Result<()> {
        transaction!(self, (refused), |connection| sources::quarantine(
            connection, &refused, limits
        ))
    }

    async fn quarantined(&self, source: SourceId) -> Result<Vec<Refused>> {
        transaction!(self, (), |connection| sources::quarantined(connection, source))
    }

    async fn ready(&self) -> Result<()> {
        // A standby, or a server in recovery, reads but does not write.
        transaction!(self, (), |connection| sources::writable(connection))
    }

    async fn notes(&self) -> Result<Vec<String>> {
        transaction!(self, (), |connection| sources::notes(connection))
    }

    async fn audit(&self) -> Result<Vec<String>> {
        transaction!(self, (), |connection| read::audit(connection))
    }

    async fn failed(&self) {
        // There is no task of ours that lives longer than one operation.
        std::future::pending().await
    }

    async fn close(&self) {
        self.sessions.close().await;
    }
}
