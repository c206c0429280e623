//! What is removed once it is finished and old, and what stays however old it is.

use std::time::Duration;

use inboxd::event::NewEvent;
use inboxd::store::{Removal, Removed};
use inboxd::work::{Consumer, Filter};

use super::fixture::{Fixture, LEASE, consumer, names, receipts, request};
use super::sample::{Vary, all, sample};

super::conformance!(
    what_is_finished_and_old_goes_with_all_that_belongs_to_it,
    what_is_not_finished_stays_however_old,
    what_was_finished_just_now_stays_for_a_while,
    all_consumers_must_have_finished,
    what_a_consumer_is_being_filled_with_stays,
    an_effect_that_is_begun_keeps_its_event,
    a_lane_stays_while_its_conversation_has_events,
    the_look_goes_on_where_it_ended,
    many_bytes_go_in_several_steps,
    numbers_are_not_given_again,
);

pub(crate) const DAY: Duration = Duration::from_secs(86_400);

/// All that is older than 30 days, from the first event on; known for seven days more.
pub(crate) const OLD: Removal = Removal {
    older_than: Duration::from_secs(30 * 86_400),
    identities_for: Duration::from_secs(7 * 86_400),
    after: 0,
    limit: 500,
    max_bytes: usize::MAX,
};

/// An event that was received so many days ago.
pub(crate) fn aged(fixture: &Fixture, name: &str, days: u32) -> NewEvent {
    let received_at = fixture.clock().now() - DAY * days;
    NewEvent { received_at, ..sample(fixture.main, name) }
}

/// The names of the events that are there, in order of receipt.
async fn left(fixture: &Fixture) -> Vec<String> {
    let mut events = fixture.store.events(all()).await.unwrap().events;
    events.reverse();
    events.into_iter().map(|event| event.attributes.external_id).collect()
}

/// Claims and acks all there is, and lets the time pass in which what was finished stays.
pub(crate) async fn finish_all(fixture: &Fixture) {
    let claimed = fixture.claim(1000).await;
    assert!(fixture.ack(&claimed).await.into_iter().all(|done| done));
    fixture.advance(Duration::from_secs(3601)).await;
}

async fn remove(fixture: &Fixture) -> Removed {
    fixture.store.remove_finished(OLD).await.unwrap()
}

async fn count(fixture: &Fixture, table: &str) -> i64 {
    fixture.raw.number(&format!("SELECT count(*) FROM {table}")).await
}

async fn what_is_finished_and_old_goes_with_all_that_belongs_to_it(fixture: &mut Fixture) {
    let old = aged(fixture, "old", 31).in_chat("1").alias("signed");
    let fresh = aged(fixture, "fresh", 29).in_chat("2");
    fixture.stored(&[old.clone(), fresh]).await;
    fixture.append(&[old.again().body("other"), old.again()]).await;
    // One failed attempt, and what was done outside.
    fixture.claim(10).await;
    fixture.advance(2 * LEASE).await;
    finish_all(fixture).await;
    let zero = if fixture.raw.is_sqlite() { "x'00'" } else { "'\\x00'::bytea" };
    let sql = format!(
        "INSERT INTO effects (consumer_id, key_hash, key, event_seq, receipt, token, state, begun_at,
             finished_at)
         SELECT id, {zero}, 'key', 1, {zero}, {zero}, 'finished', 1, 2 FROM consumers"
    );
    fixture.raw.execute(&sql).await;
    assert_eq!((count(fixture, "attempts").await, count(fixture, "lanes").await), (2, 2));

    assert_eq!(remove(fixture).await, Removed { events: 1, next: None });
    assert_eq!(left(fixture).await, ["fresh"]);
    assert!(fixture.store.event(old.id).await.unwrap().is_none());
    for (table, rows) in [
        ("events", 1),
        ("bodies", 1),
        ("variants", 0),
        ("work", 1),
        ("attempts", 1),
        ("lanes", 1),
        ("effects", 0),
        ("identities", 3),
    ] {
        assert_eq!(count(fixture, table).await, rows, "{table}");
    }
    assert_eq!(remove(fixture).await, Removed { events: 0, next: None });
}

