//! What makes two receipts the same event.
//!
//! The alias of the tests is what the hash of the signed bytes is outside: the stronger key.

use inboxd::event::Appended;
use inboxd::source::SourceKind;

use super::fixture::{Fixture, names};
use super::sample::{Vary, sample};

super::conformance!(
    keys_are_per_source,
    the_same_signed_bytes_are_one_event_under_any_header,
    a_replay_does_not_take_the_place_of_a_later_event,
    what_is_signed_anew_under_its_header_is_a_duplicate,
    other_bytes_signed_under_a_known_header,
    these_hold_inside_one_batch,
);

async fn keys_are_per_source(fixture: &mut Fixture) {
    let second = fixture.store.register_source(SourceKind::UnifyPort, "second").await.unwrap();
    let events = [sample(fixture.main, "a").alias("s"), sample(second, "a").alias("s")];
    let sequences = fixture.stored(&events).await;
    let again = fixture.append(&[events[1].again(), events[0].again()]).await;
    let expected = [Appended::Duplicate(sequences[1]), Appended::Duplicate(sequences[0])];
    assert_eq!(again, expected);
    assert_eq!(fixture.detail(&events[1]).await.event.source, "second");
    let counts: Vec<_> = fixture.store.sources().await.unwrap();
    let counts = counts.iter().map(|source| (&*source.name, source.stored, source.duplicates));
    assert_eq!(counts.collect::<Vec<_>>(), [("main", 1, 1), ("second", 1, 1)]);
}

async fn the_same_signed_bytes_are_one_event_under_any_header(fixture: &mut Fixture) {
    let event = sample(fixture.main, "a").key("one").alias("signed");
    let sequence = fixture.stored(std::slice::from_ref(&event)).await[0];
    let replay = event.again().key("two");
    assert_eq!(fixture.append(&[replay]).await, [Appended::Duplicate(sequence)]);
    assert_eq!(fixture.detail(&event).await.receipts, 2);
    assert_eq!(names(&fixture.claim(10).await), ["a"]);
}

async fn a_replay_does_not_take_the_place_of_a_later_event(fixture: &mut Fixture) {
    let event = sample(fixture.main, "a").key("one").alias("signed");
    let sequence = fixture.stored(std::slice::from_ref(&event)).await[0];
    let replay = event.again().key("two");
    assert_eq!(fixture.append(&[replay]).await, [Appended::Duplicate(sequence)]);
    let genuine = sample(fixture.main, "b").key("two").alias("signed b");
    let sequence = fixture.stored(std::slice::from_ref(&genuine)).await[0];
    assert_eq!(fixture.append(&[genuine.again()]).await, [Appended::Duplicate(sequence)]);
    assert_eq!(names(&fixture.claim(10).await), ["a", "b"]);
}

async fn what_is_signed_anew_under_its_header_is_a_duplicate(fixture: &mut Fixture) {
    let event = sample(fixture.main, "a").key("one").alias("at noon");
    let sequence = fixture.stored(std::slice::from_ref(&event)).await[0];
    let duplicate = [Appended::Duplicate(sequence)];
    assert_eq!(fixture.append(&[event.again().alias("at one")]).await, duplicate);
    // From now on its signed bytes name it too, whatever header they come under.
    let replay = event.again().key("two").alias("at one");
    assert_eq!(fixture.append(&[replay]).await, duplicate);
    let replay = event.again().key("three").alias("at noon");
    assert_eq!(fixture.append(&[replay]).await, duplicate);
    assert_eq!(fixture.detail(&event).await.receipts, 4);
}

async fn other_bytes_signed_under_a_known_header(fixture: &mut Fixture) {
    let event = sample(fixture.main, "a").key("one").alias("first");
    let sequence = fixture.stored(std::slice::from_ref(&event)).await[0];
    let other = event.again().alias("second").body("other");
    assert_eq!(fixture.append(std::slice::from_ref(&other)).await, [Appended::Conflict(sequence)]);
    let replay = other.again().key("two");
    assert_eq!(fixture.append(&[replay]).await, [Appended::Conflict(sequence)]);
    let detail = fixture.detail(&event).await;
    assert_eq!((detail.variants.len(), detail.variants[0].receipts), (1, 2));
    fixture.stored(&[sample(fixture.main, "b").key("two").alias("third")]).await;
}

async fn these_hold_inside_one_batch(fixture: &mut Fixture) {
    let event = sample(fixture.main, "a").key("one").alias("first");
    let genuine = sample(fixture.main, "b").key("two").alias("of b");
    let batch = [
        event.clone(),
        event.again().key("two"),
        genuine.clone(),
        event.again().alias("anew"),
        event.again().key("three").alias("anew"),
        genuine.again(),
    ];
    let appended = fixture.append(&batch).await;
    let (one, two) = (appended[0].sequence(), appended[2].sequence());
    let expected = [
        Appended::Stored(one),
        Appended::Duplicate(one),
        Appended::Stored(two),
        Appended::Duplicate(one),
        Appended::Duplicate(one),
        Appended::Duplicate(two),
    ];
    assert_eq!(appended, expected);
    let later = event.again().key("four").alias("anew");
    assert_eq!(fixture.append(&[later]).await, [Appended::Duplicate(one)]);
}
