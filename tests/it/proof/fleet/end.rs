//! The end of a run: all is worked off, and what died is asked for again.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use inboxd::clock::Time;
use serde_json::json;

use super::{Fleet, MAX_ATTEMPTS, sender};
use crate::support::condition::until;
use crate::support::http::{get, post};
use crate::support::place::Place;

const DEAD: &str = "/v1/consumers/default/dead";
const JSON: [(&str, &str); 1] = [("Content-Type", "application/json")];
/// Between two looks at the store, which has better things to do.
const LOOK: Duration = Duration::from_millis(50);

/// Waits until no work is left.
pub(super) async fn worked_off(fleet: &Fleet, place: &Place) {
    fleet.oracle.finished(fleet.events - sender::poison(fleet.events)).await;
    let store = place.store().await;
    until("nothing is left to be done", async || {
        tokio::time::sleep(LOOK).await;
        store.next_due("default").await.unwrap().is_none().then_some(())
    })
    .await;
    store.close().await;
}

/// Looks at what is dead, asks for it again, and waits until that is worked off too. Gives when each
/// died, by its id.
pub(super) async fn requeue_what_is_dead(fleet: &Fleet, place: &Place) -> BTreeMap<String, Time> {
    let address = fleet.gateways.borrow()[0].unwrap().private;
    let page = get(address, DEAD, &[]).await.json();
    let mut died = BTreeMap::new();
    for letter in page["dead"].as_array().unwrap() {
        let kind = sender::Kind::of(letter["event"]["externalid"].as_str().unwrap());
        assert_ne!(kind, sender::Kind::Good, "{letter}");
        let last = letter["attempts"].as_array().unwrap().last().unwrap();
        assert_eq!(last["attempt"], MAX_ATTEMPTS, "{letter}");
        let at = Time::parse(letter["died_at"].as_str().unwrap()).unwrap();
        died.insert(letter["event"]["id"].as_str().unwrap().to_owned(), at);
    }
    assert_eq!(died.len(), sender::poison(fleet.events), "{page}");
    fleet.healed.store(true, Ordering::SeqCst);
    let requeued = post(address, &format!("{DEAD}/requeue"), &JSON, br#"{"all":true}"#).await;
    assert_eq!(requeued.json(), json!({"requeued": died.len()}), "{requeued:?}");
    worked_off(fleet, place).await;
    died
}

/// What the gateway says of the consumer: all is done and nothing else.
pub(super) async fn all_is_done(fleet: &Fleet) {
    let address = fleet.gateways.borrow()[0].unwrap().private;
    let stands = get(address, "/v1/consumers/default", &[]).await.json();
    let counted =
        ["ready", "delayed", "leased", "dead", "done"].map(|state| stands[state].as_u64());
    let done = u64::try_from(fleet.events).unwrap();
    assert_eq!(counted, [0, 0, 0, 0, done].map(Some), "{stands}");
    let effects = get(address, "/v1/consumers/default/effects?state=in_doubt", &[]).await.json();
    assert_eq!(effects["effects"], json!([]));
}

/// Acks all of these once more; gives those that are done.
pub(super) async fn ack_again(fleet: &Fleet, receipts: Vec<String>) -> Vec<String> {
    let address = fleet.gateways.borrow()[0].unwrap().private;
    let mut done = vec![];
    for some in receipts.chunks(500) {
        let body = json!({"receipts": some}).to_string();
        let answer =
            post(address, "/v1/consumers/default/ack", &JSON, body.as_bytes()).await.json();
        let named = answer["done"].as_array().unwrap().iter();
        done.extend(named.map(|receipt| receipt.as_str().unwrap().to_owned()));
        let stale = answer["stale"].as_array().unwrap().len();
        assert_eq!(answer["done"].as_array().unwrap().len() + stale, some.len());
    }
    done
}
