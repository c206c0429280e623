//! Calls at the same time: whoever is told that it holds the work does.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use inboxd::event::Sequence;
use inboxd::store::Store;
use inboxd::work::{Consumer, Nack, Nacked};

use super::fixture::{Fixture, LEASE, consumer, receipts, request};
use super::sample::{Vary, sample};

super::conformance!(
    late_calls_and_a_claim_never_both_have_the_work,
    workers_that_fail_at_times_finish_all_work_once_and_in_order,
);

/// Attempts without end.
fn patient() -> Consumer {
    Consumer { max_attempts: 1_000_000, ..consumer("default") }
}

/// What is nacked here is due again at once.
fn at_once() -> Nack {
    Nack { delay: Some(Duration::ZERO), ..Nack::default() }
}

async fn late_calls_and_a_claim_never_both_have_the_work(fixture: &mut Fixture) {
    fixture.store.put_consumers(vec![patient()]).await.unwrap();
    let events: Vec<_> = (0..24)
        .map(|number| {
            let event = sample(fixture.main, &number.to_string());
            if number % 2 == 0 { event } else { event.in_chat(&(number % 8).to_string()) }
        })
        .collect();
    fixture.stored(&events).await;
    for round in 0..25 {
        let old = fixture.claim(100).await;
        assert_eq!(old.len(), events.len(), "round {round}");
        fixture.advance(2 * LEASE).await;
        let late = receipts(&old);
        let spawn = |what: &'static str| {
            let (store, late) = (fixture.store.clone(), late.clone());
            tokio::spawn(async move {
                match what {
                    "nack" => {
                        let nacked = store.nack("default", late, at_once()).await.unwrap();
                        nacked.into_iter().map(|one| one != Nacked::Stale).collect()
                    }
                    _ => store.extend("default", late, None).await.unwrap(),
                }
            })
        };
        let store = fixture.store.clone();
        let claim = tokio::spawn(async move { store.claim("default", request(100)).await });
        let (nack, extend) = (spawn("nack"), spawn("extend"));
        let claimed = claim.await.unwrap().unwrap();
        let (nacked, extended): (Vec<bool>, Vec<bool>) =
            (nack.await.unwrap(), extend.await.unwrap());
        assert!(fixture.ack(&claimed).await.into_iter().all(|done| done), "round {round}");
        for ((receipt, nacked), extended) in late.iter().zip(nacked).zip(extended) {
            let claimed = claimed.iter().any(|one| one.receipt.sequence == receipt.sequence);
            assert!(nacked || claimed || extended, "round {round}: nobody has it");
        }
        assert_eq!(fixture.store.audit().await.unwrap(), Vec::<String>::new());
        let again = "UPDATE work SET state = 0, attempt = 0, receipt = NULL, since = 0,
                            due_at = 0, finished_at = NULL;
                     UPDATE lanes SET due_at = 0, since = 0, head = (
                         SELECT min(pos) FROM work WHERE work.consumer_id = lanes.consumer_id
                                                     AND work.lane = lanes.lane)";
        fixture.raw.execute(again).await;
    }
}

async fn workers_that_fail_at_times_finish_all_work_once_and_in_order(fixture: &mut Fixture) {
    const EVENTS: usize = 200;
    fixture.store.put_consumers(vec![patient()]).await.unwrap();
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
        ended.expect("all events are finished").unwrap();
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

/// Claims, and acks, extends or nacks by chance, until all workers together have acked this many.
async fn work(
    store: Arc<dyn Store>,
    max: usize,
    seen: Arc<Mutex<Vec<(String, Sequence)>>>,
    events: usize,
) {
    while seen.lock().unwrap().len() < events {
        let mut given_back = HashSet::new();
        for delivery in store.claim("default", request(max)).await.unwrap() {
            let subject = delivery.event.attributes.subject.clone().unwrap_or_default();
            if given_back.contains(&subject) {
                continue;
            }
            let receipt = vec![delivery.receipt];
            let chance: u8 = rand::random_range(0..10);
            if chance < 3 {
                let nacked = store.nack("default", receipt, at_once()).await.unwrap();
                assert_eq!(nacked, [Nacked::Requeued]);
                if !subject.is_empty() {
                    given_back.insert(subject);
                }
                continue;
            }
            if chance < 6 {
                let held = store.extend("default", receipt.clone(), None).await.unwrap();
                assert_eq!(held, [true]);
            }
            // Before the ack, after which the next of the conversation may overtake this line.
            seen.lock().unwrap().push((subject, delivery.event.sequence));
            assert_eq!(store.ack("default", receipt).await.unwrap(), [true]);
        }
    }
}