async fn what_is_not_finished_stays_however_old(fixture: &mut Fixture) {
    fixture.stored(&[aged(fixture, "dead", 400)]).await;
    for expected in [&["dead"][..], &["dead"], &["dead"], &[]] {
        assert_eq!(names(&fixture.claim(1).await), expected);
        fixture.advance(2 * LEASE).await;
    }
    fixture.stored(&["leased", "ready"].map(|name| aged(fixture, name, 400))).await;
    assert_eq!(names(&fixture.claim(1).await), ["leased"]);
    // Nobody wants this one, so it is finished at once.
    let filter = Filter { channels: vec!["none".to_owned()], ..Filter::default() };
    let picky = Consumer { filter, ..consumer("default") };
    fixture.store.put_consumers(vec![picky]).await.unwrap();
    fixture.stored(&[aged(fixture, "unwanted", 400)]).await;
    assert_eq!(remove(fixture).await.events, 1);
    assert_eq!(left(fixture).await, ["dead", "leased", "ready"]);
}

async fn what_was_finished_just_now_stays_for_a_while(fixture: &mut Fixture) {
    fixture.stored(&[aged(fixture, "late", 400)]).await;
    let claimed = fixture.claim(1).await;
    fixture.ack(&claimed).await;
    assert_eq!(remove(fixture).await.events, 0);
    assert_eq!(fixture.ack(&claimed).await, [true], "its worker may not have heard it");
    fixture.advance(Duration::from_secs(3601)).await;
    assert_eq!(remove(fixture).await.events, 1);
    assert_eq!(fixture.ack(&claimed).await, [false]);
}

async fn all_consumers_must_have_finished(fixture: &mut Fixture) {
    fixture.store.put_consumers(vec![consumer("second")]).await.unwrap();
    fixture.stored(&["a", "b"].map(|name| aged(fixture, name, 31).in_chat("1"))).await;
    finish_all(fixture).await;
    assert_eq!(remove(fixture).await.events, 0);
    let claimed = fixture.store.claim("second", request(1)).await.unwrap();
    assert_eq!(names(&claimed), ["a"]);
    fixture.store.ack("second", receipts(&claimed)).await.unwrap();
    fixture.advance(Duration::from_secs(3601)).await;
    assert_eq!(remove(fixture).await.events, 1);
    let claimed = fixture.store.claim("second", request(2)).await.unwrap();
    assert_eq!(names(&claimed), ["b"]);
}

async fn what_a_consumer_is_being_filled_with_stays(fixture: &mut Fixture) {
    fixture.stored(&["1", "2", "3", "4"].map(|name| aged(fixture, name, 31))).await;
    finish_all(fixture).await;
    fixture.raw.execute("UPDATE consumers SET fill_next = 2, fill_last = 3").await;
    assert_eq!(remove(fixture).await.events, 2);
    assert_eq!(left(fixture).await, ["2", "3"]);
    fixture.raw.execute("UPDATE consumers SET fill_next = NULL, fill_last = NULL").await;
    assert_eq!(remove(fixture).await.events, 2);
}

async fn an_effect_that_is_begun_keeps_its_event(fixture: &mut Fixture) {
    fixture.stored(&["acted", "other"].map(|name| aged(fixture, name, 31))).await;
    finish_all(fixture).await;
    let zero = if fixture.raw.is_sqlite() { "x'00'" } else { "'\\x00'::bytea" };
    let sql = format!(
        "INSERT INTO effects (consumer_id, key_hash, key, event_seq, receipt, token, state, begun_at)
         SELECT id, {zero}, 'key', 1, {zero}, {zero}, 'begun', 1 FROM consumers"
    );
    fixture.raw.execute(&sql).await;
    assert_eq!(remove(fixture).await.events, 1);
    assert_eq!(left(fixture).await, ["acted"]);
    fixture.raw.execute("UPDATE effects SET state = 'finished', finished_at = 1").await;
    assert_eq!(remove(fixture).await.events, 1);
    assert_eq!(count(fixture, "effects").await, 0);
}

