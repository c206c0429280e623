//! How PostgreSQL finds the rows of a worker's calls, by the plan that serves any values.

use std::collections::HashSet;

use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};

use super::fixture::Fixture;
use super::plan::statements;
use super::sample::{Vary, sample};

/// Every statement of a worker's calls stands in these files, but for what is put together.
const HOT: [&str; 5] = [
    include_str!("../../../src/store/postgres/work.rs"),
    include_str!("../../../src/store/postgres/attempts.rs"),
    include_str!("../../../src/store/effects.rs"),
    include_str!("../../../src/store/postgres/effects.rs"),
    include_str!("../../../src/store/postgres/replay.rs"),
];
/// The settings of a session of the store.
const SESSION: &str = include_str!("../../../src/store/postgres/session.rs");

/// Ways to rows that cost the same however much is finished: index, and what its condition says.
const WAYS: [(&str, &[&str]); 19] = [
    ("consumers_pkey", &["id = "]),
    ("events_conversation", &["conversation = ", "seq > "]),
    ("events_id", &["id = "]),
    ("work_dead_event", &["consumer_id = ", "event_seq > "]),
    // What a replay looks at, part by part.
    ("work_pkey", &["consumer_id = ", "event_seq > ", "event_seq <= "]),
    ("effects_pkey", &["consumer_id = ", "key_hash = "]),
    ("effects_begun", &["consumer_id = "]),
    ("effects_finished", &["consumer_id = "]),
    ("work_lane", &["consumer_id = ", "lane = "]),
    ("work_due", &["consumer_id = "]),
    ("work_dead", &["consumer_id = ", "pos > "]),
    ("work_pkey", &["consumer_id = ", "event_seq = "]),
    ("lanes_due", &["consumer_id = "]),
    ("lanes_pkey", &["consumer_id = ", "lane = "]),
    ("attempts_pkey", &["consumer_id = ", "event_seq = "]),
    ("events_pkey", &["seq = "]),
    ("bodies_pkey", &["event_seq = "]),
    ("consumers_name", &["name = "]),
    ("sources_pkey", &["id = "]),
];

/// The generic plan of a statement, as PostgreSQL tells it.
async fn plan(connection: &mut PgConnection, sql: &str) -> Value {
    let values = (1..20).take_while(|n| sql.contains(&format!("${n}"))).map(|_| "NULL");
    let values = values.collect::<Vec<_>>().join(", ");
    let prepare = format!("PREPARE hot AS {sql}");
    sqlx::raw_sql(AssertSqlSafe(prepare)).execute(&mut *connection).await.unwrap();
    let values = if values.is_empty() { values } else { format!("({values})") };
    let explain = format!("EXPLAIN (FORMAT JSON) EXECUTE hot{values}");
    let plan = sqlx::raw_sql(AssertSqlSafe(explain)).fetch_one(&mut *connection).await.unwrap();
    sqlx::raw_sql("DEALLOCATE hot").execute(connection).await.unwrap();
    serde_json::from_str(plan.try_get_unchecked::<&str, _>(0).unwrap()).unwrap()
}

/// The steps of a plan that read more the more is finished.
fn grow(plan: &Value, found: &mut Vec<String>) {
    match plan {
        Value::Array(steps) => steps.iter().for_each(|step| grow(step, found)),
        Value::Object(step) => {
            let text = |key: &str| step.get(key).and_then(Value::as_str).unwrap_or_default();
            let kind = text("Node Type");
            let by_index = kind.contains("Index");
            let condition = text("Index Cond");
            let known = WAYS.iter().any(|(index, says)| {
                text("Index Name") == *index && says.iter().all(|said| condition.contains(said))
            });
            let reads = kind.contains("Scan") && step.contains_key("Relation Name");
            let heap = kind == "Bitmap Heap Scan";
            if text("Relation Name") == "sequence" {
                return;
            }
            if (by_index && !known) || (reads && !by_index && !heap) {
                let index = text("Index Name");
                found.push(format!("{kind} {} {index} {condition}", text("Relation Name")));
            }
            step.values().for_each(|inner| grow(inner, found));
        }
        _ => {}
    }
}

async fn session(fixture: &Fixture) -> PgConnection {
    let mut connection = PgConnection::connect(fixture.url()).await.unwrap();
    let settle = statements(SESSION)[0];
    assert!(settle.starts_with("SELECT set_config("), "{settle}");
    sqlx::query(settle).bind(false).execute(&mut connection).await.unwrap();
    let generic = "SET plan_cache_mode = force_generic_plan";
    sqlx::raw_sql(generic).execute(&mut connection).await.unwrap();
    connection
}

async fn check(connection: &mut PgConnection) {
    let statements: HashSet<&str> = HOT.iter().flat_map(|source| statements(source)).collect();
    // Some end with the time, and are of the consumer of a name.
    let whole: Vec<String> = statements
        .into_iter()
        .map(|sql| match sql.ends_with(' ') {
            true => format!("{sql} 0 FROM consumers AS c WHERE c.name = $1"),
            false => sql.to_owned(),
        })
        .collect();
    assert!(whole.len() >= 17, "{whole:#?}");
    let mut faults = Vec::new();
    for sql in whole {
        let (plan, mut found) = (plan(connection, &sql).await, Vec::new());
        grow(&plan, &mut found);
        if !found.is_empty() {
            faults.push(format!("{sql}\n{found:#?}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_workers_call_costs_the_same_however_much_is_finished() {
    let fixture = Fixture::postgres().await;
    let mut connection = session(&fixture).await;
    check(&mut connection).await;
    // Now that the planner knows of many rows, nearly all of them finished.
    let events: Vec<_> = (0..3000)
        .map(|number| {
            let event = sample(fixture.main, &number.to_string());
            if number % 3 == 0 { event } else { event.in_chat(&(number % 50).to_string()) }
        })
        .collect();
    fixture.stored(&events).await;
    let claimed = fixture.claim(2950).await;
    fixture.bury(&claimed[..10]).await;
    fixture.ack(&claimed).await;
    fixture.raw.execute("ANALYZE").await;
    check(&mut connection).await;
    connection.close().await.unwrap();
    fixture.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_reads_all_work_would_be_seen() {
    let fixture = Fixture::postgres().await;
    let mut connection = session(&fixture).await;
    for sql in [
        "SELECT * FROM work WHERE state = $1",
        "SELECT * FROM work WHERE consumer_id = $1 AND receipt = $2",
        "UPDATE lanes SET head = head WHERE lane = $1",
        "DELETE FROM attempts WHERE attempt = $1",
    ] {
        let (plan, mut found) = (plan(&mut connection, sql).await, Vec::new());
        grow(&plan, &mut found);
        assert_eq!(found.len(), 1, "{sql}\n{plan:#}");
    }
    connection.close().await.unwrap();
    fixture.finish().await;
}
