//! Finished work that becomes due again: as new, behind all that waits, and never doubled.

use std::sync::Arc;
use std::time::Duration;

use inboxd::event::NewEvent;
use inboxd::replay::{Replayed, Selection};
use inboxd::store::StoreError;
use inboxd::work::{Consumer, Ordering};
use uuid::Uuid;

use super::fixture::{Fixture, LEASE, attempts, consumer, names, receipts, request};
use super::sample::{Vary, sample};

super::conformance!(
    done_work_is_due_again_as_new,
    dead_work_is_due_again_as_new,
    unfinished_work_is_left_alone,
    receipts_of_before_are_stale,
    it_stands_behind_all_that_waits_and_in_order_of_receipt,
    what_comes_later_stands_behind_it,
    as_often_as_it_is_asked_for,
    only_of_the_consumer_that_is_named,
    the_ordering_of_now_decides,
    any_number_at_a_time,
    what_is_finished_or_appended_meanwhile_is_none_of_it,
    a_consumer_that_does_not_exist,
);

/// The whole replay for `consumer`, so many at a time.
pub(super) async fn replay_for(
    fixture: &Fixture,
    consumer: &str,
    selection: Selection,
    limit: usize,
) -> usize {
    let selection = Arc::new(selection);
    let (mut count, mut place) = (0, None);
    loop {
        let step = fixture.store.replay(consumer, selection.clone(), place, limit).await.unwrap();
        assert!(step.count <= limit);
        count += step.count;
        place = step.next;
        if place.is_none() {
            return count;
        }
    }
}

/// The whole replay for `default`.
pub(super) async fn replay(fixture: &Fixture, selection: Selection) -> usize {
    replay_for(fixture, "default", selection, 500).await
}

/// All finished work.
fn all() -> Selection {
    Selection::default()
}

/// All dead work.
pub(super) fn dead() -> Selection {
    Selection { dead: true, ..Selection::default() }
}

/// The finished work with these events.
fn of(events: &[&NewEvent]) -> Selection {
    let ids: Vec<Uuid> = events.iter().map(|event| event.id).collect();
    Selection { ids: Some(ids), ..Selection::default() }
}

/// Appends these and finishes the work of `default` with them.
pub(super) async fn finished(fixture: &Fixture, events: &[NewEvent]) {
    fixture.stored(events).await;
    let claimed = fixture.claim(1000).await;
    assert_eq!(claimed.len(), events.len());
    assert!(fixture.ack(&claimed).await.into_iter().all(|done| done));
}

/// Appends these and lets the work of `default` with them run out of attempts.
pub(super) async fn died(fixture: &Fixture, events: &[NewEvent]) {
    fixture.stored(events).await;
    while !fixture.claim(1000).await.is_empty() {
        fixture.advance(LEASE).await;
    }
    for event in events {
        assert_eq!(fixture.work(event).await, ("dead", 3));
    }
}

/// Everything of the work rows.
async fn rows(fixture: &Fixture) -> Vec<String> {
    let receipt = if fixture.raw.is_sqlite() { "hex(receipt)" } else { "encode(receipt, 'hex')" };
    let sql = format!(
        "SELECT event_seq || ' ' || pos || ' ' || state || ' ' || attempt || ' ' ||
             coalesce(due_at, 0) || ' ' || since || ' ' || coalesce({receipt}, '-') || ' ' ||
             coalesce(finished_at, 0) || ' ' || coalesce(lane, 0)
         FROM work ORDER BY consumer_id, event_seq"
    );
    fixture.raw.texts(&sql).await
}