async fn a_lane_stays_while_its_conversation_has_events(fixture: &mut Fixture) {
    fixture.stored(&["a", "b"].map(|name| aged(fixture, name, 31).in_chat("1"))).await;
    // What is dead may be asked for again, and is then found by way of its lane.
    fixture.raw.execute("UPDATE consumers SET max_attempts = 1").await;
    fixture.claim(1).await;
    fixture.advance(2 * LEASE).await;
    assert_eq!(names(&fixture.claim(1).await), ["b"]);
    fixture.raw.execute("UPDATE consumers SET max_attempts = 3").await;
    fixture
        .raw
        .execute("UPDATE work SET state = 2, due_at = NULL, finished_at = 1 WHERE state = 1")
        .await;
    fixture.raw.execute("UPDATE lanes SET head = NULL, due_at = NULL, since = NULL").await;
    assert_eq!(remove(fixture).await.events, 1);
    assert_eq!((left(fixture).await, count(fixture, "lanes").await), (vec!["a".to_owned()], 1));
    fixture.raw.execute("UPDATE work SET state = 2, finished_at = 1").await;
    assert_eq!(remove(fixture).await.events, 1);
    assert_eq!(count(fixture, "lanes").await, 0);
    // The conversation goes on as if it were new.
    fixture.stored(&[aged(fixture, "c", 0).in_chat("1")]).await;
    assert_eq!(names(&fixture.claim(1).await), ["c"]);
}

async fn the_look_goes_on_where_it_ended(fixture: &mut Fixture) {
    let days = [31, 31, 31, 31, 31, 31, 2, 2, 2, 31];
    let events: Vec<_> = (0..10).map(|at| aged(fixture, &at.to_string(), days[at])).collect();
    fixture.stored(&events[..2]).await;
    fixture.claim(1).await;
    fixture
        .raw
        .execute("UPDATE work SET due_at = 9000000000000000, since = 1 WHERE state = 1")
        .await;
    finish_all(fixture).await;
    fixture.stored(&events[2..]).await;
    finish_all(fixture).await;
    let mut steps = Vec::new();
    let mut after = Some(0);
    while let Some(from) = after {
        let removal = Removal { after: from, limit: 3, ..OLD };
        let removed = fixture.store.remove_finished(removal).await.unwrap();
        steps.push((removed.events, removed.next));
        after = removed.next;
    }
    // The last three are not old, and what is behind them is not looked at.
    assert_eq!(steps, [(2, Some(3)), (3, Some(6)), (0, None)]);
    assert_eq!(left(fixture).await, ["0", "6", "7", "8", "9"]);
    fixture.raw.execute("UPDATE work SET due_at = 1 WHERE state = 1").await;
    let due_at = "UPDATE lanes SET due_at = 1 WHERE head IS NOT NULL";
    fixture.raw.execute(due_at).await;
}

async fn many_bytes_go_in_several_steps(fixture: &mut Fixture) {
    let body = vec![b'x'; 1000];
    let events = ["1", "2", "3"].map(|name| aged(fixture, name, 31).body(body.clone()));
    fixture.stored(&events).await;
    finish_all(fixture).await;
    let removal = Removal { max_bytes: 2000, ..OLD };
    let removed = fixture.store.remove_finished(removal).await.unwrap();
    assert_eq!(removed, Removed { events: 2, next: Some(2) });
    let removal = Removal { max_bytes: 1, after: 2, ..OLD };
    let removed = fixture.store.remove_finished(removal).await.unwrap();
    assert_eq!(removed, Removed { events: 1, next: None });
}

async fn numbers_are_not_given_again(fixture: &mut Fixture) {
    let old = fixture.stored(&["1", "2"].map(|name| aged(fixture, name, 31))).await;
    finish_all(fixture).await;
    assert_eq!(remove(fixture).await.events, 2);
    fixture.reopen().await;
    let new = fixture.stored(&[aged(fixture, "3", 0)]).await;
    assert!(new[0] > old[1], "{new:?}");
}
