//! A second way into a test's database, beside the store.

use std::sync::OnceLock;
use std::time::Duration;

use inboxd::clock::micros;
use inboxd::event::SourceId;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, PgPool, SqlitePool};

use crate::support::postgres;
use crate::support::test_dir::TestDir;

/// The database and plain SQL on it.
pub(crate) enum Raw {
    Sqlite(TestDir, OnceLock<SqlitePool>),
    Postgres(OnceLock<PgPool>),
}

/// Runs `$query` on the pool of either database.
macro_rules! on {
    ($raw:expr, $pool:ident => $query:expr) => {
        match $raw {
            Raw::Sqlite(_, pool) => {
                let $pool = pool.get().unwrap();
                $query.await.unwrap()
            }
            Raw::Postgres(pool) => {
                let $pool = pool.get().unwrap();
                $query.await.unwrap()
            }
        }
    };
}

impl Raw {
    pub(crate) fn sqlite() -> Raw {
        Raw::Sqlite(TestDir::new("store"), OnceLock::new())
    }

    pub(crate) fn postgres() -> Raw {
        Raw::Postgres(OnceLock::new())
    }

    /// The URL of a database that nobody has used yet.
    pub(crate) fn fresh_url(&self) -> String {
        match self {
            Raw::Sqlite(dir, _) => {
                let file = dir.join(&format!("{}.db", uuid::Uuid::now_v7()));
                format!("sqlite:{}", file.display())
            }
            Raw::Postgres(_) => postgres::shared().create_database(),
        }
    }

    /// Connects to the database that exists under this URL now.
    pub(crate) async fn connect(&self, url: &str) {
        match self {
            Raw::Sqlite(_, pool) => {
                let options = SqliteConnectOptions::new().filename(&url["sqlite:".len()..]);
                let opened = SqlitePool::connect_with(options).await.unwrap();
                pool.set(opened).unwrap();
            }
            Raw::Postgres(pool) => pool.set(PgPool::connect(url).await.unwrap()).unwrap(),
        }
    }

    /// Whether the database is SQLite.
    pub(crate) fn is_sqlite(&self) -> bool {
        matches!(self, Raw::Sqlite(..))
    }

    /// SQLite's connections.
    pub(crate) fn sqlite_pool(&self) -> &SqlitePool {
        match self {
            Raw::Sqlite(_, pool) => pool.get().unwrap(),
            Raw::Postgres(_) => panic!("this is PostgreSQL"),
        }
    }

    /// Runs statements, parted by semicolons.
    pub(crate) async fn execute(&self, sql: &str) {
        let query = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        on!(self, pool => async { query.execute(pool).await.map(drop) });
    }

    /// One whole number.
    pub(crate) async fn number(&self, sql: &str) -> i64 {
        let sql = AssertSqlSafe(sql.to_owned());
        on!(self, pool => sqlx::query_scalar(sql).fetch_one(pool))
    }

    /// A column of whole numbers.
    pub(crate) async fn numbers(&self, sql: &str) -> Vec<i64> {
        let sql = AssertSqlSafe(sql.to_owned());
        on!(self, pool => sqlx::query_scalar(sql).fetch_all(pool))
    }

    /// A column of text.
    pub(crate) async fn texts(&self, sql: &str) -> Vec<String> {
        let sql = AssertSqlSafe(sql.to_owned());
        on!(self, pool => sqlx::query_scalar(sql).fetch_all(pool))
    }

    /// Counts the work of every consumer anew, after some was removed behind the store's back.
    pub(crate) async fn recount_work(&self) {
        self.execute(
            "UPDATE consumers SET work_count =
                 (SELECT count(*) FROM work WHERE consumer_id = consumers.id)",
        )
        .await;
    }

    /// Gives a bot's lease to whoever has this token, for a very long time.
    pub(crate) async fn lease(&self, source: SourceId, token: [u8; 16]) {
        let sql = "INSERT INTO pollers (source_id, lease_token, lease_holder, lease_until)
                   VALUES ($1, $2, 'a test', 9000000000000000)
                   ON CONFLICT (source_id) DO UPDATE SET lease_token = excluded.lease_token";
        on!(self, pool => async {
            sqlx::query(sql).bind(source.0).bind(&token[..]).execute(pool).await.map(drop)
        });
    }

    /// Shifts what PostgreSQL holds into the past, because its clock cannot be set. SQLite's store
    /// is given a clock that can.
    pub(crate) async fn pass_time(&self, by: Duration) {
        if self.is_sqlite() {
            return;
        }
        let by = micros(by);
        let sql = format!(
            "BEGIN;
             UPDATE work SET due_at = due_at - {by}, since = since - {by} WHERE state < 2;
             UPDATE work SET finished_at = finished_at - {by} WHERE finished_at IS NOT NULL;
             UPDATE identities SET expires_at = expires_at - {by} WHERE expires_at IS NOT NULL;
             UPDATE lanes SET due_at = due_at - {by}, since = since - {by} WHERE head IS NOT NULL;
             UPDATE consumers SET created_at = created_at - {by},
                                  last_claim_at = last_claim_at - {by};
             UPDATE pollers SET lease_until = lease_until - {by};
             COMMIT"
        );
        self.execute(&sql).await;
    }

    pub(crate) async fn close(&self) {
        match self {
            Raw::Sqlite(_, pool) => pool.get().unwrap().close().await,
            Raw::Postgres(pool) => pool.get().unwrap().close().await,
        }
    }
}