async fn done_work_is_due_again_as_new(fixture: &mut Fixture) {
    let events = [sample(fixture.main, "a").in_chat("1"), sample(fixture.main, "b")];
    fixture.stored(&events).await;
    fixture.claim(10).await;
    fixture.advance(LEASE).await;
    let again = fixture.claim(10).await;
    assert_eq!(attempts(&again), [2, 2]);
    fixture.ack(&again).await;
    assert_eq!(fixture.store.next_due("default").await.unwrap(), None);

    assert_eq!(replay(fixture, all()).await, 2);
    assert_eq!(fixture.store.next_due("default").await.unwrap(), Some(Duration::ZERO));
    let work = &fixture.detail(&events[0]).await.work[0];
    assert_eq!((work.state, work.attempt, work.due_at.is_some()), ("ready", 0, true));
    assert_eq!(fixture.raw.number("SELECT count(*) FROM attempts").await, 0);
    let claimed = fixture.claim(10).await;
    assert_eq!((names(&claimed), attempts(&claimed)), (vec!["a", "b"], vec![1, 1]));
    assert_eq!(fixture.ack(&claimed).await, [true, true]);
}

async fn dead_work_is_due_again_as_new(fixture: &mut Fixture) {
    let gone = [sample(fixture.main, "a").in_chat("1"), sample(fixture.main, "b")];
    died(fixture, &gone).await;
    finished(fixture, &[sample(fixture.main, "c").in_chat("1")]).await;
    assert_eq!(fixture.raw.number("SELECT count(*) FROM attempts").await, 6);

    let one = Selection { dead: true, ..of(&[&gone[1]]) };
    assert_eq!(replay(fixture, one).await, 1);
    assert_eq!(fixture.work(&gone[0]).await, ("dead", 3));
    assert_eq!(replay(fixture, dead()).await, 1);
    assert_eq!(replay(fixture, dead()).await, 0);
    assert_eq!(fixture.raw.number("SELECT count(*) FROM attempts").await, 0);
    for attempt in 1..=3 {
        let claimed = fixture.claim(10).await;
        assert_eq!(claimed.len(), 2, "what is done stays so");
        assert_eq!(attempts(&claimed), [attempt; 2]);
        fixture.advance(LEASE).await;
    }
    assert_eq!(names(&fixture.claim(10).await), [""; 0], "dead once more");
    assert_eq!(replay(fixture, all()).await, 3, "dead work is finished work too");
}

async fn unfinished_work_is_left_alone(fixture: &mut Fixture) {
    finished(fixture, &[sample(fixture.main, "done").in_chat("1")]).await;
    let held = ["held", "held too"].map(|name| sample(fixture.main, name).in_chat("1"));
    fixture.stored(&held).await;
    let claimed = fixture.claim(1).await;
    let put_off = sample(fixture.main, "put off");
    let sequence = fixture.stored(std::slice::from_ref(&put_off)).await[0];
    let sql = "UPDATE work SET due_at = due_at + 3600000000 WHERE event_seq =";
    fixture.raw.execute(&format!("{sql} {sequence}")).await;
    fixture.stored(&[sample(fixture.main, "waits")]).await;

    let before = rows(fixture).await;
    let unfinished = [&held[0], &held[1], &put_off];
    for selection in [of(&unfinished), Selection { dead: true, ..of(&unfinished) }, dead()] {
        assert_eq!(replay(fixture, selection).await, 0);
    }
    assert_eq!(rows(fixture).await, before);
    assert_eq!(replay(fixture, all()).await, 1);
    assert_eq!(rows(fixture).await[1..], before[1..]);
    assert_eq!(fixture.ack(&claimed).await, [true], "whoever holds it still does");
    assert_eq!(names(&fixture.claim(10).await), ["held too", "waits", "done"]);
}

async fn receipts_of_before_are_stale(fixture: &mut Fixture) {
    fixture.stored(&["a", "b"].map(|name| sample(fixture.main, name).in_chat("1"))).await;
    let old = fixture.claim(10).await;
    assert_eq!(fixture.ack(&old).await, [true, true]);
    assert_eq!(replay(fixture, all()).await, 2);
    assert_eq!(fixture.ack(&old).await, [false, false]);
    let new = fixture.claim(10).await;
    assert_eq!(fixture.ack(&old).await, [false, false]);
    assert_eq!(fixture.ack(&new).await, [true, true]);
    assert_eq!(fixture.ack(&old).await, [false, false]);

    let lost = sample(fixture.main, "lost");
    fixture.stored(std::slice::from_ref(&lost)).await;
    let mut late = fixture.claim(1).await;
    for _ in 1..=3 {
        fixture.advance(LEASE).await;
        late.extend(fixture.claim(1).await);
    }
    assert_eq!(fixture.work(&lost).await, ("dead", 3));
    assert_eq!(replay(fixture, dead()).await, 1);
    assert_eq!(fixture.ack(&late).await, [false; 3]);
    assert_eq!(fixture.work(&lost).await, ("ready", 0));
}

