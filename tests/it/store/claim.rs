//! Taking work: in order within a conversation, and nobody held up by another.

use std::time::Duration;

use inboxd::store::StoreError;
use inboxd::work::{ClaimRequest, Consumer, Ordering};

use super::fixture::{Fixture, LEASE, attempts, consumer, names, request};
use super::sample::{Vary, sample};

super::conformance!(
    a_conversation_goes_out_in_order_and_to_one_claimer,
    others_go_on_while_a_conversation_is_held,
    events_of_no_conversation_are_not_held_up,
    as_many_consecutive_ones_as_fit_in_order_of_receipt,
    bytes_bound_a_claim_but_never_below_one,
    no_ordering_holds_nothing_up,
    conversations_take_turns_by_how_long_they_are_due,
    a_claim_stops_before_what_is_not_due,
    what_is_put_off_takes_no_room_in_a_claim,
    a_claim_of_none_takes_none,
    a_claim_says_how_long_it_holds,
    an_unknown_consumer_is_named_as_such,
    one_claim_has_one_token_and_each_has_a_fresh_one,
    a_long_conversation_is_worked_off,
);

async fn a_conversation_goes_out_in_order_and_to_one_claimer(fixture: &mut Fixture) {
    let events = ["a1", "a2", "a3"].map(|name| sample(fixture.main, name).in_chat("a"));
    fixture.stored(&events[..2]).await;
    fixture.stored(&events[2..]).await;
    let first = fixture.claim(2).await;
    assert_eq!(names(&first), ["a1", "a2"]);
    assert_eq!(names(&fixture.claim(10).await), [""; 0]);
    assert_eq!(fixture.ack(&first[..1]).await, [true]);
    assert_eq!(names(&fixture.claim(10).await), [""; 0], "a2 is still held");
    assert_eq!(fixture.ack(&first[1..]).await, [true]);
    assert_eq!(names(&fixture.claim(10).await), ["a3"]);
}

async fn others_go_on_while_a_conversation_is_held(fixture: &mut Fixture) {
    let batch = [
        sample(fixture.main, "a1").in_chat("a"),
        sample(fixture.main, "b1").in_chat("b"),
        sample(fixture.main, "a2").in_chat("a"),
        sample(fixture.main, "alone"),
    ];
    fixture.stored(&batch).await;
    let held = fixture.claim(1).await;
    assert_eq!(names(&held), ["a1"]);
    assert_eq!(names(&fixture.claim(10).await), ["b1", "alone"]);
    fixture.stored(&[sample(fixture.main, "a3").in_chat("a")]).await;
    fixture.stored(&[sample(fixture.main, "c1").in_chat("c")]).await;
    assert_eq!(names(&fixture.claim(10).await), ["c1"]);
    fixture.ack(&held).await;
    assert_eq!(names(&fixture.claim(10).await), ["a2", "a3"]);
}

async fn events_of_no_conversation_are_not_held_up(fixture: &mut Fixture) {
    fixture.stored(&["1", "2", "3"].map(|name| sample(fixture.main, name))).await;
    for name in ["1", "2", "3"] {
        assert_eq!(names(&fixture.claim(1).await), [name]);
    }
    assert_eq!(names(&fixture.claim(1).await), [""; 0]);
}

async fn as_many_consecutive_ones_as_fit_in_order_of_receipt(fixture: &mut Fixture) {
    let batch = ["a1", "b1", "a2", "b2", "a3"]
        .map(|name| sample(fixture.main, name).in_chat(&name[..1]))
        .into_iter()
        .chain([sample(fixture.main, "n1")]);
    fixture.stored(&batch.collect::<Vec<_>>()).await;
    // The conversation that is due longest comes first, as far as it goes.
    let claimed = fixture.claim(4).await;
    assert_eq!(names(&claimed), ["a1", "b1", "a2", "a3"]);
    assert_eq!(names(&fixture.claim(4).await), ["n1"]);
}

async fn bytes_bound_a_claim_but_never_below_one(fixture: &mut Fixture) {
    let large = |name: &str| sample(fixture.main, name).in_chat("a").body(vec![b'x'; 30_000]);
    fixture.stored(&["a1", "a2", "a3", "a4"].map(large)).await;
    let claim = async |max_bytes| {
        let request = ClaimRequest { max: 10, max_bytes, lease: None };
        let claimed = fixture.store.claim("default", request).await.unwrap();
        fixture.ack(&claimed).await;
        names(&claimed).join(" ")
    };
    assert_eq!(claim(0).await, "a1");
    assert_eq!(claim(160_000).await, "a2 a3", "each may take 7/3 of its bytes and a little");
    assert_eq!(claim(20_000).await, "a4");
}

async fn no_ordering_holds_nothing_up(fixture: &mut Fixture) {
    let loose = Consumer { ordering: Ordering::None, ..consumer("loose") };
    fixture.store.put_consumers(vec![loose]).await.unwrap();
    fixture.stored(&["1", "2", "3"].map(|name| sample(fixture.main, name).in_chat("a"))).await;
    for name in ["1", "2", "3"] {
        assert_eq!(names(&fixture.store.claim("loose", request(1)).await.unwrap()), [name]);
    }
    assert_eq!(names(&fixture.claim(10).await), ["1", "2", "3"]);
}

