//! Claims that are not finished: the work is found again, or is dead after its last attempt.

use std::time::Duration;

use inboxd::work::{ClaimRequest, Consumer, LEASE_RAN_OUT, Ordering};

use super::fixture::{Fixture, LEASE, attempts, consumer, names, request};
use super::sample::{Vary, sample};

super::conformance!(
    what_is_not_finished_in_time_goes_to_the_next,
    the_later_ones_of_a_claim_come_back_uncounted,
    those_that_are_not_taken_again_come_back_uncounted_too,
    what_was_finished_before_the_lease_ran_out_stays_so,
    after_its_last_attempt_an_event_is_dead_and_its_conversation_goes_on,
    a_dead_event_of_no_conversation,
    no_ordering_counts_each_by_itself,
    the_last_ten_failed_attempts_are_kept,
    the_next_due_time,
    a_paused_consumer_claims_nothing_but_gets_work,
    all_of_it_survives_a_restart,
    many_dead_events_do_not_hide_a_live_one,
);

async fn what_is_not_finished_in_time_goes_to_the_next(fixture: &mut Fixture) {
    let batch = [sample(fixture.main, "a").in_chat("1"), sample(fixture.main, "b")];
    fixture.stored(&batch).await;
    assert_eq!(fixture.claim(10).await.len(), 2);
    fixture.advance(LEASE / 2).await;
    assert_eq!(names(&fixture.claim(10).await), [""; 0]);
    fixture.advance(LEASE / 2).await;
    let again = fixture.claim(10).await;
    assert_eq!((names(&again), attempts(&again)), (vec!["a", "b"], vec![2, 2]));
    assert_eq!(fixture.ack(&again).await, [true, true]);
}

async fn the_later_ones_of_a_claim_come_back_uncounted(fixture: &mut Fixture) {
    fixture.stored(&["1", "2", "3"].map(|name| sample(fixture.main, name).in_chat("a"))).await;
    assert_eq!(attempts(&fixture.claim(3).await), [1, 1, 1]);
    fixture.advance(LEASE).await;
    let again = fixture.claim(3).await;
    assert_eq!((names(&again), attempts(&again)), (vec!["1", "2", "3"], vec![2, 1, 1]));
    let kept = fixture.raw.numbers("SELECT attempt FROM attempts ORDER BY event_seq").await;
    assert_eq!(kept, [1], "only the first failed");
}

async fn those_that_are_not_taken_again_come_back_uncounted_too(fixture: &mut Fixture) {
    let events = ["1", "2", "3"].map(|name| sample(fixture.main, name).in_chat("a"));
    fixture.stored(&events).await;
    let old = fixture.claim(3).await;
    fixture.advance(LEASE).await;
    let first = fixture.claim(1).await;
    assert_eq!((names(&first), attempts(&first)), (vec!["1"], vec![2]));
    assert_eq!(fixture.work(&events[1]).await, ("ready", 0));
    assert_eq!(fixture.ack(&old).await, [false; 3], "given back");
    assert_eq!(names(&fixture.claim(3).await), [""; 0]);
    fixture.ack(&first).await;
    let rest = fixture.claim(3).await;
    assert_eq!((names(&rest), attempts(&rest)), (vec!["2", "3"], vec![1, 1]));
}

async fn what_was_finished_before_the_lease_ran_out_stays_so(fixture: &mut Fixture) {
    fixture.stored(&["1", "2", "3"].map(|name| sample(fixture.main, name).in_chat("a"))).await;
    let claimed = fixture.claim(3).await;
    fixture.ack(&claimed[..1]).await;
    fixture.advance(LEASE).await;
    let rest = fixture.claim(3).await;
    assert_eq!((names(&rest), attempts(&rest)), (vec!["2", "3"], vec![2, 1]));
}

async fn after_its_last_attempt_an_event_is_dead_and_its_conversation_goes_on(
    fixture: &mut Fixture,
) {
    let events = ["1", "2"].map(|name| sample(fixture.main, name).in_chat("a"));
    fixture.stored(&events).await;
    for attempt in 1..=3 {
        let claimed = fixture.claim(2).await;
        assert_eq!((names(&claimed), attempts(&claimed)), (vec!["1", "2"], vec![attempt, 1]));
        fixture.advance(LEASE).await;
    }
    let rest = fixture.claim(2).await;
    assert_eq!((names(&rest), attempts(&rest)), (vec!["2"], vec![1]));
    let detail = fixture.detail(&events[0]).await;
    assert_eq!((detail.work[0].state, detail.work[0].attempt), ("dead", 3));
    assert_eq!(detail.work[0].due_at, None);
    fixture.ack(&rest).await;
    assert_eq!(fixture.store.next_due("default").await.unwrap(), None);
    let errors = fixture.raw.texts("SELECT error FROM attempts ORDER BY attempt").await;
    assert_eq!(errors, [LEASE_RAN_OUT; 3]);
}

async fn a_dead_event_of_no_conversation(fixture: &mut Fixture) {
    let once = Consumer { max_attempts: 1, ..consumer("default") };
    fixture.store.put_consumers(vec![once]).await.unwrap();
    let event = sample(fixture.main, "a");
    fixture.stored(std::slice::from_ref(&event)).await;
    let old = fixture.claim(1).await;
    fixture.advance(LEASE).await;
    assert_eq!(fixture.store.next_due("default").await.unwrap(), Some(Duration::ZERO));
    assert_eq!(names(&fixture.claim(1).await), [""; 0]);
    assert_eq!(fixture.work(&event).await, ("dead", 1));
    assert_eq!(fixture.ack(&old).await, [false]);
    assert_eq!(fixture.store.next_due("default").await.unwrap(), None);
}