async fn it_stands_behind_all_that_waits_and_in_order_of_receipt(fixture: &mut Fixture) {
    let chat = |name: &str| sample(fixture.main, name).in_chat("1");
    let first = ["1", "2", "3"].map(chat);
    finished(fixture, &first).await;
    fixture.stored(&["4", "5"].map(chat)).await;
    // Asked for in another order, and with one that stands further back already.
    assert_eq!(replay(fixture, of(&[&first[1]])).await, 1);
    fixture.stored(&["6"].map(chat)).await;
    assert_eq!(replay(fixture, of(&[&first[2], &first[0]])).await, 2);
    let claimed = fixture.claim(10).await;
    assert_eq!(names(&claimed), ["4", "5", "2", "6", "1", "3"]);
    fixture.ack(&claimed).await;
    assert_eq!(replay(fixture, all()).await, 6);
    assert_eq!(names(&fixture.claim(10).await), ["1", "2", "3", "4", "5", "6"]);
    assert_eq!(names(&fixture.claim(10).await), [""; 0], "one worker has the conversation");
}

async fn what_comes_later_stands_behind_it(fixture: &mut Fixture) {
    let chat = |name: &str| sample(fixture.main, name).in_chat("1");
    finished(fixture, &["1", "2"].map(chat)).await;
    assert_eq!(replay(fixture, all()).await, 2);
    let sequence = fixture.stored(&[chat("3"), sample(fixture.main, "none")]).await;
    let newest = fixture.raw.number("SELECT max(pos) FROM work").await;
    assert_eq!(newest, sequence[1], "one counter for both");
    assert_eq!(names(&fixture.claim(2).await), ["1", "2"]);
    fixture.reopen().await;
    fixture.advance(LEASE).await;
    let claimed = fixture.claim(10).await;
    assert_eq!(names(&claimed), ["1", "2", "3", "none"]);
    fixture.ack(&claimed).await;
}

async fn as_often_as_it_is_asked_for(fixture: &mut Fixture) {
    let events = ["a", "b"].map(|name| sample(fixture.main, name).in_chat(name));
    finished(fixture, &events).await;
    for _ in 0..3 {
        assert_eq!(replay(fixture, all()).await, 2);
        assert_eq!(replay(fixture, all()).await, 0, "it is not finished");
        let claimed = fixture.claim(10).await;
        assert_eq!((names(&claimed), attempts(&claimed)), (vec!["a", "b"], vec![1, 1]));
        assert_eq!(replay(fixture, all()).await, 0, "it is leased");
        fixture.ack(&claimed).await;
    }
    let positions = fixture.raw.numbers("SELECT DISTINCT pos FROM work").await;
    assert_eq!(positions.len(), 2);
}

async fn only_of_the_consumer_that_is_named(fixture: &mut Fixture) {
    fixture.store.put_consumers(vec![consumer("second")]).await.unwrap();
    finished(fixture, &[sample(fixture.main, "a").in_chat("1")]).await;
    let claimed = fixture.store.claim("second", request(1)).await.unwrap();
    fixture.store.ack("second", receipts(&claimed)).await.unwrap();
    assert_eq!(replay_for(fixture, "second", all(), 10).await, 1);
    assert_eq!(names(&fixture.claim(10).await), [""; 0]);
    assert_eq!(fixture.store.ack("second", receipts(&claimed)).await.unwrap(), [false]);
    let claimed = fixture.store.claim("second", request(10)).await.unwrap();
    assert_eq!((names(&claimed), attempts(&claimed)), (vec!["a"], vec![1]));
}

