//! What makes two deliveries one event, and what no header can change about that.

use inboxd::event::Flags;

use super::on_each_store;
use crate::support::delivery::{Delivery, SECRET, message, now};
use crate::support::place::{MAIN, Place};
use crate::support::process::Gateway;

const EVENT_ID: &str = "X-Device-Event-Id";

async fn taken(gateway: &Gateway, delivery: &Delivery) {
    let answer = delivery.send(gateway.public).await;
    assert_eq!(answer.status, 204, "{delivery:?}: {answer:?}");
}

async fn ids(place: &Place) -> Vec<String> {
    let events = place.events().await;
    events.into_iter().map(|event| event.attributes.external_id).collect()
}

#[tokio::test]
async fn a_replay_under_another_header_stays_one_event_and_takes_nobodys_place() {
    on_each_store(MAIN, async |place, gateway| {
        let captured = Delivery::message("evt_1");
        taken(gateway, &captured).await;
        taken(gateway, &captured.clone().without(EVENT_ID).with(EVENT_ID, "evt_2")).await;
        let event = place.only_event().await;
        assert_eq!((event.receipts, event.flags), (2, Flags::ID_MISMATCH));
        assert_eq!(event.work.len(), 1);
        taken(gateway, &Delivery::message("evt_2")).await;
        assert_eq!(ids(place).await, ["evt_1", "evt_2"]);
    })
    .await;
}

#[tokio::test]
async fn without_a_signed_id_the_signed_bytes_are_one_event_whatever_the_headers_say() {
    on_each_store(MAIN, async |place, gateway| {
        let captured = Delivery::new("{\"type\":\"message.read\"}").with(EVENT_ID, "evt_1");
        let replayed = captured.clone().without(EVENT_ID);
        for delivery in
            [&captured, &replayed.clone().with(EVENT_ID, "evt_2"), &replayed.with(EVENT_ID, " ")]
        {
            taken(gateway, delivery).await;
        }
        assert_eq!(place.only_event().await.receipts, 3);
        // What is delivered later under the header that was used for the replay is an event.
        let later = Delivery::new("{\"type\":\"message.deleted\"}").with(EVENT_ID, "evt_2");
        taken(gateway, &later).await;
        assert_eq!(ids(place).await, ["evt_1", "evt_2"]);
        // A retry that was signed anew is still the event of its header.
        let at = (now() - std::time::Duration::from_secs(60)).to_string();
        let retry = Delivery::signed(SECRET, &at, captured.body.clone()).with(EVENT_ID, "evt_1");
        taken(gateway, &retry).await;
        assert_eq!(ids(place).await, ["evt_1", "evt_2"]);
    })
    .await;
}

#[tokio::test]
async fn other_bytes_under_a_known_id_are_kept_beside_the_first_and_make_no_work() {
    on_each_store(MAIN, async |place, gateway| {
        let first = Delivery::message("evt_1");
        let mut other = message("evt_1");
        other.insert(1, b' ');
        let other = Delivery::new(other).with(EVENT_ID, "evt_1");
        for delivery in [&first, &other, &other, &first] {
            taken(gateway, delivery).await;
        }
        let event = place.only_event().await;
        assert_eq!(event.event.body, first.body);
        assert_eq!((event.receipts, event.work.len()), (4, 1));
        assert_eq!(event.flags, Flags::CONFLICT);
        assert_eq!(event.variants.len(), 1);
        assert_eq!((&event.variants[0].body[..], event.variants[0].receipts), (&*other.body, 2));
        let store = place.store().await;
        let source = &store.sources().await.unwrap()[0];
        assert_eq!((source.stored, source.duplicates, source.conflicts), (1, 1, 2));
    })
    .await;
}

#[tokio::test]
async fn an_id_in_the_header_cannot_stand_in_for_a_signed_one() {
    on_each_store(MAIN, async |place, gateway| {
        taken(gateway, &Delivery::new("{}").with(EVENT_ID, "evt_1")).await;
        taken(gateway, &Delivery::message("evt_1")).await;
        assert_eq!(ids(place).await, ["evt_1", "evt_1"]);
        assert_eq!(place.events().await.len(), 2);
    })
    .await;
}

#[tokio::test]
async fn concurrent_deliveries_of_one_event_are_one_row_and_all_are_answered() {
    on_each_store(MAIN, async |place, gateway| {
        let delivery = Delivery::message("evt_1");
        let copies = (0..40).map(|_| taken(gateway, &delivery));
        futures_util::future::join_all(copies).await;
        let event = place.only_event().await;
        assert_eq!((event.receipts, event.work.len()), (40, 1));
    })
    .await;
}

#[tokio::test]
async fn any_of_the_secrets_verifies_and_its_position_is_kept() {
    let config = MAIN.replace("}]", "}, { file = \"previous\" }]");
    let place = Place::with(crate::support::place::Kind::Sqlite, &config);
    std::fs::write(place.home.dir().join("previous"), "the previous secret\n").unwrap();
    let gateway = place.start();
    let at = now().to_string();
    taken(&gateway, &Delivery::signed("the previous secret", &at, message("old"))).await;
    taken(&gateway, &Delivery::signed(SECRET, &at, message("new"))).await;
    // A retry under the other one is the same event, and does not change who was first.
    taken(&gateway, &Delivery::signed(SECRET, &at, message("old"))).await;
    let store = place.store().await;
    let mut secrets = vec![];
    for event in place.events().await {
        secrets.push(store.event(event.id).await.unwrap().unwrap().first_secret);
    }
    assert_eq!(secrets, [Some(1), Some(0)]);
}
