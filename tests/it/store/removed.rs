//! Events that were removed: still known as long as it was promised, and out of nobody's way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use inboxd::event::Appended;
use inboxd::store::{Batch, Removal, Store};

use super::fixture::{Fixture, names, receipts, request};
use super::retention::{DAY, OLD, aged, finish_all};
use super::sample::{Vary, sample};

super::conformance!(
    a_duplicate_of_what_was_removed_is_one,
    other_bytes_under_the_identity_of_what_was_removed_are_a_conflict,
    a_key_that_was_gained_after_the_removal_is_forgotten_with_the_others,
    identities_are_forgotten_a_few_at_a_time,
    removals_are_in_nobodys_way,
);

const WEEK: Duration = Duration::from_secs(7 * 86_400);

async fn forget(fixture: &Fixture) -> u64 {
    fixture.store.forget_identities(100).await.unwrap()
}

async fn a_duplicate_of_what_was_removed_is_one(fixture: &mut Fixture) {
    let event = aged(fixture, "a", 31).in_chat("1");
    let sequence = fixture.stored(std::slice::from_ref(&event)).await[0];
    finish_all(fixture).await;
    assert_eq!(fixture.store.remove_finished(OLD).await.unwrap().events, 1);
    fixture.reopen().await;

    fixture.advance(WEEK - DAY).await;
    assert_eq!(forget(fixture).await, 0);
    let twice = [event.again(), event.again()];
    assert_eq!(fixture.append(&twice).await, [Appended::Duplicate(sequence); 2]);
    assert_eq!(names(&fixture.claim(10).await), [""; 0], "no new work");
    let known = fixture.store.known(fixture.main, vec![event.identity.key.clone()]).await;
    assert_eq!(known.unwrap(), [true]);
    assert_eq!(fixture.store.audit().await.unwrap(), [""; 0]);

    fixture.advance(2 * DAY).await;
    assert_eq!(forget(fixture).await, 1);
    let again = event.again();
    let new = fixture.append(std::slice::from_ref(&again)).await;
    assert!(matches!(new[..], [Appended::Stored(new)] if new > sequence), "{new:?}");
    assert_eq!(fixture.detail(&again).await.receipts, 1);
    let sources = fixture.store.sources().await.unwrap();
    assert_eq!((sources[0].stored, sources[0].duplicates), (2, 2));
}

async fn other_bytes_under_the_identity_of_what_was_removed_are_a_conflict(fixture: &mut Fixture) {
    let event = aged(fixture, "a", 31);
    let sequence = fixture.stored(std::slice::from_ref(&event)).await[0];
    finish_all(fixture).await;
    fixture.store.remove_finished(OLD).await.unwrap();

    let conflicts = [event.again().body("other"), event.again(), event.again().body("other")];
    let (conflict, duplicate) = (Appended::Conflict(sequence), Appended::Duplicate(sequence));
    assert_eq!(fixture.append(&conflicts).await, [conflict, duplicate, conflict]);
    // Its sender was told that it is stored, so it is.
    assert_eq!(fixture.raw.numbers("SELECT receipts FROM variants").await, [2]);
    assert_eq!(fixture.store.audit().await.unwrap(), [""; 0]);
    fixture.advance(WEEK + DAY).await;
    assert_eq!(forget(fixture).await, 1);
    assert_eq!(fixture.raw.numbers("SELECT receipts FROM variants").await, [0; 0]);
    assert!(matches!(fixture.append(&conflicts).await[..], [Appended::Stored(_), ..]));
}

async fn a_key_that_was_gained_after_the_removal_is_forgotten_with_the_others(
    fixture: &mut Fixture,
) {
    let event = aged(fixture, "a", 31);
    let sequence = fixture.stored(std::slice::from_ref(&event)).await[0];
    finish_all(fixture).await;
    fixture.store.remove_finished(OLD).await.unwrap();

    fixture.advance(DAY).await;
    let gained = event.again().alias("signed");
    assert_eq!(
        fixture.append(std::slice::from_ref(&gained)).await,
        [Appended::Duplicate(sequence)]
    );
    let by_alias = gained.again().key("another");
    assert_eq!(fixture.append(&[by_alias]).await, [Appended::Duplicate(sequence)]);
    assert_eq!(fixture.raw.numbers("SELECT count(*) FROM identities").await, [2]);
    assert_eq!(fixture.store.audit().await.unwrap(), [""; 0]);
    fixture.advance(WEEK).await;
    assert_eq!(forget(fixture).await, 2);
}