async fn no_ordering_counts_each_by_itself(fixture: &mut Fixture) {
    let loose = Consumer { ordering: Ordering::None, ..consumer("loose") };
    fixture.store.put_consumers(vec![loose]).await.unwrap();
    fixture.stored(&["1", "2", "3"].map(|name| sample(fixture.main, name).in_chat("a"))).await;
    fixture.store.claim("loose", request(2)).await.unwrap();
    fixture.advance(LEASE).await;
    let again = fixture.store.claim("loose", request(10)).await.unwrap();
    assert_eq!((names(&again), attempts(&again)), (vec!["1", "2", "3"], vec![2, 2, 1]));
}

async fn the_last_ten_failed_attempts_are_kept(fixture: &mut Fixture) {
    let patient = Consumer { max_attempts: 100, ..consumer("default") };
    fixture.store.put_consumers(vec![patient]).await.unwrap();
    let batch = [sample(fixture.main, "a").in_chat("1"), sample(fixture.main, "b")];
    let sequences = fixture.stored(&batch).await;
    for attempt in 1..=13 {
        assert_eq!(attempts(&fixture.claim(2).await), [attempt, attempt]);
        fixture.advance(LEASE).await;
    }
    for sequence in sequences {
        let sql = format!("SELECT attempt FROM attempts WHERE event_seq = {sequence} ORDER BY 1");
        assert_eq!(fixture.raw.numbers(&sql).await, (3..=12).collect::<Vec<_>>());
    }
}

async fn the_next_due_time(fixture: &mut Fixture) {
    let next = async || fixture.store.next_due("default").await.unwrap();
    assert_eq!(next().await, None);
    fixture.stored(&[sample(fixture.main, "a").in_chat("1")]).await;
    assert_eq!(next().await, Some(Duration::ZERO));
    let claimed = fixture.claim(1).await;
    let left = next().await.unwrap();
    assert!(left > LEASE / 2 && left <= LEASE, "{left:?}");
    // What stands behind the claimed one becomes claimable no sooner.
    fixture.stored(&[sample(fixture.main, "b").in_chat("1")]).await;
    assert!(next().await.unwrap() > LEASE / 2);
    fixture.ack(&claimed).await;
    assert_eq!(next().await, Some(Duration::ZERO));
    let short = ClaimRequest { lease: Some(LEASE / 3), ..request(1) };
    let claimed = fixture.store.claim("default", short).await.unwrap();
    let left = next().await.unwrap();
    assert!(left <= LEASE / 3 && !left.is_zero(), "{left:?}");
    fixture.advance(LEASE).await;
    assert_eq!(next().await, Some(Duration::ZERO));
    fixture.ack(&claimed).await;
    assert_eq!(next().await, None);
    fixture.stored(&[sample(fixture.main, "c")]).await;
    assert_eq!(next().await, Some(Duration::ZERO));
    fixture.claim(1).await;
    assert!(next().await.unwrap() > LEASE / 2);
}

async fn a_paused_consumer_claims_nothing_but_gets_work(fixture: &mut Fixture) {
    fixture.stored(&[sample(fixture.main, "a").in_chat("1")]).await;
    let claimed = fixture.claim(1).await;
    fixture.pause("default", true).await;
    fixture.stored(&[sample(fixture.main, "b").in_chat("1"), sample(fixture.main, "c")]).await;
    assert_eq!(names(&fixture.claim(10).await), [""; 0]);
    assert_eq!(fixture.ack(&claimed).await, [true], "what is claimed may still be finished");
    // The configuration is not what pauses, and does not end it.
    fixture.store.put_consumers(vec![consumer("default")]).await.unwrap();
    assert_eq!(names(&fixture.claim(10).await), [""; 0]);
    fixture.pause("default", false).await;
    assert_eq!(names(&fixture.claim(10).await), ["b", "c"]);
}

async fn all_of_it_survives_a_restart(fixture: &mut Fixture) {
    let batch = ["a1", "a2", "b1", "b2"].map(|name| sample(fixture.main, name).in_chat(&name[..1]));
    fixture.stored(&batch).await;
    let claimed = fixture.claim(3).await;
    assert_eq!(names(&claimed), ["a1", "a2", "b1"]);
    fixture.ack(&claimed[..1]).await;
    fixture.reopen().await;
    assert_eq!(names(&fixture.claim(10).await), [""; 0], "leases hold over a restart");
    assert_eq!(fixture.ack(&claimed[..2]).await, [true, true]);
    fixture.advance(LEASE).await;
    fixture.reopen().await;
    let rest = fixture.claim(10).await;
    assert_eq!((names(&rest), attempts(&rest)), (vec!["b1", "b2"], vec![2, 1]));
    assert_eq!(fixture.detail(&batch[0]).await.event.body, batch[0].body);
}

async fn many_dead_events_do_not_hide_a_live_one(fixture: &mut Fixture) {
    let once = Consumer { max_attempts: 1, ..consumer("default") };
    fixture.store.put_consumers(vec![once]).await.unwrap();
    let doomed: Vec<_> = (0..120)
        .map(|number| {
            let event = sample(fixture.main, &format!("doomed {number}"));
            if number % 2 == 0 { event } else { event.in_chat(&number.to_string()) }
        })
        .collect();
    fixture.stored(&doomed).await;
    assert_eq!(fixture.claim(1000).await.len(), 120);
    fixture.advance(LEASE).await;
    fixture.stored(&[sample(fixture.main, "live").in_chat("1")]).await;
    assert_eq!(names(&fixture.claim(1).await), ["live"]);
    assert_eq!(fixture.raw.number("SELECT count(*) FROM work WHERE state = 3").await, 120);
}
