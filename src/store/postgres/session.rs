//! Connections to PostgreSQL and the transactions on them.
//!
//! Every transaction runs in a task of its own: a future that is dropped in the middle of one would
//! give its connection back still inside it (sqlx issues 4385 and 4393). A connection on which
//! anything went wrong is closed and not given back.

use std::str::FromStr;
use std::time::Duration;

use futures_util::future::BoxFuture;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPoolOptions};
use sqlx::{PgPool, Postgres, Row};

use super::error::{of, try_again};
use crate::store::{Result, StoreError};

/// More connections than this are slower: the database shares the machine's cores among them.
const CONNECTIONS: u32 = 12;
/// How long a transaction waits for a connection.
const ACQUIRE: Duration = Duration::from_secs(5);
/// How long a transaction may take; a server that no longer answers would else hold it for ever.
const LIMIT: Duration = Duration::from_secs(30);
/// How often a transaction that lost against another is tried.
const TRIES: usize = 5;

/// What a transaction does; it may be asked to do it again from the start.
pub(super) trait Work<T>:
    for<'c> Fn(&'c mut PgConnection) -> BoxFuture<'c, std::result::Result<T, Failure>>
    + Send
    + Sync
    + 'static
{
}
impl<T, F> Work<T> for F where
    F: for<'c> Fn(&'c mut PgConnection) -> BoxFuture<'c, std::result::Result<T, Failure>>
        + Send
        + Sync
        + 'static
{
}

/// Why a transaction was not committed.
#[derive(Debug)]
pub(super) enum Failure {
    /// The database said so.
    Database(sqlx::Error),
    /// We said so.
    Ours(StoreError),
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Failure {
        Failure::Database(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        Failure::Ours(error)
    }
}

/// The pool.
#[derive(Clone, Debug)]
pub(super) struct Sessions(PgPool);

impl Sessions {
    /// Connects when first asked to.
    pub(super) fn new(url: &str, allow_unsafe: bool) -> Result<Sessions> {
        // The error of a bad URL could hold the password.
        let options = PgConnectOptions::from_str(url).map_err(|_| {
            StoreError::Schema(
                "store.url is no PostgreSQL URL; write it like postgres://user@host/database"
                    .to_owned(),
            )
        })?;
        let pool = PgPoolOptions::new()
            .max_connections(CONNECTIONS)
            .acquire_timeout(ACQUIRE)
            // A connection that died meanwhile shows itself at BEGIN, where nothing is lost yet.
            .test_before_acquire(false)
            .after_connect(move |connection, _| Box::pin(settle(connection, allow_unsafe)));
        Ok(Sessions(pool.connect_lazy_with(options.application_name("inboxd"))))
    }

    /// Runs `work` in a transaction that opens with `begin`, and answers once it is committed.
    pub(super) async fn transaction<T: Send + 'static>(&self, work: impl Work<T>) -> Result<T> {
        let pool = self.0.clone();
        let task = tokio::spawn(async move {
            let mut tries = 0;
            loop {
                tries += 1;
                match once(&pool, &work).await {
                    Err(Failure::Database(error)) if try_again(&error) && tries < TRIES => {}
                    Err(Failure::Database(error)) => return Err(of(error)),
                    Err(Failure::Ours(error)) => return Err(error),
                    Ok(done) => return Ok(done),
                }
            }
        });
        task.await.map_err(|_| StoreError::Unavailable("the store's task died".to_owned()))?
    }

    /// Answers one statement that only reads: outside of a transaction it is one round trip.
    pub(super) async fn read<T: Send + 'static>(&self, statement: impl Work<T>) -> Result<T> {
        let pool = self.0.clone();
        let task = tokio::spawn(async move {
            let mut tries = 0;
            loop {
                tries += 1;
                let mut connection = pool.acquire().await.map_err(of)?;
                match tokio::time::timeout(LIMIT, statement(&mut connection)).await {
                    Ok(Ok(read)) => return Ok(read),
                    Ok(Err(Failure::Ours(error))) => return Err(error),
                    Ok(Err(Failure::Database(error))) if is_lost(&error) => {
                        connection.close_on_drop();
                        // The pool may hold several that died with the server.
                        if tries > CONNECTIONS {
                            return Err(of(error));
                        }
                    }
                    Ok(Err(Failure::Database(error))) => return Err(of(error)),
                    Err(_) => {
                        connection.close_on_drop();
                        return Err(silent());
                    }
                }
            }
        });
        task.await.map_err(|_| StoreError::Unavailable("the store's task died".to_owned()))?
    }

    /// The pool itself, for migrations.
    pub(super) async fn acquire(&self) -> Result<PoolConnection<Postgres>> {
        self.0.acquire().await.map_err(of)
    }

    pub(super) async fn close(&self) {
        self.0.close().await;
    }
}

