//! How consumers stand: what waits, what is done, who rests, and whom nobody claims from.

use std::time::Duration;

use inboxd::consumer::{ConsumerState, UNCLAIMED};
use inboxd::store::StoreError;
use inboxd::work::{Consumer, Ordering};

use super::fixture::{Fixture, LEASE, consumer, names, receipts, request};
use super::sample::{Vary, sample};

super::conformance!(
    a_new_consumer_has_nothing,
    each_piece_of_work_is_counted_once,
    work_without_order_is_counted_alike,
    a_consumer_is_read_by_name,
    who_rests_gets_work_but_no_claims,
    a_claim_is_noted,
    who_is_not_claimed_from_is_found,
);

async fn state(fixture: &Fixture, name: &str) -> ConsumerState {
    let states = fixture.store.consumer_states(Some(name)).await.unwrap();
    assert_eq!(states.len(), 1);
    states.into_iter().next().unwrap()
}

/// Ready, delayed, leased, done, dead.
async fn counts(fixture: &Fixture, name: &str) -> [i64; 5] {
    let state = state(fixture, name).await;
    [state.ready, state.delayed, state.leased, state.done, state.dead]
}

async fn a_new_consumer_has_nothing(fixture: &mut Fixture) {
    let state = state(fixture, "default").await;
    assert_eq!(state.consumer, consumer("default"));
    assert_eq!(counts(fixture, "default").await, [0; 5]);
    assert_eq!((state.paused, state.filling, state.oldest_ready), (false, false, None));
    assert_eq!((state.last_claim_at, state.warning()), (None, None));
    assert!(state.at.since(state.created_at) < Duration::from_secs(60));
}

async fn each_piece_of_work_is_counted_once(fixture: &mut Fixture) {
    let events: Vec<_> = (0..9)
        .map(|n| sample(fixture.main, &n.to_string()).in_chat(&(n % 3).to_string()))
        .collect();
    fixture.stored(&events).await;
    assert_eq!(counts(fixture, "default").await, [9, 0, 0, 0, 0]);
    let claimed = fixture.claim(5).await;
    assert_eq!(counts(fixture, "default").await, [4, 0, 5, 0, 0]);
    fixture.ack(&claimed[1..]).await;
    assert_eq!(counts(fixture, "default").await, [4, 0, 1, 4, 0]);
    fixture.advance(2 * LEASE).await;
    assert_eq!(counts(fixture, "default").await, [5, 0, 0, 4, 0], "its lease ran out");
    let oldest = state(fixture, "default").await.oldest_ready.unwrap();
    assert!(oldest >= 2 * LEASE && oldest < 3 * LEASE, "{oldest:?}");
    for _ in 0..2 {
        fixture.claim(9).await;
        fixture.advance(2 * LEASE).await;
    }
    fixture.claim(9).await;
    assert_eq!(counts(fixture, "default").await, [0, 0, 4, 4, 1], "three attempts were its last");
    // What is put off, by whatever means.
    let event = sample(fixture.main, "late").in_chat("late");
    let sequence = fixture.stored(&[event]).await[0];
    let later = 9_000_000_000_000_000_i64;
    fixture
        .raw
        .execute(&format!(
            "UPDATE work SET due_at = {later} WHERE event_seq = {sequence};
             UPDATE lanes SET due_at = {later} WHERE head = {sequence}"
        ))
        .await;
    assert_eq!(counts(fixture, "default").await, [0, 1, 4, 4, 1]);
    assert_eq!(state(fixture, "default").await.oldest_ready, None);
}

async fn work_without_order_is_counted_alike(fixture: &mut Fixture) {
    let loose = Consumer { ordering: Ordering::None, ..consumer("loose") };
    fixture.store.put_consumers(vec![loose]).await.unwrap();
    fixture.stored(&["a", "b", "c"].map(|name| sample(fixture.main, name).in_chat("1"))).await;
    fixture.stored(&[sample(fixture.main, "d")]).await;
    let claimed = fixture.store.claim("loose", request(3)).await.unwrap();
    fixture.store.ack("loose", receipts(&claimed[..1])).await.unwrap();
    assert_eq!(counts(fixture, "loose").await, [1, 0, 2, 1, 0]);
    assert_eq!(counts(fixture, "default").await, [4, 0, 0, 0, 0]);
    fixture.append(&[sample(fixture.main, "a")]).await;
    assert_eq!(counts(fixture, "default").await, [4, 0, 0, 0, 0], "a duplicate");
}

