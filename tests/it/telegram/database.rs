//! A database of a test, and a look into it past the product's own code.

use std::path::PathBuf;
use std::sync::Arc;

use inboxd::clock::Clock;
use inboxd::store::{self, Options, Store};
use sha2::{Digest, Sha256};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use sqlx::{PgPool, Row, SqlitePool};

use crate::support::postgres;
use crate::support::test_dir::TestDir;

/// Where an inbox is kept. The pool is the test's own.
pub(super) enum Database {
    Sqlite { file: PathBuf, pool: SqlitePool, _dir: Option<TestDir> },
    Postgres { url: String, pool: PgPool },
}

/// A stored event.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub(super) external_id: String,
    pub(super) kind: String,
    pub(super) subject: Option<String>,
    pub(super) flags: i64,
    pub(super) body: Vec<u8>,
}

/// Runs the same query on either database.
macro_rules! on {
    ($database:expr, |$pool:ident| $work:expr) => {
        match $database {
            Database::Sqlite { pool: $pool, .. } => $work,
            Database::Postgres { pool: $pool, .. } => $work,
        }
    };
}

impl Database {
    /// A new one of each kind.
    pub(super) async fn both() -> [Database; 2] {
        [Database::sqlite(), Database::postgres().await]
    }

    /// A file of its own.
    pub(super) fn sqlite() -> Database {
        let dir = TestDir::new("telegram");
        let file = dir.join("inbox.db");
        Database::at(file, Some(dir))
    }

    /// The file of a gateway that has a directory of its own.
    pub(super) fn at(file: PathBuf, dir: Option<TestDir>) -> Database {
        let options = SqliteConnectOptions::new().filename(&file);
        Database::Sqlite {
            file,
            pool: SqlitePoolOptions::new().connect_lazy_with(options),
            _dir: dir,
        }
    }

    /// A database on the server that the tests share.
    pub(super) async fn postgres() -> Database {
        let url = tokio::task::spawn_blocking(|| postgres::shared().create_database());
        let url = url.await.unwrap();
        let pool = PgPool::connect_lazy(&url).unwrap();
        Database::Postgres { url, pool }
    }

    /// As the configuration names it.
    pub(super) fn url(&self) -> String {
        match self {
            Database::Sqlite { file, .. } => format!("sqlite:{}", file.display()),
            Database::Postgres { url, .. } => url.clone(),
        }
    }

    pub(super) async fn open(&self) -> Arc<dyn Store> {
        let clock = Clock::wall();
        let options = Options { migrate: true, allow_unsafe_durability: false, clock };
        store::open(&self.url(), options).await.unwrap()
    }

    /// Every event, in order of receipt.
    pub(super) async fn events(&self) -> Vec<Stored> {
        let sql = "SELECT e.external_id, e.type, e.subject, e.flags, b.body
                   FROM events AS e JOIN bodies AS b ON b.event_seq = e.seq ORDER BY e.seq";
        on!(self, |pool| {
            let rows = sqlx::query(sql).fetch_all(pool).await.unwrap();
            let stored = rows.iter().map(|row| Stored {
                external_id: row.get(0),
                kind: row.get(1),
                subject: row.get(2),
                flags: row.get(3),
                body: row.get(4),
            });
            stored.collect()
        })
    }

    /// How many events there are.
    pub(super) async fn count(&self) -> i64 {
        self.number("SELECT count(*) FROM events").await.unwrap_or(0)
    }

    /// The first column of the first row, or none.
    pub(super) async fn number(&self, sql: &'static str) -> Option<i64> {
        on!(self, |pool| {
            let number = sqlx::query_scalar(sql).fetch_optional(pool).await;
            number.unwrap().flatten()
        })
    }

    /// The same of a text.
    pub(super) async fn word(&self, sql: &'static str) -> Option<String> {
        on!(self, |pool| {
            let word = sqlx::query_scalar(sql).fetch_optional(pool).await;
            word.unwrap().flatten()
        })
    }

    /// What the store says is to be confirmed next.
    pub(super) async fn next_offset(&self) -> Option<i64> {
        self.number("SELECT next_offset FROM pollers").await
    }

    /// Whether this very update of the only bot is there, by its identity and byte for byte.
    pub(super) async fn holds(&self, id: i32, bytes: &[u8]) -> bool {
        let key = [&b"u"[..], &i64::from(id).to_be_bytes(), &Sha256::digest(bytes)].concat();
        let sql = "SELECT b.body FROM identities AS i JOIN bodies AS b ON b.event_seq = i.event_seq
                   WHERE i.source_id = 1 AND i.key = $1";
        let body: Option<Vec<u8>> = on!(self, |pool| {
            sqlx::query_scalar(sql).bind(key).fetch_optional(pool).await.unwrap()
        });
        body.is_some_and(|body| body == bytes)
    }

    /// Changes the database behind the product's back.
    pub(super) async fn execute(&self, sql: &'static str) {
        on!(self, |pool| {
            sqlx::raw_sql(sql).execute(pool).await.map(drop).unwrap();
        });
    }
}