async fn identities_are_forgotten_a_few_at_a_time(fixture: &mut Fixture) {
    let events = ["a", "b", "c"].map(|name| aged(fixture, name, 31).alias(name));
    fixture.stored(&events).await;
    finish_all(fixture).await;
    fixture.store.remove_finished(OLD).await.unwrap();
    fixture.append(&events.map(|event| event.again().body("other"))).await;
    fixture.advance(WEEK + DAY).await;
    for forgotten in [4, 2, 0] {
        assert_eq!(fixture.store.forget_identities(4).await.unwrap(), forgotten);
        assert_eq!(fixture.store.audit().await.unwrap(), [""; 0]);
    }
    assert_eq!(fixture.raw.numbers("SELECT count(*) FROM variants").await, [0]);
}

/// Workers and senders at work while all that is finished is removed at once: nothing fails, nothing
/// is lost, and no duplicate makes work.
async fn removals_are_in_nobodys_way(fixture: &mut Fixture) {
    const EVENTS: usize = 400;
    let (seen, over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let workers: Vec<_> = (1..=4)
        .map(|max| tokio::spawn(work(fixture.store.clone(), max, seen.clone(), EVENTS)))
        .collect();
    let removing = tokio::spawn(keep_removing(fixture.store.clone(), over.clone()));
    for number in 0..EVENTS / 10 {
        let event = |place: usize| {
            let event = sample(fixture.main, &format!("{number} {place}"));
            if place == 9 { event } else { event.in_chat(&(place % 3).to_string()) }
        };
        let events: Vec<_> = (0..10).map(event).collect();
        fixture.stored(&events).await;
        // And each again, most of them twice, once with other bytes.
        let again = events.iter().map(|event| event.again());
        let other = events[..5].iter().map(|event| event.again().body("other"));
        let batch = Batch { events: again.chain(other).collect(), checkpoint: None };
        for outcome in fixture.store.append(Arc::new(batch)).await.unwrap() {
            assert!(!matches!(outcome, Appended::Stored(_)), "{outcome:?}");
        }
    }
    for worker in workers {
        let ended = tokio::time::timeout(Duration::from_secs(120), worker).await;
        ended.expect("all events are claimed").unwrap();
    }
    over.store(true, Ordering::SeqCst);
    removing.await.unwrap();
    assert_eq!(seen.load(Ordering::SeqCst), EVENTS, "each once");
    assert_eq!(fixture.store.next_due("default").await.unwrap(), None);
    fixture.advance(Duration::from_secs(1)).await;
    remove_all(fixture.store.as_ref()).await;
    for table in ["events", "bodies", "work", "lanes"] {
        let rows = fixture.raw.number(&format!("SELECT count(*) FROM {table}")).await;
        assert_eq!(rows, 0, "{table}");
    }
}

async fn work(store: Arc<dyn Store>, max: usize, seen: Arc<AtomicUsize>, events: usize) {
    while seen.load(Ordering::SeqCst) < events {
        let claimed = store.claim("default", request(max)).await.unwrap();
        assert!(claimed.iter().all(|one| one.attempt == 1), "{claimed:?}");
        seen.fetch_add(claimed.len(), Ordering::SeqCst);
        let done = store.ack("default", receipts(&claimed)).await.unwrap();
        assert!(done.into_iter().all(|done| done));
    }
}

async fn keep_removing(store: Arc<dyn Store>, over: Arc<AtomicBool>) {
    while !over.load(Ordering::SeqCst) {
        remove_all(store.as_ref()).await;
    }
}

/// Whatever is finished, as if it were old.
async fn remove_all(store: &dyn Store) {
    let mut after = Some(0);
    while let Some(from) = after {
        let removal = Removal { older_than: Duration::ZERO, after: from, limit: 50, ..OLD };
        after = store.remove_finished(removal).await.unwrap().next;
    }
}
