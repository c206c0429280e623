//! A consumer that is removed leaves nothing behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering as Atomic};

use inboxd::consumer::Start;
use inboxd::store::{Batch, Store, StoreError};
use inboxd::work::{Consumer, Ordering};
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use super::fixture::{Fixture, LEASE, consumer, names, receipts, request};
use super::sample::{Vary, sample};

super::conformance!(
    all_that_is_its_own_goes_and_nothing_else,
    a_part_at_a_time_and_no_claims_meanwhile,
    who_is_being_filled_can_go,
    a_receipt_of_one_that_is_gone_names_nobody,
    the_same_name_begins_anew,
    nobody_of_that_name,
    nothing_is_left_behind_while_others_append_and_work,
);

/// Rows that name a consumer of this number.
async fn rows(fixture: &Fixture, id: i64) -> i64 {
    let mut rows = 0;
    for table in ["work", "lanes", "attempts", "effects"] {
        let sql = format!("SELECT count(*) FROM {table} WHERE consumer_id = {id}");
        rows += fixture.raw.number(&sql).await;
    }
    rows
}

async fn id(fixture: &Fixture, name: &str) -> i64 {
    fixture.raw.number(&format!("SELECT id FROM consumers WHERE name = '{name}'")).await
}

async fn remove(store: &dyn Store, name: &str, limit: usize) -> usize {
    let mut parts = 1;
    while !store.remove_consumer(name, limit).await.unwrap() {
        parts += 1;
    }
    parts
}

/// Ten events: some in conversations, of `crm` some done, some failed, some leased, some with an
/// effect.
async fn some_of_everything(fixture: &Fixture) {
    let events: Vec<_> = (0..10)
        .map(|n| {
            let event = sample(fixture.main, &n.to_string());
            if n < 3 { event } else { event.in_chat(&(n % 3).to_string()) }
        })
        .collect();
    fixture.stored(&events).await;
    let first = fixture.store.claim("crm", request(4)).await.unwrap();
    fixture.store.ack("crm", receipts(&first[..2])).await.unwrap();
    fixture.advance(2 * LEASE).await;
    fixture.store.claim("crm", request(3)).await.unwrap();
    let id = id(fixture, "crm").await;
    let literal = if fixture.raw.is_sqlite() { "x'" } else { "'\\x" };
    for (key, event) in [("01", 1), ("02", 9), ("03", 10)] {
        let sql = format!(
            "INSERT INTO effects (consumer_id, key_hash, key, event_seq, receipt, token, state,
                                  begun_at)
             VALUES ({id}, {literal}{key}', '{key}', {event}, {literal}00', {literal}00', 'begun', 1)"
        );
        fixture.raw.execute(&sql).await;
    }
    assert!(rows(fixture, id).await > 15);
}

async fn all_that_is_its_own_goes_and_nothing_else(fixture: &mut Fixture) {
    fixture.store.put_consumers(vec![consumer("crm")]).await.unwrap();
    some_of_everything(fixture).await;
    let (mine, others) = (id(fixture, "crm").await, id(fixture, "default").await);
    let before = rows(fixture, others).await;
    assert_eq!(remove(fixture.store.as_ref(), "crm", 1000).await, 1);
    assert_eq!((rows(fixture, mine).await, rows(fixture, others).await), (0, before));
    assert_eq!(fixture.store.consumers().await.unwrap(), [consumer("default")]);
    assert_eq!(fixture.claim(10).await.len(), 10);
}

async fn a_part_at_a_time_and_no_claims_meanwhile(fixture: &mut Fixture) {
    fixture.store.put_consumers(vec![consumer("crm")]).await.unwrap();
    some_of_everything(fixture).await;
    let mine = id(fixture, "crm").await;
    fixture.advance(2 * LEASE).await;
    let mut left = rows(fixture, mine).await;
    while !fixture.store.remove_consumer("crm", 2).await.unwrap() {
        let now = rows(fixture, mine).await;
        assert!(now < left, "{now} of {left}");
        left = now;
        assert_eq!(fixture.store.audit().await.unwrap(), [""; 0]);
        assert_eq!(names(&fixture.store.claim("crm", request(9)).await.unwrap()), [""; 0]);
        let state = &fixture.store.consumer_states(Some("crm")).await.unwrap()[0];
        assert!(state.paused && state.done >= 0);
    }
    assert_eq!(rows(fixture, mine).await, 0);
}

async fn who_is_being_filled_can_go(fixture: &mut Fixture) {
    fixture.stored(&["a", "b", "c"].map(|name| sample(fixture.main, name).in_chat("1"))).await;
    fixture.store.add_consumer(consumer("crm"), Start::Beginning).await.unwrap();
    fixture.store.fill_consumers(1).await.unwrap();
    let mine = id(fixture, "crm").await;
    assert!(!fixture.store.remove_consumer("crm", 1).await.unwrap());
    assert!(!fixture.store.fill_consumers(1).await.unwrap(), "that is over");
    remove(fixture.store.as_ref(), "crm", 1).await;
    assert_eq!(rows(fixture, mine).await, 0);
}

