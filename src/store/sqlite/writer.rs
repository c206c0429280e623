//! The one connection that writes, and the commits it shares.
//!
//! SQLite has one writer at a time, and several connections that want to write starve each other.
//! So all writes queue here: whatever waits while a commit runs goes into the next one together,
//! each job in a savepoint of its own, and nobody waits for a timer.

use std::path::PathBuf;

use futures_util::future::BoxFuture;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection, SqliteConnection};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::error::unavailable;
use crate::clock::{Clock, Time};
use crate::store::{Result, StoreError};

/// Jobs that share one commit at the most: bounds how long the first waits for the last.
const JOBS: usize = 64;
/// Jobs that may wait. Receipts have a bound of their own before this one.
const QUEUE: usize = 1024;
/// A write-ahead log larger than this is emptied between two commits, because SQLite by itself
/// never shrinks it under steady load.
const WAL_BYTES: u64 = 64 << 20;

/// What a job does inside the transaction; `now` is the one time of that transaction.
pub(super) trait Work<T>:
    for<'c> FnOnce(&'c mut SqliteConnection, Time) -> BoxFuture<'c, Result<T>> + Send + 'static
{
}
impl<T, F> Work<T> for F where
    F: for<'c> FnOnce(&'c mut SqliteConnection, Time) -> BoxFuture<'c, Result<T>> + Send + 'static
{
}

/// The queue in front of the connection.
pub(super) struct Writer {
    jobs: mpsc::Sender<Box<dyn Job>>,
    stop: CancellationToken,
    stopped: CancellationToken,
}

impl Writer {
    /// Starts the task that owns the connection.
    pub(super) fn start(options: SqliteConnectOptions, path: PathBuf, clock: Clock) -> Writer {
        let (jobs, queue) = mpsc::channel(QUEUE);
        let mut wal = path.into_os_string();
        wal.push("-wal");
        let task = Task { options, wal: wal.into(), clock, connection: None, latest: None };
        let (stop, stopped) = (CancellationToken::new(), CancellationToken::new());
        let guard = stopped.clone().drop_guard();
        let until = stop.clone();
        tokio::spawn(async move {
            let _guard = guard;
            task.run(queue, until).await;
        });
        Writer { jobs, stop, stopped }
    }

    /// Returns once the task has ended, whether by [`Writer::close`] or by a panic.
    pub(super) async fn failed(&self) {
        self.stopped.cancelled().await;
    }

    /// Commits what waits, then closes the connection.
    pub(super) async fn close(&self) {
        self.stop.cancel();
        self.stopped.cancelled().await;
    }

    /// Runs `work` in a transaction and answers once it is committed.
    pub(super) async fn run<T: Send + 'static>(&self, work: impl Work<T>) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let job = Pending { work: Some(work), result: None, reply };
        let closed = || StoreError::Unavailable("the store is closed".to_owned());
        self.jobs.send(Box::new(job)).await.map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }
}

/// A job whose result type is forgotten.
trait Job: Send {
    fn run<'c>(
        &'c mut self,
        connection: &'c mut SqliteConnection,
        now: Time,
    ) -> BoxFuture<'c, Option<StoreError>>;
    fn finish(self: Box<Self>, committed: Result<()>);
}

struct Pending<T, W> {
    work: Option<W>,
    result: Option<Result<T>>,
    reply: oneshot::Sender<Result<T>>,
}

impl<T: Send, W: Work<T>> Job for Pending<T, W> {
    fn run<'c>(
        &'c mut self,
        connection: &'c mut SqliteConnection,
        now: Time,
    ) -> BoxFuture<'c, Option<StoreError>> {
        Box::pin(async move {
            let work = self.work.take()?;
            let result = work(connection, now).await;
            let error = result.as_ref().err().cloned();
            self.result = Some(result);
            error
        })
    }

    fn finish(self: Box<Self>, committed: Result<()>) {
        let not_run = || StoreError::Unavailable("the transaction was rolled back".to_owned());
        let result = match committed {
            Ok(()) => self.result.unwrap_or_else(|| Err(not_run())),
            Err(error) => Err(error),
        };
        // Whoever asked may have gone away; the commit stands all the same.
        let _ = self.reply.send(result);
    }
}

struct Task {
    options: SqliteConnectOptions,
    wal: PathBuf,
    clock: Clock,
    connection: Option<SqliteConnection>,
    /// The latest time used; the clock went back if it reads less.
    latest: Option<Time>,
}

impl Task {
    async fn run(mut self, mut queue: mpsc::Receiver<Box<dyn Job>>, stop: CancellationToken) {
        let mut jobs = Vec::with_capacity(JOBS);
        loop {
            tokio::select! {
                biased;
                taken = queue.recv_many(&mut jobs, JOBS) => if taken == 0 { break },
                () = stop.cancelled() => {
                    // What was sent before is still taken; nothing more is let in.
                    queue.close();
                    if queue.is_empty() { break }
                    continue;
                }
            }
            let committed = self.commit(&mut jobs).await;
            if committed.is_err() {
                // A connection that failed may be inside a transaction that it cannot end, or have
                // committed all the same.
                self.connection = None;
                self.latest = None;
            }
            for job in jobs.drain(..) {
                job.finish(committed.clone());
            }
            self.truncate_wal().await;
        }
        if let Some(connection) = self.connection {
            let _ = connection.close().await;
        }
    }

    /// One transaction over all `jobs`. An error of one is its own; an error of the database undoes
    /// all of them.
    async fn commit(&mut self, jobs: &mut [Box<dyn Job>]) -> Result<()> {
        let now = self.clock.now();
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => {
                let connection = SqliteConnection::connect_with(&self.options).await;
                none.insert(connection.map_err(unavailable)?)
            }
        };
        execute(connection, "BEGIN IMMEDIATE").await?;
        if self.latest.is_none_or(|latest| now < latest) {
            super::work::clock_went_back(connection, now).await?;
        }
        let shared = jobs.len() > 1;
        for job in jobs {
            if shared {
                execute(connection, "SAVEPOINT job").await?;
            }
            match job.run(connection, now).await {
                Some(error @ StoreError::Unavailable(_)) => {
                    let _ = execute(connection, "ROLLBACK").await;
                    return Err(error);
                }
                Some(_) if shared => execute(connection, "ROLLBACK TO job").await?,
                Some(_) => return execute(connection, "ROLLBACK").await,
                None => {}
            }
            if shared {
                execute(connection, "RELEASE job").await?;
            }
        }
        execute(connection, "COMMIT").await?;
        // Not sooner, because what a rollback undoes is still to be done.
        self.latest = Some(now);
        Ok(())
    }

    async fn truncate_wal(&mut self) {
        let large = std::fs::metadata(&self.wal).is_ok_and(|file| file.len() > WAL_BYTES);
        if let (true, Some(connection)) = (large, &mut self.connection) {
            // A reader may be in the way; then the next commit finds the log large again.
            let _ = execute(connection, "PRAGMA wal_checkpoint(TRUNCATE)").await;
        }
    }
}

async fn execute(connection: &mut SqliteConnection, sql: &'static str) -> Result<()> {
    sqlx::query(sql).execute(connection).await.map(drop).map_err(unavailable)
}