async fn the_ordering_of_now_decides(fixture: &mut Fixture) {
    let ordering = |ordering| Consumer { ordering, ..consumer("default") };
    finished(fixture, &["1", "2"].map(|name| sample(fixture.main, name).in_chat("a"))).await;
    fixture.store.put_consumers(vec![ordering(Ordering::None)]).await.unwrap();
    assert_eq!(replay(fixture, all()).await, 2);
    let (first, second) = (fixture.claim(1).await, fixture.claim(1).await);
    assert_eq!((names(&first), names(&second)), (vec!["1"], vec!["2"]), "to two at a time");
    fixture.ack(&[first, second].concat()).await;

    // Lanes that nobody has needed so far.
    finished(fixture, &["3", "4"].map(|name| sample(fixture.main, name).in_chat("b"))).await;
    fixture.store.put_consumers(vec![ordering(Ordering::Conversation)]).await.unwrap();
    assert_eq!(replay(fixture, all()).await, 4);
    let (first, second) = (fixture.claim(1).await, fixture.claim(10).await);
    assert_eq!((names(&first), names(&second)), (vec!["1"], vec!["3", "4"]));
}

async fn any_number_at_a_time(fixture: &mut Fixture) {
    let events: Vec<_> = (0..12)
        .map(|number| {
            let event = sample(fixture.main, &number.to_string());
            if number % 3 == 0 { event } else { event.in_chat(&(number % 2).to_string()) }
        })
        .collect();
    finished(fixture, &events).await;
    for limit in 1..=13 {
        assert_eq!(replay_for(fixture, "default", all(), limit).await, 12, "{limit}");
        let sql = "SELECT event_seq FROM work ORDER BY pos";
        assert!(fixture.raw.numbers(sql).await.is_sorted(), "{limit}");
        let claimed = fixture.claim(100).await;
        assert_eq!(claimed.len(), 12);
        fixture.ack(&claimed).await;
    }
    let every_third = events.iter().step_by(3).collect::<Vec<_>>();
    assert_eq!(replay_for(fixture, "default", of(&every_third), 2).await, 4);
}

async fn what_is_finished_or_appended_meanwhile_is_none_of_it(fixture: &mut Fixture) {
    let tick = Duration::from_millis(1);
    finished(fixture, &["a", "b"].map(|name| sample(fixture.main, name))).await;
    fixture.stored(&[sample(fixture.main, "held")]).await;
    let held = fixture.claim(10).await;
    let selection = Arc::new(all());
    let step = async |place| -> Replayed {
        fixture.store.replay("default", selection.clone(), place, 1).await.unwrap()
    };
    let first = step(None).await;
    assert_eq!(first.count, 1);
    fixture.advance(tick).await;
    let again = fixture.claim(10).await;
    assert_eq!(names(&again), ["a"]);
    fixture.ack(&[held, again].concat()).await;
    finished(fixture, &[sample(fixture.main, "new")]).await;
    fixture.advance(tick).await;

    let second = step(first.next).await;
    assert_eq!(second.count, 1);
    assert_eq!(names(&fixture.claim(10).await), ["b"]);
    let third = step(second.next).await;
    assert_eq!(third, Replayed { count: 0, next: None }, "finished or appended since");
    assert_eq!(replay(fixture, all()).await, 3, "the next replay takes them");
}

async fn a_consumer_that_does_not_exist(fixture: &mut Fixture) {
    let outcome = fixture.store.replay("nobody", Arc::new(all()), None, 10).await;
    assert!(matches!(outcome, Err(StoreError::UnknownConsumer(name)) if name == "nobody"));
    assert_eq!(replay(fixture, all()).await, 0, "an inbox that has never held anything");
    let nothing = fixture.store.replay("default", Arc::new(all()), None, 0).await.unwrap();
    assert_eq!(nothing, Replayed { count: 0, next: None });
}
