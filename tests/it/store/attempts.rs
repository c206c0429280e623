//! Giving work up: when it comes again, what goes back with it, and whose it is to give up.

use std::time::Duration;

use inboxd::store::StoreError;
use inboxd::work::{Consumer, ERROR_BYTES, NACKED, Nack, Nacked, Ordering, Receipt};

use super::fixture::{Fixture, LEASE, attempts, consumer, names, receipts, request};
use super::sample::{Vary, sample};

use Nacked::{Dead, Requeued, Stale};

super::conformance!(
    what_is_nacked_comes_again_after_its_delay,
    without_a_delay_the_backoff_decides,
    what_went_wrong_is_told_with_the_event,
    the_later_ones_of_a_claim_go_back_uncounted,
    the_earlier_ones_of_a_claim_stay,
    those_that_are_named_count_and_those_between_go_back,
    a_dead_event_lets_its_conversation_go_on,
    without_order_nothing_goes_back_with_it,
    a_stale_nack_changes_nothing,
    a_receipt_is_of_one_consumer,
    a_late_nack_counts_while_nobody_else_has_the_work,
    a_receipt_named_twice_is_one_attempt,
    many_receipts_at_once,
    a_paused_consumer_may_give_up,
);

const MINUTE: Duration = Duration::from_secs(60);

async fn what_is_nacked_comes_again_after_its_delay(fixture: &mut Fixture) {
    let batch = [sample(fixture.main, "a").in_chat("1"), sample(fixture.main, "b")];
    fixture.stored(&batch).await;
    let claimed = fixture.claim(10).await;
    assert_eq!(fixture.nack(&claimed, 10 * MINUTE).await, [Requeued, Requeued]);
    for event in &batch {
        assert_eq!(fixture.work(event).await, ("ready", 1));
    }
    assert_eq!(names(&fixture.claim(10).await), [""; 0]);
    let next = fixture.store.next_due("default").await.unwrap().unwrap();
    assert!(next > 9 * MINUTE && next <= 10 * MINUTE, "{next:?}");
    fixture.advance(10 * MINUTE).await;
    let again = fixture.claim(10).await;
    assert_eq!((names(&again), attempts(&again)), (vec!["a", "b"], vec![2, 2]));
    assert_eq!(fixture.nack(&again, Duration::ZERO).await, [Requeued, Requeued]);
    let again = fixture.claim(10).await;
    assert_eq!((names(&again), attempts(&again)), (vec!["a", "b"], vec![3, 3]));
    assert_eq!(fixture.nack(&again, Duration::ZERO).await, [Dead, Dead], "the last of three");
    assert_eq!(fixture.store.next_due("default").await.unwrap(), None);
}

async fn without_a_delay_the_backoff_decides(fixture: &mut Fixture) {
    let seconds = Duration::from_secs;
    let (first, max) = (seconds(100), seconds(500));
    let patient = Consumer {
        max_attempts: 100,
        backoff_first: first,
        backoff_max: max,
        ..consumer("default")
    };
    fixture.store.put_consumers(vec![patient]).await.unwrap();
    let events: Vec<_> = (0..40).map(|number| sample(fixture.main, &number.to_string())).collect();
    fixture.stored(&events).await;
    for longest in [200, 400, 500, 500] {
        let claimed = fixture.claim(100).await;
        assert_eq!(claimed.len(), events.len());
        let backed_off = fixture.store.nack("default", receipts(&claimed), Nack::default()).await;
        assert_eq!(backed_off.unwrap(), [Requeued; 40]);
        let waits = fixture.raw.numbers("SELECT due_at - since FROM work ORDER BY 1").await;
        let least = first.as_micros() as i64;
        assert!(waits[0] >= least && waits[39] <= longest * 1_000_000, "{waits:?}");
        let spread = waits[39] - waits[0];
        assert!(spread > (longest * 1_000_000 - least) / 2, "each draws for itself: {waits:?}");
        fixture.advance(max).await;
    }
}

