//! Holding work for longer than its lease.

use std::time::Duration;

use super::fixture::{Fixture, LEASE, attempts, names, receipts};
use super::sample::{Vary, sample};

super::conformance!(
    what_is_extended_is_held_for_another_lease,
    an_extended_head_holds_its_conversation,
    a_late_extend_counts_while_nobody_else_has_the_work,
    a_lease_may_be_made_shorter,
    what_stands_behind_is_not_held_by_its_own_lease,
);

async fn what_is_extended_is_held_for_another_lease(fixture: &mut Fixture) {
    let batch = [sample(fixture.main, "a").in_chat("1"), sample(fixture.main, "b")];
    fixture.stored(&batch).await;
    let claimed = fixture.claim(10).await;
    for _ in 0..3 {
        fixture.advance(LEASE * 3 / 4).await;
        assert_eq!(names(&fixture.claim(10).await), [""; 0]);
        assert_eq!(fixture.extend(&claimed).await, [true, true]);
    }
    let left = fixture.store.next_due("default").await.unwrap().unwrap();
    assert!(left > LEASE / 2 && left <= LEASE, "{left:?}");
    let until = fixture.work_state(&batch[0]).await.due_at.unwrap();
    let long = fixture.store.extend("default", receipts(&claimed), Some(10 * LEASE)).await;
    assert_eq!(long.unwrap(), [true, true]);
    let more = fixture.work_state(&batch[0]).await.due_at.unwrap().since(until);
    assert!(more >= 9 * LEASE && more < 10 * LEASE, "{more:?}");
    fixture.advance(5 * LEASE).await;
    assert_eq!(names(&fixture.claim(10).await), [""; 0]);
    fixture.advance(5 * LEASE).await;
    let again = fixture.claim(10).await;
    assert_eq!((names(&again), attempts(&again)), (vec!["a", "b"], vec![2, 2]));
    assert_eq!(fixture.extend(&claimed).await, [false, false]);
}

async fn an_extended_head_holds_its_conversation(fixture: &mut Fixture) {
    fixture.stored(&["1", "2", "3"].map(|name| sample(fixture.main, name).in_chat("a"))).await;
    let claimed = fixture.claim(2).await;
    fixture.advance(LEASE / 2).await;
    assert_eq!(fixture.extend(&claimed[..1]).await, [true]);
    fixture.advance(LEASE * 3 / 4).await;
    assert_eq!(names(&fixture.claim(10).await), [""; 0]);
    assert_eq!(fixture.ack(&claimed[..1]).await, [true]);
    // The second was claimed with the first and not extended.
    let rest = fixture.claim(10).await;
    assert_eq!((names(&rest), attempts(&rest)), (vec!["2", "3"], vec![2, 1]));
    assert_eq!(fixture.ack(&claimed).await, [true, false]);
}

async fn a_late_extend_counts_while_nobody_else_has_the_work(fixture: &mut Fixture) {
    let batch = ["a1", "b1"].map(|name| sample(fixture.main, name).in_chat(&name[..1]));
    fixture.stored(&batch).await;
    let claimed = fixture.claim(2).await;
    fixture.advance(2 * LEASE).await;
    assert_eq!(names(&fixture.claim(1).await), ["a1"]);
    assert_eq!(fixture.extend(&claimed).await, [false, true]);
    assert_eq!(names(&fixture.claim(10).await), [""; 0]);
    assert_eq!(fixture.ack(&claimed).await, [false, true]);
}

async fn a_lease_may_be_made_shorter(fixture: &mut Fixture) {
    fixture.stored(&[sample(fixture.main, "a").in_chat("1")]).await;
    let claimed = fixture.claim(1).await;
    let short = Some(Duration::from_micros(1));
    assert_eq!(fixture.store.extend("default", receipts(&claimed), short).await.unwrap(), [true]);
    fixture.advance(Duration::from_millis(1)).await;
    assert_eq!(attempts(&fixture.claim(1).await), [2]);
}

async fn what_stands_behind_is_not_held_by_its_own_lease(fixture: &mut Fixture) {
    let events = ["1", "2"].map(|name| sample(fixture.main, name).in_chat("a"));
    fixture.stored(&events).await;
    let claimed = fixture.claim(2).await;
    let long = fixture.store.extend("default", receipts(&claimed[1..]), Some(10 * LEASE)).await;
    assert_eq!(long.unwrap(), [true]);
    fixture.advance(LEASE).await;
    let again = fixture.claim(2).await;
    assert_eq!((names(&again), attempts(&again)), (vec!["1", "2"], vec![2, 1]));
    assert_eq!(fixture.ack(&claimed).await, [false, false]);
}
