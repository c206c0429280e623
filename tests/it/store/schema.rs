//! Opening a store: whose schema is taken, brought up to date, or refused.

use inboxd::clock::Clock;
use inboxd::source::SourceKind;
use inboxd::store::{Options, StoreError, open};

use super::fixture::{Fixture, names};
use super::sample::sample;

super::conformance!(
    a_newer_schema_is_refused,
    a_missing_schema_is_refused_where_none_may_be_made,
    a_schema_that_lacks_a_step_is_refused_where_none_may_be_made,
    another_schema_under_a_known_number_is_refused,
    several_may_open_one_fresh_store_at_once,
    opening_again_changes_nothing,
);

/// The words of a refusal, which is for a schema that is `missing` or for one of the wrong kind.
fn refusal<T>(opened: Result<T, StoreError>, missing: bool) -> String {
    match opened {
        Err(StoreError::Schema(words)) if !missing => words,
        Err(StoreError::Unprepared(words)) if missing => words,
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("it was opened"),
    }
}

async fn a_newer_schema_is_refused(fixture: &mut Fixture) {
    let later = "INSERT INTO _sqlx_migrations
                     (version, description, success, checksum, execution_time)
                 SELECT 9999, 'later', success, checksum, execution_time
                 FROM _sqlx_migrations WHERE version = 1";
    fixture.raw.execute(later).await;
    for migrate in [true, false] {
        let words = refusal(fixture.open_again(migrate).await, false);
        assert!(words.contains("schema version 9999, newer than"), "{words}");
        assert!(words.contains("run the newer inboxd"), "{words}");
    }
}

async fn a_missing_schema_is_refused_where_none_may_be_made(fixture: &mut Fixture) {
    let url = fixture.raw.fresh_url();
    for _ in 0..2 {
        let words = refusal(fixture.open(&url, false).await, true);
        assert!(words.contains("inboxd migrate"), "{words}");
    }
    let store = fixture.open(&url, true).await.unwrap();
    store.close().await;
    fixture.open(&url, false).await.unwrap().close().await;
}

async fn a_schema_that_lacks_a_step_is_refused_where_none_may_be_made(fixture: &mut Fixture) {
    fixture.raw.execute("DELETE FROM _sqlx_migrations WHERE version = 1").await;
    let words = refusal(fixture.open_again(false).await, true);
    assert!(words.contains("inboxd migrate"), "{words}");
}

async fn another_schema_under_a_known_number_is_refused(fixture: &mut Fixture) {
    let empty = if fixture.raw.is_sqlite() { "x''" } else { "''::bytea" };
    fixture.raw.execute(&format!("UPDATE _sqlx_migrations SET checksum = {empty}")).await;
    let words = refusal(fixture.open_again(true).await, false);
    assert!(words.contains("schema step 1 is not the one"), "{words}");
}

async fn several_may_open_one_fresh_store_at_once(fixture: &mut Fixture) {
    let url = fixture.raw.fresh_url();
    let opening = (0..8).map(|_| fixture.open(&url, true));
    let opened = futures_util::future::join_all(opening).await;
    for store in opened {
        let store = store.unwrap();
        store.ready().await.unwrap();
        assert_eq!(store.consumers().await.unwrap(), []);
        store.close().await;
    }
}

async fn opening_again_changes_nothing(fixture: &mut Fixture) {
    fixture.stored(&[sample(fixture.main, "a")]).await;
    let second = fixture.open_again(true).await.unwrap();
    let appended = second.register_source(inboxd::source::SourceKind::UnifyPort, "main").await;
    assert_eq!(appended.unwrap(), fixture.main);
    second.close().await;
    assert_eq!(names(&fixture.claim(10).await), ["a"]);
}

/// The migrations of a database, by file name.
fn migrations(database: &str) -> Vec<String> {
    let dir = format!("{}/migrations/{database}", env!("CARGO_MANIFEST_DIR"));
    let files = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<_> =
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Columns that may hold no value end in a question mark.
const SQLITE: &str = "SELECT m.name || '.' || p.name || iif(p.\"notnull\" OR p.pk > 0, '', '?')
    FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS p
    WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' AND m.name <> '_sqlx_migrations'";
const POSTGRES: &str = "SELECT table_name || '.' || column_name ||
        CASE is_nullable WHEN 'YES' THEN '?' ELSE '' END
    FROM information_schema.columns
    WHERE table_schema = 'public' AND table_name <> '_sqlx_migrations'";
const SQLITE_INDEXES: &str = "SELECT tbl_name || '.' || name FROM sqlite_master
    WHERE type = 'index' AND sql IS NOT NULL";
const POSTGRES_INDEXES: &str = "SELECT i.tablename || '.' || i.indexname FROM pg_indexes AS i
    WHERE i.schemaname = 'public' AND NOT EXISTS
        (SELECT 1 FROM pg_constraint AS c
         WHERE c.conname = i.indexname AND c.contype IN ('p', 'u'))";

#[tokio::test(flavor = "multi_thread")]
async fn both_databases_have_the_same_steps_tables_columns_and_indexes() {
    assert_eq!(migrations("sqlite"), migrations("postgres"));
    let (sqlite, postgres) = (Fixture::sqlite().await, Fixture::postgres().await);
    let sorted = |mut texts: Vec<String>| {
        texts.sort();
        texts
    };
    for (of_sqlite, of_postgres) in [(SQLITE, POSTGRES), (SQLITE_INDEXES, POSTGRES_INDEXES)] {
        let of_sqlite = sorted(sqlite.raw.texts(of_sqlite).await);
        assert!(of_sqlite.len() >= 7, "{of_sqlite:?}");
        assert_eq!(of_sqlite, sorted(postgres.raw.texts(of_postgres).await));
    }
    sqlite.finish().await;
    postgres.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_sqlite_file_and_those_beside_it_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("inbox.db").display());
    let options = Options { migrate: true, allow_unsafe_durability: false, clock: Clock::wall() };
    let store = open(&url, options).await.unwrap();
    store.register_source(SourceKind::UnifyPort, "main").await.unwrap();
    for name in ["inbox.db", "inbox.db-wal"] {
        let mode = std::fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    store.close().await;
}