async fn conversations_take_turns_by_how_long_they_are_due(fixture: &mut Fixture) {
    for name in ["a1", "b1", "c1", "a2"] {
        fixture.stored(&[sample(fixture.main, name).in_chat(&name[..1])]).await;
        fixture.advance(Duration::from_secs(1)).await;
    }
    assert_eq!(names(&fixture.claim(1).await), ["a1"]);
    assert_eq!(names(&fixture.claim(1).await), ["b1"]);
    fixture.advance(LEASE + Duration::from_secs(1)).await;
    fixture.stored(&[sample(fixture.main, "d1").in_chat("d")]).await;
    // c1 was due before the lease of a1 ran out, d1 after that of b1.
    assert_eq!(names(&fixture.claim(1).await), ["c1"]);
    assert_eq!(names(&fixture.claim(2).await), ["a1", "a2"]);
    assert_eq!(names(&fixture.claim(1).await), ["b1"]);
    assert_eq!(names(&fixture.claim(1).await), ["d1"]);
}

async fn a_claim_stops_before_what_is_not_due(fixture: &mut Fixture) {
    let events = ["a1", "a2", "a3"].map(|name| sample(fixture.main, name).in_chat("a"));
    let sequences = fixture.stored(&events).await;
    let put_off =
        format!("UPDATE work SET due_at = due_at + 3600000000 WHERE event_seq = {}", sequences[1]);
    fixture.raw.execute(&put_off).await;
    let claimed = fixture.claim(10).await;
    assert_eq!(names(&claimed), ["a1"]);
    fixture.ack(&claimed).await;
    assert_eq!(names(&fixture.claim(10).await), [""; 0]);
    let next = fixture.store.next_due("default").await.unwrap().unwrap();
    assert!(next > Duration::from_secs(3500) && next <= Duration::from_secs(3600), "{next:?}");
    fixture.advance(Duration::from_secs(3600)).await;
    assert_eq!(names(&fixture.claim(10).await), ["a2", "a3"]);
}

async fn what_is_put_off_takes_no_room_in_a_claim(fixture: &mut Fixture) {
    let of = |chat: &str, name: &str| sample(fixture.main, &format!("{chat}{name}")).in_chat(chat);
    fixture.stored(&["1", "2", "3"].map(|name| of("a", name))).await;
    let first = fixture.claim(10).await;
    assert_eq!(names(&first), ["a1", "a2", "a3"]);
    fixture.nack(&first[1..], 5 * LEASE).await;
    fixture.advance(2 * LEASE).await;
    fixture.stored(&[of("b", "1"), of("b", "2"), sample(fixture.main, "alone")]).await;
    assert_eq!(names(&fixture.claim(3).await), ["a1", "b1", "b2"]);
    assert_eq!(names(&fixture.claim(3).await), ["alone"]);
}

async fn a_claim_of_none_takes_none(fixture: &mut Fixture) {
    fixture.stored(&[sample(fixture.main, "a")]).await;
    assert_eq!(names(&fixture.claim(0).await), [""; 0]);
    assert_eq!(names(&fixture.claim(1).await), ["a"]);
}

async fn a_claim_says_how_long_it_holds(fixture: &mut Fixture) {
    fixture.stored(&["a", "b"].map(|name| sample(fixture.main, name))).await;
    let usual = fixture.claim(1).await[0].lease_until;
    let long = ClaimRequest { lease: Some(10 * LEASE), ..request(1) };
    let long = fixture.store.claim("default", long).await.unwrap()[0].lease_until;
    let more = long.since(usual);
    assert!(more >= 9 * LEASE && more < 9 * LEASE + Duration::from_secs(30), "{more:?}");
    fixture.advance(2 * LEASE).await;
    let again = fixture.claim(10).await;
    assert_eq!((names(&again), attempts(&again)), (vec!["a"], vec![2]));
}

async fn an_unknown_consumer_is_named_as_such(fixture: &mut Fixture) {
    let unknown =
        |error: StoreError| matches!(error, StoreError::UnknownConsumer(name) if name == "nobody");
    let store = &fixture.store;
    assert!(unknown(store.claim("nobody", request(1)).await.unwrap_err()));
    assert!(unknown(store.ack("nobody", Vec::new()).await.unwrap_err()));
    assert!(unknown(store.next_due("nobody").await.unwrap_err()));
}

async fn one_claim_has_one_token_and_each_has_a_fresh_one(fixture: &mut Fixture) {
    fixture.stored(&["a", "b", "c"].map(|name| sample(fixture.main, name))).await;
    let (first, second) = (fixture.claim(2).await, fixture.claim(1).await);
    assert_eq!(first[0].receipt.token, first[1].receipt.token);
    assert_ne!(first[0].receipt.token, second[0].receipt.token);
    for delivery in first.iter().chain(&second) {
        assert_eq!(delivery.receipt.sequence, delivery.event.sequence);
    }
}

async fn a_long_conversation_is_worked_off(fixture: &mut Fixture) {
    let events: Vec<_> =
        (0..250).map(|number| sample(fixture.main, &format!("{number}")).in_chat("a")).collect();
    fixture.stored(&events).await;
    let mut seen = Vec::new();
    loop {
        let claimed = fixture.claim(40).await;
        if claimed.is_empty() {
            break;
        }
        assert!(fixture.ack(&claimed).await.into_iter().all(|done| done));
        seen.extend(claimed.into_iter().map(|one| one.event.attributes.external_id));
    }
    assert_eq!(seen, (0..250).map(|number| number.to_string()).collect::<Vec<_>>());
}
