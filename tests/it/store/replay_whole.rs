//! Replays of more than one transaction, as the inbox runs them.

use std::sync::Arc;
use std::time::Duration;

use inboxd::inbox::{Bounds, Inbox, StoreError};
use inboxd::replay::Selection;
use inboxd::shutdown::Shutdown;
use inboxd::source::QuarantineLimits;

use super::fixture::Fixture;
use super::replay::finished;
use super::sample::{Vary, sample};
use crate::support::condition::until;

super::conformance!(nobody_needs_to_wait_for_it, a_drain_ends_it_between_two_transactions);

const EVENTS: usize = 1200;
const READY: &str = "SELECT count(*) FROM work WHERE state = 0";

async fn inbox(fixture: &Fixture, shutdown: &Shutdown) -> Arc<Inbox> {
    for batch in 0..EVENTS / 300 {
        let event = |number: usize| {
            let event = sample(fixture.main, &format!("{batch} {number}"));
            event.in_chat(&(number % 50).to_string())
        };
        finished(fixture, &(0..300).map(event).collect::<Vec<_>>()).await;
    }
    let quarantine = QuarantineLimits { rows: 1, bytes: 1 };
    Inbox::start(fixture.store.clone(), Bounds { queue_bytes: 1 << 20, quarantine }, shutdown)
}

async fn nobody_needs_to_wait_for_it(fixture: &mut Fixture) {
    let shutdown = Shutdown::new();
    let inbox = inbox(fixture, &shutdown).await;
    let replay = inbox.replay("default", Selection::default());
    assert!(tokio::time::timeout(Duration::ZERO, replay).await.is_err());
    until("all of it is due", async || {
        (fixture.raw.number(READY).await == EVENTS as i64).then_some(())
    })
    .await;
    assert_eq!(inbox.replay("default", Selection::default()).await.unwrap(), 0);
    shutdown.trigger_soft();
    drop(inbox);
    shutdown.finished(Duration::from_secs(60)).await.unwrap();
}

async fn a_drain_ends_it_between_two_transactions(fixture: &mut Fixture) {
    let shutdown = Shutdown::new();
    let inbox = inbox(fixture, &shutdown).await;
    shutdown.trigger_soft();
    let cut = inbox.replay("default", Selection::default()).await;
    assert!(matches!(cut, Err(StoreError::Unavailable(_))), "{cut:?}");
    let ready = fixture.raw.number(READY).await;
    assert!(ready > 0 && ready < EVENTS as i64, "{ready}");
    let rest = inboxd::inbox::replay(&*fixture.store, "default", Selection::default(), |_| Ok(()));
    assert_eq!(rest.await.unwrap() as i64 + ready, EVENTS as i64);
    drop(inbox);
    shutdown.finished(Duration::from_secs(60)).await.unwrap();
}
