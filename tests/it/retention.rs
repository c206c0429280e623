//! Old events are removed while a gateway runs, and it goes on as if nothing were.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::condition::until;
use crate::support::delivery::Delivery;
use crate::support::http::post;
use crate::support::place::{Kind, MAIN, Place, events};
use crate::support::process::Gateway;

const SHORT: &str = "[store]\nretention = \"1s\"\nidentity_retention = \"1h\"\n";

async fn call(gateway: &Gateway, call: &str, body: Value) -> Value {
    let path = format!("/v1/consumers/default/{call}");
    let headers = [("Content-Type", "application/json")];
    let answer = post(gateway.private, &path, &headers, body.to_string().as_bytes()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

async fn removed_while_it_runs(kind: Kind) {
    let place = Place::with(kind, &format!("{SHORT}{MAIN}"));
    let gateway = place.start();
    let sent = ["a-1", "b-2", "c-3", "d-4", "e-5"].map(Delivery::message);
    for delivery in &sent {
        assert_eq!(delivery.send(gateway.public).await.status, 204);
    }
    let claimed = call(&gateway, "claim", json!({"max": 3})).await;
    let claimed = claimed["deliveries"].as_array().unwrap();
    let receipts: Vec<&Value> = claimed.iter().map(|one| &one["receipt"]).collect();
    assert_eq!(receipts.len(), 3);
    call(&gateway, "ack", json!({"receipts": receipts})).await;
    let store = place.store().await;
    let left = until("what is finished is gone", async || {
        let left = events(store.as_ref()).await;
        (left.len() == 2).then_some(left)
    })
    .await;
    let left: Vec<&str> = left.iter().map(|one| &*one.attributes.external_id).collect();
    assert_eq!(left, ["d-4", "e-5"]);
    let told = |line: &str| line.contains("removed what is finished and old").then_some(());
    gateway.log().wait_for(Duration::from_secs(60), told);

    // All of them come again: as duplicates, whether they are there or not.
    for delivery in &sent {
        assert_eq!(delivery.send(gateway.public).await.status, 204);
    }
    let claimed = call(&gateway, "claim", json!({})).await;
    let claimed = claimed["deliveries"].as_array().unwrap();
    let ids: Vec<&Value> = claimed.iter().map(|one| &one["event"]["externalid"]).collect();
    assert_eq!(ids, ["d-4", "e-5"]);
    let receipts: Vec<&Value> = claimed.iter().map(|one| &one["receipt"]).collect();
    call(&gateway, "ack", json!({"receipts": receipts})).await;
    until("the inbox is empty", async || events(store.as_ref()).await.is_empty().then_some(()))
        .await;
    assert_eq!(store.audit().await.unwrap(), [""; 0]);
    store.close().await;
    assert_eq!(gateway.terminate().code(), Some(0));
}

#[tokio::test]
async fn what_is_finished_and_old_is_removed_on_sqlite() {
    removed_while_it_runs(Kind::Sqlite).await;
}

#[tokio::test]
async fn what_is_finished_and_old_is_removed_on_postgres() {
    removed_while_it_runs(Kind::Postgres).await;
}