async fn what_went_wrong_is_told_with_the_event(fixture: &mut Fixture) {
    let patient = Consumer { max_attempts: 100, ..consumer("default") };
    fixture.store.put_consumers(vec![patient]).await.unwrap();
    let event = sample(fixture.main, "a").in_chat("1");
    fixture.stored(std::slice::from_ref(&event)).await;
    let long = "é".repeat(ERROR_BYTES);
    let errors = [None, Some("the CRM is down"), Some("a\0b"), Some(&*long)];
    for error in errors {
        let claimed = fixture.claim(1).await;
        let error = error.map(str::to_owned);
        let nack = Nack { delay: Some(Duration::ZERO), error, dead: false };
        fixture.store.nack("default", receipts(&claimed), nack).await.unwrap();
    }
    let told = fixture.work_state(&event).await.attempts;
    let errors: Vec<&str> = told.iter().map(|attempt| &*attempt.error).collect();
    assert_eq!(errors, [NACKED, "the CRM is down", "a\u{fffd}b", &long[..ERROR_BYTES]]);
    assert_eq!(told.iter().map(|one| one.attempt).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert!(told.iter().map(|one| one.at).is_sorted());
    for _ in 5..=13 {
        let claimed = fixture.claim(1).await;
        fixture.nack(&claimed, Duration::ZERO).await;
    }
    let told = fixture.work_state(&event).await.attempts;
    let kept: Vec<i64> = told.iter().map(|attempt| attempt.attempt).collect();
    assert_eq!(kept, (4..=13).collect::<Vec<_>>(), "the last ten");
}

async fn the_later_ones_of_a_claim_go_back_uncounted(fixture: &mut Fixture) {
    let events = ["1", "2", "3"].map(|name| sample(fixture.main, name).in_chat("a"));
    fixture.stored(&events).await;
    let claimed = fixture.claim(3).await;
    assert_eq!(fixture.nack(&claimed[..1], MINUTE).await, [Requeued]);
    for (event, attempt) in events.iter().zip([1, 0, 0]) {
        assert_eq!(fixture.work(event).await, ("ready", attempt));
    }
    assert_eq!(fixture.ack(&claimed).await, [false; 3]);
    assert_eq!(fixture.nack(&claimed, MINUTE).await, [Stale; 3]);
    assert_eq!(fixture.extend(&claimed).await, [false; 3]);
    assert_eq!(names(&fixture.claim(3).await), [""; 0], "they wait for the first");
    fixture.advance(MINUTE).await;
    let again = fixture.claim(3).await;
    assert_eq!((names(&again), attempts(&again)), (vec!["1", "2", "3"], vec![2, 1, 1]));
    assert_eq!(fixture.raw.number("SELECT count(*) FROM attempts").await, 1);
}

async fn the_earlier_ones_of_a_claim_stay(fixture: &mut Fixture) {
    let events = ["1", "2", "3", "4"].map(|name| sample(fixture.main, name).in_chat("a"));
    fixture.stored(&events).await;
    let claimed = fixture.claim(3).await;
    assert_eq!(fixture.nack(&claimed[1..2], MINUTE).await, [Requeued]);
    let mut work = Vec::new();
    for event in &events {
        work.push(fixture.work(event).await);
    }
    assert_eq!(work, [("leased", 1), ("ready", 1), ("ready", 0), ("ready", 0)]);
    assert_eq!(names(&fixture.claim(9).await), [""; 0], "the first is still held");
    assert_eq!(fixture.ack(&claimed[..1]).await, [true]);
    assert_eq!(names(&fixture.claim(9).await), [""; 0], "the second is put off");
    fixture.advance(MINUTE).await;
    let again = fixture.claim(9).await;
    assert_eq!((names(&again), attempts(&again)), (vec!["2", "3", "4"], vec![2, 1, 1]));
}

async fn those_that_are_named_count_and_those_between_go_back(fixture: &mut Fixture) {
    let batch: Vec<_> = ["a1", "b1", "a2", "a3", "b2", "a4"]
        .map(|name| sample(fixture.main, name).in_chat(&name[..1]))
        .to_vec();
    fixture.stored(&batch).await;
    let claimed = fixture.claim(10).await;
    assert_eq!(names(&claimed), ["a1", "b1", "a2", "a3", "b2", "a4"]);
    let named = [&claimed[3..4], &claimed[4..5], &claimed[..1]].concat();
    assert_eq!(fixture.nack(&named, Duration::ZERO).await, [Requeued; 3]);
    let mut work = Vec::new();
    for event in &batch {
        work.push(fixture.work(event).await);
    }
    let (given_up, held) = (("ready", 1), ("leased", 1));
    assert_eq!(work, [given_up, held, ("ready", 0), given_up, given_up, ("ready", 0)]);
    let again = fixture.claim(10).await;
    let expected = (vec!["a1", "a2", "a3", "a4"], vec![2, 1, 2, 1]);
    assert_eq!((names(&again), attempts(&again)), expected);
}

async fn a_dead_event_lets_its_conversation_go_on(fixture: &mut Fixture) {
    let events = ["1", "2", "3"].map(|name| sample(fixture.main, name).in_chat("a"));
    fixture.stored(&events).await;
    let claimed = fixture.claim(2).await;
    assert_eq!(fixture.bury(&claimed[..1]).await, [Dead]);
    let work = fixture.work_state(&events[0]).await;
    assert_eq!((work.state, work.attempt, work.due_at), ("dead", 1, None));
    assert!(work.finished_at.is_some());
    assert_eq!(fixture.ack(&claimed).await, [false, false], "the second went back with it");
    let rest = fixture.claim(10).await;
    assert_eq!((names(&rest), attempts(&rest)), (vec!["2", "3"], vec![1, 1]));
    // One behind another that is held.
    assert_eq!(fixture.bury(&rest[1..]).await, [Dead]);
    assert_eq!(fixture.ack(&rest).await, [true, false]);
    assert_eq!(fixture.store.next_due("default").await.unwrap(), None);
}

async fn without_order_nothing_goes_back_with_it(fixture: &mut Fixture) {
    let loose = Consumer { ordering: Ordering::None, ..consumer("default") };
    fixture.store.put_consumers(vec![loose]).await.unwrap();
    let events = ["1", "2", "3"].map(|name| sample(fixture.main, name).in_chat("a"));
    fixture.stored(&events).await;
    let claimed = fixture.claim(3).await;
    assert_eq!(fixture.nack(&claimed[..1], MINUTE).await, [Requeued]);
    assert_eq!(fixture.ack(&claimed).await, [false, true, true]);
}

async fn a_stale_nack_changes_nothing(fixture: &mut Fixture) {
    let batch = ["a1", "a2", "b1"].map(|name| sample(fixture.main, name).in_chat(&name[..1]));
    fixture.stored(&batch).await;
    let claimed = fixture.claim(10).await;
    let Receipt { sequence, token } = claimed[0].receipt;
    let made_up = vec![
        Receipt { sequence, token: [0; 16] },
        Receipt { sequence: sequence + 100, token },
        Receipt { sequence: -1, token },
    ];
    let stale = fixture.store.nack("default", made_up.clone(), Nack::default()).await.unwrap();
    assert_eq!(stale, [Stale; 3]);
    let stale = fixture.store.extend("default", made_up, Some(MINUTE)).await.unwrap();
    assert_eq!(stale, [false; 3]);
    assert_eq!(fixture.nack(&[], MINUTE).await, []);
    assert_eq!(fixture.extend(&[]).await, [false; 0]);

    assert_eq!(fixture.ack(&claimed[2..]).await, [true]);
    assert_eq!(fixture.bury(&claimed[2..]).await, [Stale]);
    assert_eq!(fixture.extend(&claimed[2..]).await, [false]);
    assert_eq!(fixture.work(&batch[2]).await, ("done", 1));

    fixture.advance(LEASE).await;
    let newer = fixture.claim(10).await;
    assert_eq!(names(&newer), ["a1", "a2"]);
    assert_eq!(fixture.bury(&claimed).await, [Stale; 3]);
    let none = Some(Duration::from_micros(1));
    let stale = fixture.store.extend("default", receipts(&claimed), none).await.unwrap();
    assert_eq!(stale, [false; 3]);
    assert_eq!(names(&fixture.claim(10).await), [""; 0], "the newer claim still holds");
    assert_eq!(fixture.ack(&newer).await, [true, true]);
    let attempts = fixture.raw.number("SELECT count(*) FROM attempts").await;
    assert_eq!(attempts, 1, "the lease that ran out");
}

async fn a_receipt_is_of_one_consumer(fixture: &mut Fixture) {
    fixture.store.put_consumers(vec![consumer("second")]).await.unwrap();
    let events = ["1", "2"].map(|name| sample(fixture.main, name).in_chat("a"));
    fixture.stored(&events).await;
    let claimed = fixture.claim(2).await;
    let other = fixture.store.claim("second", request(2)).await.unwrap();
    assert_eq!(fixture.bury(&other).await, [Stale, Stale]);
    let foreign = fixture.store.extend("second", receipts(&claimed), None).await.unwrap();
    assert_eq!(foreign, [false, false]);
    assert_eq!(fixture.nack(&claimed[..1], MINUTE).await, [Requeued]);
    let done = fixture.store.ack("second", receipts(&other)).await.unwrap();
    assert_eq!(done, [true, true], "what one gives up is still the other's");
    for (unknown, name) in [
        (fixture.store.nack("x", vec![], Nack::default()).await.map(drop), "x"),
        (fixture.store.extend("y", vec![], None).await.map(drop), "y"),
    ] {
        let unknown = unknown.unwrap_err();
        assert!(matches!(unknown, StoreError::UnknownConsumer(who) if who == name));
    }
}

async fn a_late_nack_counts_while_nobody_else_has_the_work(fixture: &mut Fixture) {
    let batch = [
        sample(fixture.main, "a1").in_chat("a"),
        sample(fixture.main, "a2").in_chat("a"),
        sample(fixture.main, "alone"),
    ];
    fixture.stored(&batch).await;
    let claimed = fixture.claim(10).await;
    fixture.advance(2 * LEASE).await;
    let late = [&claimed[..1], &claimed[2..]].concat();
    assert_eq!(fixture.nack(&late, MINUTE).await, [Requeued, Requeued]);
    assert_eq!(names(&fixture.claim(10).await), [""; 0]);
    assert_eq!(fixture.work(&batch[1]).await, ("ready", 0));
    let told = fixture.work_state(&batch[0]).await.attempts;
    assert_eq!(told[0].error, NACKED, "the worker's word, not that its lease ran out");
}

async fn a_receipt_named_twice_is_one_attempt(fixture: &mut Fixture) {
    let event = sample(fixture.main, "a").in_chat("1");
    fixture.stored(std::slice::from_ref(&event)).await;
    let claimed = fixture.claim(1).await;
    let twice = [&claimed[..], &claimed[..]].concat();
    assert_eq!(fixture.extend(&twice).await, [true, true]);
    assert_eq!(fixture.nack(&twice, Duration::ZERO).await, [Requeued, Requeued]);
    assert_eq!(fixture.work(&event).await, ("ready", 1));
    assert_eq!(fixture.nack(&twice, Duration::ZERO).await, [Stale, Stale]);
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
    assert_eq!(fixture.extend(&claimed).await, [true; 1000]);
    assert_eq!(fixture.nack(&claimed, Duration::ZERO).await, [Requeued; 1000]);
    let again = fixture.claim(1000).await;
    assert_eq!(attempts(&again), [2; 1000]);
    assert_eq!(fixture.bury(&again).await, [Dead; 1000]);
    assert_eq!(fixture.store.next_due("default").await.unwrap(), None);
}

async fn a_paused_consumer_may_give_up(fixture: &mut Fixture) {
    fixture.stored(&["1", "2"].map(|name| sample(fixture.main, name))).await;
    let claimed = fixture.claim(2).await;
    fixture.pause("default", true).await;
    assert_eq!(fixture.extend(&claimed).await, [true, true]);
    assert_eq!(fixture.nack(&claimed[..1], Duration::ZERO).await, [Requeued]);
    assert_eq!(fixture.bury(&claimed[1..]).await, [Dead]);
}