/// Settings that every session keeps, whatever the server's configuration becomes meanwhile: a
/// session that begins after somebody turned `synchronous_commit` off has it on, unless `allow_unsafe`.
///
/// Every statement here finds its rows by an index. The planner does not know that of a table that
/// is new: it keeps the plan that was good for an empty one, a scan, until the next analysis, and
/// each append then reads all identities there are. So it has no other choice.
///
/// What a choice that is turned off costs in the plan is far beyond `jit_above_cost`, and no statement
/// here runs for as long as its compilation: 0.3 s for an append.
async fn settle(
    connection: &mut PgConnection,
    allow_unsafe: bool,
) -> std::result::Result<(), sqlx::Error> {
    let sql = "SELECT set_config('synchronous_commit',
                          CASE WHEN $1 OR current_setting('synchronous_commit') <> 'off'
                               THEN current_setting('synchronous_commit') ELSE 'on' END, false),
                      set_config('idle_in_transaction_session_timeout', '60s', false),
                      set_config('statement_timeout', '30s', false),
                      set_config('lock_timeout', '20s', false),
                      set_config('client_min_messages', 'warning', false),
                      set_config('jit', 'off', false),
                      set_config('enable_seqscan', 'off', false),
                      set_config('enable_hashjoin', 'off', false),
                      set_config('enable_mergejoin', 'off', false)";
    sqlx::query(sql).bind(allow_unsafe).execute(connection).await.map(drop)
}

async fn once<T: Send>(pool: &PgPool, work: &impl Work<T>) -> std::result::Result<T, Failure> {
    let mut connection = begin(pool).await?;
    let transaction = async {
        let done = work(&mut connection).await;
        let end = if done.is_ok() { "COMMIT" } else { "ROLLBACK" };
        let ended = sqlx::raw_sql(end).execute(&mut *connection).await;
        (done, ended)
    };
    let (done, ended) = match tokio::time::timeout(LIMIT, transaction).await {
        Ok(outcome) => outcome,
        Err(_) => {
            connection.close_on_drop();
            return Err(silent().into());
        }
    };
    if let Err(error) = ended {
        connection.close_on_drop();
        // What went wrong first says more; after a failed COMMIT nobody knows the outcome.
        done?;
        return Err(error.into());
    }
    if let Err(Failure::Database(error)) = &done
        && error.as_database_error().is_none()
    {
        connection.close_on_drop();
    }
    done
}

/// A connection in a transaction. The pool may hold several that died with the server.
async fn begin(pool: &PgPool) -> std::result::Result<PoolConnection<Postgres>, Failure> {
    let mut tries = 0;
    loop {
        tries += 1;
        let mut connection = pool.acquire().await?;
        let begun = tokio::time::timeout(LIMIT, sqlx::raw_sql("BEGIN").execute(&mut *connection));
        match begun.await {
            Ok(Ok(_)) => return Ok(connection),
            Ok(Err(error)) => {
                connection.close_on_drop();
                if tries > CONNECTIONS {
                    return Err(error.into());
                }
            }
            Err(_) => {
                connection.close_on_drop();
                return Err(silent().into());
            }
        }
    }
}

/// Whether the connection is of no more use: broken, or ended by the server.
fn is_lost(error: &sqlx::Error) -> bool {
    let Some(error) = error.as_database_error() else { return true };
    error.code().is_some_and(|code| code.starts_with("57P"))
}

fn silent() -> StoreError {
    StoreError::Unavailable("PostgreSQL did not answer in 30 s".to_owned())
}

/// Refuses a server that may lose what it said it has committed.
pub(super) async fn check_durability(
    connection: &mut PgConnection,
    allow_unsafe: bool,
) -> Result<()> {
    // Not the session's own, which has it on already.
    let sql = "SELECT current_setting('fsync'),
                      (SELECT reset_val FROM pg_settings WHERE name = 'synchronous_commit')";
    let row = sqlx::query(sql).fetch_one(connection).await.map_err(of)?;
    let (fsync, commit): (String, String) = (row.get(0), row.get(1));
    if fsync != "off" && commit != "off" {
        return Ok(());
    }
    let found = format!("the PostgreSQL server has fsync={fsync} and synchronous_commit={commit}");
    if !allow_unsafe {
        return Err(StoreError::Schema(format!(
            "{found}, so a crash can lose what was acknowledged; set both to on, or set \
             store.allow_unsafe_durability = true if that loss is acceptable"
        )));
    }
    tracing::warn!("{found}: a crash can lose what was acknowledged");
    Ok(())
}
