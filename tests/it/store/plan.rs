//! How SQLite finds work: never by way of what is finished, which only grows.

use std::collections::HashSet;

use sqlx::{AssertSqlSafe, Row, SqlitePool};

use super::fixture::Fixture;

/// Every statement of workers' calls stands in these files, whole and without quotes inside, and so
/// does what is done now and then beside them.
const WORK: [&str; 8] = [
    include_str!("../../../src/store/sqlite/work.rs"),
    include_str!("../../../src/store/sqlite/attempts.rs"),
    include_str!("../../../src/store/effects.rs"),
    include_str!("../../../src/store/sqlite/effects.rs"),
    include_str!("../../../src/store/sqlite/consumers.rs"),
    include_str!("../../../src/store/sqlite/fill.rs"),
    include_str!("../../../src/store/sqlite/retention.rs"),
    include_str!("../../../src/store/retention.rs"),
];

/// The statements that read by conversation, likewise.
const CONVERSATIONS: [&str; 2] = [
    include_str!("../../../src/store/conversations.rs"),
    include_str!("../../../src/store/sqlite/conversations.rs"),
];

/// Those of a replay, which goes through finished work by its key and never further than its limit.
const REPLAY: &str = include_str!("../../../src/store/sqlite/replay.rs");

/// Indexes that hold what is unfinished or dead and nothing else.
const UNFINISHED: [&str; 4] =
    ["INDEX work_lane", "INDEX work_due", "INDEX lanes_due", "INDEX work_dead"];

/// The statements of a source file.
pub(crate) fn statements(source: &str) -> Vec<&str> {
    let verbs = ["SELECT ", "INSERT ", "UPDATE ", "DELETE "];
    source.split('"').filter(|text| verbs.iter().any(|verb| text.starts_with(verb))).collect()
}

/// Each step of the plan of a statement.
async fn steps(pool: &SqlitePool, sql: &str) -> Vec<String> {
    let explain = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}"));
    let rows = sqlx::query(explain).fetch_all(pool).await.unwrap();
    rows.iter().map(|row| row.get("detail")).collect()
}

/// The steps that read more the more is finished.
fn grow<'a>(sql: &str, steps: &'a [String]) -> Vec<&'a String> {
    // Results of a step before, which was judged by itself.
    let name = |step: &'a String| {
        step.strip_prefix("CO-ROUTINE ").or_else(|| step.strip_prefix("MATERIALIZE "))
    };
    let made: HashSet<_> = steps.iter().filter_map(name).collect();
    // Consumers are few.
    let consumers = if sql.contains("consumers AS c") { "c" } else { "consumers" };
    let grows = |step: &&String| {
        if UNFINISHED.iter().any(|index| step.contains(index)) {
            return false;
        }
        if let Some(scanned) = step.strip_prefix("SCAN ") {
            return !(made.contains(scanned)
                || scanned.contains("VIRTUAL TABLE")
                || scanned == "CONSTANT ROW"
                || scanned == "sqlite_sequence"
                || scanned.split(' ').next() == Some(consumers));
        }
        step.ends_with("USING PRIMARY KEY (consumer_id=?)")
    };
    steps.iter().filter(grows).collect()
}

#[tokio::test]
async fn calls_of_workers_cost_the_same_however_much_is_finished() {
    let fixture = Fixture::sqlite().await;
    let statements: Vec<_> = WORK.into_iter().chain([REPLAY]).flat_map(statements).collect();
    assert!(statements.len() >= 59, "{statements:#?}");
    for sql in statements {
        let steps = steps(fixture.raw.sqlite_pool(), sql).await;
        // What inserts the values it was given reads nothing.
        assert!(!steps.is_empty() || sql.contains("VALUES ("), "{sql}");
        let grow = grow(sql, &steps);
        assert!(grow.is_empty(), "{sql}\n{steps:#?}");
    }
    fixture.finish().await;
}

#[tokio::test]
async fn conversations_are_read_by_index_alone() {
    let fixture = Fixture::sqlite().await;
    let statements = CONVERSATIONS.map(statements).concat();
    assert!(statements.len() >= 7, "{statements:#?}");
    for sql in statements {
        let steps = steps(fixture.raw.sqlite_pool(), sql).await;
        let grow = grow(sql, &steps);
        assert!(grow.is_empty() && !steps.is_empty(), "{sql}\n{steps:#?}");
    }
    fixture.finish().await;
}

#[tokio::test]
async fn a_statement_that_reads_all_work_would_be_seen() {
    let fixture = Fixture::sqlite().await;
    for sql in [
        "SELECT * FROM work WHERE state = 0",
        "SELECT * FROM work WHERE consumer_id = 1 AND receipt = x'00'",
        "SELECT * FROM events WHERE type = 'x'",
        "DELETE FROM attempts WHERE attempt = 1",
        "SELECT 1 FROM lanes AS l WHERE l.lane = 1",
    ] {
        let steps = steps(fixture.raw.sqlite_pool(), sql).await;
        assert_eq!(grow(sql, &steps).len(), 1, "{sql}\n{steps:#?}");
    }
    fixture.finish().await;
}
