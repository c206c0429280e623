//! Clients hang up: whoever waits for an operation may go away at any moment.

use std::collections::HashSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use inboxd::event::EventQuery;
use inboxd::source::{Leased, QuarantineLimits, SourceKind, SourceState};
use inboxd::store::Batch;

use super::fixture::{Fixture, LEASE, consumer, receipts, request};
use super::sample::{Vary, all, sample};

super::conformance!(
    operations_that_nobody_waits_for_do_no_harm,
    a_lease_that_nobody_waited_for_is_free_again,
);

/// On PostgreSQL an operation that nobody waits for may be committed after the time that a test lets
/// pass: then what it took runs out the next time.
const PATIENCE: usize = 20;

/// Drops `operation` once it has waited so many times, or soon after it began.
async fn hang_up<T>(operation: impl Future<Output = T>, waits: u64) -> Option<T> {
    let mut left = waits;
    let mut operation = std::pin::pin!(operation);
    let interrupted = std::future::poll_fn(|context| match operation.as_mut().poll(context) {
        std::task::Poll::Ready(value) => std::task::Poll::Ready(Some(value)),
        std::task::Poll::Pending if left == 0 => std::task::Poll::Ready(None),
        std::task::Poll::Pending => {
            left -= 1;
            std::task::Poll::Pending
        }
    });
    let soon = Duration::from_micros(waits * 300);
    tokio::time::timeout(soon, interrupted).await.unwrap_or_default()
}

async fn operations_that_nobody_waits_for_do_no_harm(fixture: &mut Fixture) {
    const ROUNDS: u64 = 200;
    let event = |number: u64| {
        let event = sample(fixture.main, &number.to_string());
        event.in_chat(&(number % 7).to_string())
    };
    let store = fixture.store.clone();
    for round in 0..ROUNDS {
        let waits = round % 6;
        let batch = Batch { events: vec![event(round)], checkpoint: None };
        hang_up(store.append(Arc::new(batch)), waits).await;
        let claimed = hang_up(store.claim("default", request(3)), waits).await;
        if let Some(claimed) = claimed {
            hang_up(store.ack("default", receipts(&claimed.unwrap())), waits).await;
        }
        hang_up(store.next_due("default"), waits).await;
        let query = EventQuery { limit: 50, ..all() };
        hang_up(store.events(query), waits).await;
        hang_up(store.event(uuid::Uuid::nil()), waits).await;
        hang_up(store.put_consumers(vec![consumer("default")]), waits).await;
        hang_up(store.register_source(SourceKind::UnifyPort, "main"), waits).await;
        hang_up(store.tell_source(fixture.main, SourceState::default()), waits).await;
        let limits = QuarantineLimits { rows: 1, bytes: 1 };
        hang_up(store.quarantine(Vec::new(), limits), waits).await;
        hang_up(store.quarantined(fixture.main), waits).await;
        hang_up(store.sources(), waits).await;
        hang_up(store.consumers(), waits).await;
        hang_up(store.ready(), waits).await;
    }
    assert_eq!(store.audit().await.unwrap(), Vec::<String>::new());
    // Whoever hung up asks again, and everything is there once.
    let again: Vec<_> = (0..ROUNDS).map(event).collect();
    let appended = fixture.append(&again).await;
    let distinct: HashSet<_> = appended.iter().map(|one| one.sequence()).collect();
    assert_eq!(distinct.len(), again.len());
    let done = "SELECT count(*) FROM work WHERE state = 2";
    for _ in 0..PATIENCE {
        fixture.advance(LEASE).await;
        loop {
            let claimed = fixture.claim(1000).await;
            if claimed.is_empty() {
                break;
            }
            assert!(fixture.ack(&claimed).await.into_iter().all(|done| done));
        }
        if fixture.raw.number(done).await == again.len() as i64 {
            return;
        }
    }
    panic!("work that nobody has is never found");
}

async fn a_lease_that_nobody_waited_for_is_free_again(fixture: &mut Fixture) {
    let bot = fixture.store.register_source(SourceKind::Telegram, "bot").await.unwrap();
    let lease = async || fixture.store.lease_poller(bot, "a test", LEASE).await.unwrap();
    for round in 0..60 {
        if let Some(Leased::Mine(taken)) = hang_up(lease(), round % 4).await {
            hang_up(fixture.store.release_poller(bot, taken.token), round % 3).await;
        }
        // What was begun is done before this, on SQLite, or runs out.
        fixture.store.ready().await.unwrap();
        fixture.advance(LEASE).await;
    }
    for _ in 0..PATIENCE {
        if matches!(lease().await, Leased::Mine(_)) {
            return;
        }
        fixture.advance(LEASE).await;
    }
    panic!("a lease that nobody has is never free");
}
