//! A crowd of workers on two gateways of one PostgreSQL: whatever they do at once, nobody is given
//! what another holds, no conversation is finished out of order, and nothing is lost.

mod ledger;
mod worker;

use std::sync::Arc;
use std::time::{Duration, Instant};

use inboxd::work::{Consumer, Ordering};

use super::fixture::{Fixture, consumer, receipts, request};
use ledger::Ledger;
use worker::Worker;

const WORKERS: u64 = 8;
const CONVERSATIONS: u64 = 30;
const CONSUMERS: [&str; 2] = ["default", "loose"];

/// `INBOXD_CROWD_SECONDS` says how long it goes on.
fn how_long() -> Duration {
    let seconds = std::env::var("INBOXD_CROWD_SECONDS").map(|value| value.parse().unwrap());
    Duration::from_secs(seconds.unwrap_or(2))
}

/// Attempts without end, one with an order and one without.
fn consumers() -> Vec<Consumer> {
    let patient = |name: &str, ordering| Consumer {
        ordering,
        max_attempts: 1_000_000,
        backoff_first: Duration::from_millis(1),
        backoff_max: Duration::from_millis(5),
        ..consumer(name)
    };
    vec![patient(CONSUMERS[0], Ordering::Conversation), patient(CONSUMERS[1], Ordering::None)]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_on_two_gateways_keeps_the_contract() {
    let mut fixture = Fixture::postgres().await;
    fixture.store.put_consumers(consumers()).await.unwrap();
    let second = fixture.open_again(false).await.unwrap();
    let ledger: Arc<Ledger> = Arc::default();
    let until = Instant::now() + how_long();
    let workers: Vec<_> = (0..WORKERS)
        .map(|number| {
            let store = if number % 2 == 0 { fixture.store.clone() } else { second.clone() };
            let worker = Worker::new(number, store, fixture.main, ledger.clone());
            tokio::spawn(worker.work(until))
        })
        .collect();
    for worker in workers {
        worker.await.unwrap();
    }
    second.close().await;
    fixture.reopen().await;
    println!("{}", ledger.figures());
    ledger.check();
    assert_eq!(deadlocks(&fixture).await, 0, "all take their locks in one order");
    assert_eq!(fixture.store.audit().await.unwrap(), Vec::<String>::new());
    work_off(&fixture).await;
    // What stands before in a conversation was finished before, however often it was replayed.
    let late = "SELECT count(*) FROM (
            SELECT finished_at, lag(finished_at) OVER (PARTITION BY lane ORDER BY pos) AS before
            FROM work WHERE lane IS NOT NULL) AS w
        WHERE finished_at < before";
    assert_eq!(fixture.raw.number(late).await, 0, "finished out of order");
    fixture.finish().await;
}

/// How often the database had to end one of two that waited for each other. What a session counted
/// is there once it has ended.
async fn deadlocks(fixture: &Fixture) -> i64 {
    let sessions = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'inboxd'";
    let ended = async {
        while fixture.raw.number(sessions).await > 1 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), ended).await.expect("the sessions end");
    let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    fixture.raw.number(deadlocks).await
}

/// All that is unfinished is found and finished.
async fn work_off(fixture: &Fixture) {
    for name in CONSUMERS {
        while let Some(wait) = fixture.store.next_due(name).await.unwrap() {
            fixture.advance(wait).await;
            let claimed = fixture.store.claim(name, request(100)).await.unwrap();
            let done = fixture.store.ack(name, receipts(&claimed)).await.unwrap();
            assert!(!done.is_empty() && done.into_iter().all(|done| done));
        }
    }
    assert_eq!(fixture.raw.number("SELECT count(*) FROM work WHERE state < 2").await, 0);
}