async fn a_receipt_of_one_that_is_gone_names_nobody(fixture: &mut Fixture) {
    fixture.store.put_consumers(vec![consumer("crm")]).await.unwrap();
    fixture.stored(&[sample(fixture.main, "a").in_chat("1")]).await;
    let held = fixture.store.claim("crm", request(1)).await.unwrap();
    remove(fixture.store.as_ref(), "crm", 10).await;
    let acked = fixture.store.ack("crm", receipts(&held)).await;
    assert!(matches!(acked, Err(StoreError::UnknownConsumer(_))), "{acked:?}");
    assert_eq!(fixture.ack(&held).await, [false]);
}

async fn the_same_name_begins_anew(fixture: &mut Fixture) {
    fixture.store.put_consumers(vec![consumer("crm")]).await.unwrap();
    fixture.stored(&[sample(fixture.main, "a").in_chat("1")]).await;
    let held = fixture.store.claim("crm", request(1)).await.unwrap();
    remove(fixture.store.as_ref(), "crm", 10).await;
    fixture.store.put_consumers(vec![consumer("crm")]).await.unwrap();
    fixture.stored(&[sample(fixture.main, "b").in_chat("1")]).await;
    assert_eq!(fixture.store.ack("crm", receipts(&held)).await.unwrap(), [false]);
    assert_eq!(names(&fixture.store.claim("crm", request(9)).await.unwrap()), ["b"]);
}

async fn nobody_of_that_name(fixture: &mut Fixture) {
    let removed = fixture.store.remove_consumer("nobody", 10).await;
    assert!(matches!(removed, Err(StoreError::UnknownConsumer(_))), "{removed:?}");
}

async fn nothing_is_left_behind_while_others_append_and_work(fixture: &mut Fixture) {
    let loose = Consumer { ordering: Ordering::None, ..consumer("loose") };
    fixture.store.put_consumers(vec![consumer("crm"), loose]).await.unwrap();
    let other = fixture.open_again(false).await.unwrap();
    let before: Vec<_> = (0..300)
        .map(|n| sample(fixture.main, &format!("before-{n}")).in_chat(&(n % 7).to_string()))
        .collect();
    fixture.stored(&before).await;
    let ids = [id(fixture, "crm").await, id(fixture, "loose").await];
    let stop = AtomicBool::new(false);
    let append = async {
        let mut batches = 0;
        while !stop.load(Atomic::SeqCst) {
            let event = |n: usize| {
                let event = sample(fixture.main, &format!("{batches}-{n}"));
                event.in_chat(&(n % 5).to_string())
            };
            let batch = Batch { events: (0..10).map(event).collect(), checkpoint: None };
            other.append(Arc::new(batch)).await.unwrap();
            batches += 1;
        }
    };
    let work = async |name: &str| {
        while let Ok(claimed) = other.claim(name, request(10)).await {
            let _ = other.ack(name, receipts(&claimed)).await;
        }
    };
    let removed = async {
        let store = fixture.store.as_ref();
        tokio::join!(remove(store, "crm", 20), remove(store, "loose", 30));
        stop.store(true, Atomic::SeqCst);
    };
    tokio::join!(append, work("crm"), work("loose"), removed);
    other.close().await;
    for id in ids {
        assert_eq!(rows(fixture, id).await, 0);
    }
    let states = fixture.store.consumer_states(None).await.unwrap();
    assert_eq!(states.len(), 1);
}

/// On PostgreSQL, where a worker's call may be under way while its work is removed.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_worker_writes_meanwhile_goes_too() {
    let fixture = Fixture::postgres().await;
    fixture.store.put_consumers(vec![consumer("crm")]).await.unwrap();
    fixture.stored(&[sample(fixture.main, "a"), sample(fixture.main, "b")]).await;
    let mine = id(&fixture, "crm").await;
    for limit in [1, 10] {
        // What begin_effect and nack do: they hold the work, then write beside it.
        let mut worker = PgConnection::connect(fixture.url()).await.unwrap();
        let sql = format!(
            "BEGIN; SELECT 1 FROM work WHERE consumer_id = {mine} AND event_seq = (
                        SELECT min(event_seq) FROM work WHERE consumer_id = {mine}) FOR SHARE"
        );
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut worker).await.unwrap();
        let store = fixture.store.clone();
        let removal = tokio::spawn(async move { store.remove_consumer("crm", limit).await });
        let waits = "SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock'";
        while fixture.raw.number(waits).await == 0 {
            tokio::task::yield_now().await;
        }
        let sql = format!(
            "INSERT INTO effects (consumer_id, key_hash, key, event_seq, receipt, token, state,
                                  begun_at)
             SELECT {mine}, '\\x01', 'k', min(event_seq), '\\x00', '\\x00', 'begun', 1
             FROM work WHERE consumer_id = {mine};
             INSERT INTO attempts (consumer_id, event_seq, attempt, at, error)
             SELECT {mine}, min(event_seq), 1, 1, 'late' FROM work WHERE consumer_id = {mine};
             COMMIT"
        );
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut worker).await.unwrap();
        let is_gone = removal.await.unwrap().unwrap();
        assert_eq!(is_gone, limit == 10);
        worker.close().await.unwrap();
        let left = if is_gone { 0 } else { 1 };
        assert_eq!(rows(&fixture, mine).await, left, "with {limit} at a time");
    }
    fixture.finish().await;
}
