//! Finishing work: only by whoever holds it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use inboxd::event::Sequence;
use inboxd::store::Store;
use inboxd::work::Receipt;

use super::fixture::{Fixture, LEASE, consumer, names, receipts, request};
use super::sample::{Vary, sample};

super::conformance!(
    what_is_acked_is_done,
    acking_again_is_done_again,
    a_receipt_that_was_never_given_is_stale,
    a_receipt_is_of_one_consumer,
    a_late_ack_counts_while_nobody_else_has_the_work,
    a_late_ack_counts_though_a_claim_passed_the_work_over,
    after_another_claim_the_older_receipt_is_stale,
    the_later_of_a_claim_may_be_acked_first,
    many_receipts_at_once,
    workers_at_the_same_time_do_all_work_once_and_in_order,
);

async fn what_is_acked_is_done(fixture: &mut Fixture) {
    let events = ["a", "b"].map(|name| sample(fixture.main, name));
    fixture.stored(&events).await;
    let claimed = fixture.claim(10).await;
    assert_eq!(fixture.work(&events[0]).await, ("leased", 1));
    assert_eq!(fixture.ack(&claimed).await, [true, true]);
    let detail = fixture.detail(&events[0]).await;
    assert_eq!((detail.work[0].state, detail.work[0].due_at), ("done", None));
    fixture.advance(10 * LEASE).await;
    assert_eq!(names(&fixture.claim(10).await), [""; 0]);
}

async fn acking_again_is_done_again(fixture: &mut Fixture) {
    fixture.stored(&["a", "b"].map(|name| sample(fixture.main, name).in_chat("1"))).await;
    let claimed = fixture.claim(10).await;
    let twice = [&claimed[..1], &claimed[..1]].concat();
    assert_eq!(fixture.ack(&twice).await, [true, true]);
    assert_eq!(fixture.ack(&claimed).await, [true, true]);
    assert_eq!(fixture.ack(&claimed).await, [true, true]);
    fixture.advance(10 * LEASE).await;
    assert_eq!(fixture.ack(&claimed).await, [true, true]);
}

async fn a_receipt_that_was_never_given_is_stale(fixture: &mut Fixture) {
    fixture.stored(&["a", "b"].map(|name| sample(fixture.main, name))).await;
    let claimed = fixture.claim(1).await;
    let sequence = claimed[0].receipt.sequence;
    let token = claimed[0].receipt.token;
    let made_up = vec![
        Receipt { sequence, token: [0; 16] },
        Receipt { sequence: sequence + 1, token },
        Receipt { sequence: i64::MAX, token },
        claimed[0].receipt,
        Receipt { sequence: -1, token },
    ];
    let done = fixture.store.ack("default", made_up).await.unwrap();
    assert_eq!(done, [false, false, false, true, false]);
    assert_eq!(fixture.ack(&[]).await, [true; 0]);
    assert_eq!(names(&fixture.claim(10).await), ["b"]);
}

async fn a_receipt_is_of_one_consumer(fixture: &mut Fixture) {
    fixture.store.put_consumers(vec![consumer("second")]).await.unwrap();
    fixture.stored(&[sample(fixture.main, "a")]).await;
    let claimed = fixture.claim(1).await;
    let other = fixture.store.claim("second", request(1)).await.unwrap();
    assert_eq!(fixture.store.ack("second", receipts(&claimed)).await.unwrap(), [false]);
    assert_eq!(fixture.ack(&other).await, [false]);
    assert_eq!(fixture.ack(&claimed).await, [true]);
    assert_eq!(fixture.store.ack("second", receipts(&other)).await.unwrap(), [true]);
}

async fn a_late_ack_counts_while_nobody_else_has_the_work(fixture: &mut Fixture) {
    let events = ["a", "b"].map(|name| sample(fixture.main, name).in_chat("1"));
    fixture.stored(&events).await;
    let claimed = fixture.claim(10).await;
    fixture.advance(2 * LEASE).await;
    assert_eq!(fixture.ack(&claimed[..1]).await, [true]);
    assert_eq!(fixture.work(&events[0]).await, ("done", 1));
    assert_eq!(names(&fixture.claim(10).await), ["b"]);
}