async fn a_consumer_is_read_by_name(fixture: &mut Fixture) {
    fixture.store.put_consumers(vec![consumer("b"), consumer("a")]).await.unwrap();
    let all = fixture.store.consumer_states(None).await.unwrap();
    let names: Vec<_> = all.iter().map(|state| &*state.consumer.name).collect();
    assert_eq!(names, ["a", "b", "default"]);
    assert_eq!(state(fixture, "b").await.consumer, consumer("b"));
    for unknown in ["", "c", "a%"] {
        assert_eq!(fixture.store.consumer_states(Some(unknown)).await.unwrap(), []);
    }
}

async fn who_rests_gets_work_but_no_claims(fixture: &mut Fixture) {
    fixture.stored(&[sample(fixture.main, "a")]).await;
    let held = fixture.claim(1).await;
    // Another process sees it at once.
    let other = fixture.open_again(false).await.unwrap();
    other.pause_consumer("default", true).await.unwrap();
    other.pause_consumer("default", true).await.unwrap();
    fixture.stored(&[sample(fixture.main, "b")]).await;
    assert_eq!(names(&fixture.claim(9).await), [""; 0]);
    assert_eq!(fixture.store.next_due("default").await.unwrap(), None);
    assert!(state(fixture, "default").await.paused);
    assert_eq!(fixture.ack(&held).await, [true]);
    fixture.store.put_consumers(vec![consumer("default")]).await.unwrap();
    assert_eq!(names(&fixture.claim(9).await), [""; 0], "new settings do not end it");
    other.pause_consumer("default", false).await.unwrap();
    assert_eq!(names(&fixture.claim(9).await), ["b"]);
    let unknown = other.pause_consumer("nobody", true).await;
    assert!(matches!(unknown, Err(StoreError::UnknownConsumer(_))), "{unknown:?}");
    other.close().await;
}

async fn a_claim_is_noted(fixture: &mut Fixture) {
    fixture.store.note_claim("default").await.unwrap();
    fixture.store.note_claim("nobody").await.unwrap();
    let noted = state(fixture, "default").await;
    assert!(noted.at.since(noted.last_claim_at.unwrap()) < Duration::from_secs(60));
    fixture.advance(2 * UNCLAIMED).await;
    let later = state(fixture, "default").await;
    assert!(later.at.since(later.last_claim_at.unwrap()) >= 2 * UNCLAIMED);
}

async fn who_is_not_claimed_from_is_found(fixture: &mut Fixture) {
    let loose = Consumer { ordering: Ordering::None, ..consumer("loose") };
    fixture.store.put_consumers(vec![loose, consumer("rests"), consumer("works")]).await.unwrap();
    fixture.pause("rests", true).await;
    let found = async || fixture.store.unclaimed(UNCLAIMED).await.unwrap();
    fixture.advance(2 * UNCLAIMED).await;
    assert_eq!(found().await, [""; 0], "nothing waits");
    fixture.stored(&["a", "b"].map(|name| sample(fixture.main, name).in_chat("1"))).await;
    fixture.store.note_claim("works").await.unwrap();
    assert_eq!(found().await, ["default", "loose"]);
    let warning = state(fixture, "loose").await.warning().unwrap();
    assert!(warning.starts_with("2 events wait for the consumer loose and nobody has ever"));
    assert_eq!(state(fixture, "works").await.warning(), None);
    for name in ["default", "loose"] {
        let claimed = fixture.store.claim(name, request(9)).await.unwrap();
        fixture.store.ack(name, receipts(&claimed)).await.unwrap();
    }
    assert_eq!(found().await, [""; 0], "all is done");
    fixture.advance(UNCLAIMED).await;
    assert_eq!(found().await, ["works"]);
}