async fn a_late_ack_counts_though_a_claim_passed_the_work_over(fixture: &mut Fixture) {
    let batch = ["a1", "a2", "b1"].map(|name| sample(fixture.main, name).in_chat(&name[..1]));
    fixture.stored(&batch).await;
    let late = fixture.claim(10).await;
    fixture.advance(2 * LEASE).await;
    assert_eq!(names(&fixture.claim(2).await), ["a1", "a2"]);
    assert_eq!(fixture.ack(&late).await, [false, false, true]);
}

async fn after_another_claim_the_older_receipt_is_stale(fixture: &mut Fixture) {
    let event = sample(fixture.main, "a").in_chat("1");
    fixture.stored(std::slice::from_ref(&event)).await;
    let old = fixture.claim(1).await;
    fixture.advance(2 * LEASE).await;
    let new = fixture.claim(1).await;
    assert_eq!(fixture.ack(&old).await, [false]);
    assert_eq!(fixture.work(&event).await, ("leased", 2));
    assert_eq!(fixture.ack(&new).await, [true]);
    assert_eq!(fixture.ack(&old).await, [false]);
    assert_eq!(fixture.ack(&new).await, [true]);
}

async fn the_later_of_a_claim_may_be_acked_first(fixture: &mut Fixture) {
    let events = ["1", "2", "3"].map(|name| sample(fixture.main, name).in_chat("a"));
    fixture.stored(&events).await;
    let claimed = fixture.claim(3).await;
    assert_eq!(fixture.ack(&claimed[1..2]).await, [true]);
    assert_eq!(names(&fixture.claim(3).await), [""; 0]);
    fixture.advance(2 * LEASE).await;
    let again = fixture.claim(3).await;
    assert_eq!(names(&again), ["1", "3"]);
    assert_eq!(fixture.ack(&again).await, [true, true]);
}

async fn many_receipts_at_once(fixture: &mut Fixture) {
    let events: Vec<_> = (0..1000)
        .map(|number| {
            let event = sample(fixture.main, &number.to_string());
            if number % 3 == 0 { event } else { event.in_chat(&(number % 50).to_string()) }
        })
        .collect();
    fixture.stored(&events).await;
    let claimed = fixture.claim(1000).await;
    assert_eq!(claimed.len(), 1000);
    let order: Vec<_> = claimed.iter().map(|delivery| delivery.event.sequence).collect();
    assert!(order.is_sorted());
    assert_eq!(fixture.ack(&claimed).await, [true; 1000]);
    assert_eq!(fixture.store.next_due("default").await.unwrap(), None);
}

async fn workers_at_the_same_time_do_all_work_once_and_in_order(fixture: &mut Fixture) {
    const EVENTS: usize = 300;
    let seen: Arc<Mutex<Vec<(String, Sequence)>>> = Arc::default();
    let workers: Vec<_> = (1..=6)
        .map(|max| tokio::spawn(work(fixture.store.clone(), max, seen.clone(), EVENTS)))
        .collect();
    for number in 0..EVENTS / 10 {
        let event = |place: usize| {
            let event = sample(fixture.main, &format!("{number} {place}"));
            if place == 9 { event } else { event.in_chat(&(place % 4).to_string()) }
        };
        fixture.stored(&(0..10).map(event).collect::<Vec<_>>()).await;
    }
    for worker in workers {
        let ended = tokio::time::timeout(Duration::from_secs(120), worker).await;
        ended.expect("all events are claimed").unwrap();
    }
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    for chat in ["/0", "/1", "/2", "/3"] {
        let of_chat = seen.iter().filter(|(subject, _)| subject.ends_with(chat));
        assert!(of_chat.map(|(_, sequence)| sequence).is_sorted(), "{chat} is out of order");
    }
    let once: HashSet<_> = seen.iter().map(|(_, sequence)| sequence).collect();
    assert_eq!((seen.len(), once.len()), (EVENTS, EVENTS));
    assert_eq!(fixture.store.next_due("default").await.unwrap(), None);
}

/// Claims and acks until this many events have been seen by all workers together.
async fn work(
    store: Arc<dyn Store>,
    max: usize,
    seen: Arc<Mutex<Vec<(String, Sequence)>>>,
    events: usize,
) {
    while seen.lock().unwrap().len() < events {
        let claimed = store.claim("default", request(max)).await.unwrap();
        for one in &claimed {
            assert_eq!(one.attempt, 1);
            let subject = one.event.attributes.subject.clone().unwrap_or_default();
            seen.lock().unwrap().push((subject, one.event.sequence));
        }
        let done = store.ack("default", receipts(&claimed)).await.unwrap();
        assert!(done.into_iter().all(|done| done));
    }
}
