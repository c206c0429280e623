//! The end of a process: what is in flight is finished, what is idle does not hold it up, and a
//! second signal does not wait for anything.

use std::time::Duration;

use rustix::process::Signal;

use crate::support::condition::until;
use crate::support::delivery::Delivery;
use crate::support::disk::{Lock, SqliteLock};
use crate::support::http::{Connection, head};
use crate::support::place::{Kind, MAIN, Place};
use crate::support::process::Gateway;

/// Less than any timeout that could end the process by itself.
const SOON: Duration = Duration::from_secs(8);

fn drains(gateway: &Gateway) {
    gateway.log().wait_for(SOON, |line| line.contains("draining").then_some(()));
}

/// A delivery whose last bytes are still to come, taken up by the gateway already.
async fn half(gateway: &Gateway, delivery: &Delivery) -> Connection {
    let mut connection = Connection::open(gateway.public).await;
    connection.write(&delivery.clone().with("Expect", "100-continue").head()).await.unwrap();
    // It comes when the gateway begins to read the body.
    connection.interim().await;
    connection.write(&delivery.body[..10]).await.unwrap();
    connection
}

async fn finishes_what_is_in_flight(kind: Kind) {
    let place = Place::new(kind);
    let gateway = place.start();
    let delivery = Delivery::message("in-flight");

    let mut idle =
        [Connection::open(gateway.public).await, Connection::open(gateway.private).await];
    for connection in &mut idle {
        let answer = connection.request("GET", "/healthz", &[], b"").await.unwrap();
        assert_eq!(answer.status, 200);
    }
    let mut worker = Connection::open(gateway.private).await;
    let headers = [("Content-Type", "application/json"), ("Expect", "100-continue")];
    let body = br#"{"wait":"60s"}"#;
    let claim = head("POST", "/v1/consumers/default/claim", &headers, body.len());
    worker.write(claim.as_bytes()).await.unwrap();
    worker.interim().await;
    worker.write(body).await.unwrap();
    let mut sender = half(&gateway, &delivery).await;

    gateway.signal(Signal::TERM);
    drains(&gateway);
    until("nothing new is taken", async || {
        Connection::try_open(gateway.public).await.is_err().then_some(())
    })
    .await;
    for connection in &mut idle {
        assert!(connection.is_closed_by_peer().await);
    }
    let claimed = worker.response().await.unwrap();
    assert_eq!(claimed.status, 200);
    assert_eq!(claimed.json()["deliveries"].as_array().unwrap().len(), 0);
    sender.write(&delivery.body[10..]).await.unwrap();
    assert_eq!(sender.response().await.unwrap().status, 204);
    assert_eq!(gateway.wait(SOON).code(), Some(0));
    assert_eq!(place.only_event().await.event.body, delivery.body);
}

#[tokio::test]
async fn sigterm_finishes_what_is_in_flight_on_sqlite() {
    finishes_what_is_in_flight(Kind::Sqlite).await;
}

#[tokio::test]
async fn sigterm_finishes_what_is_in_flight_on_postgres() {
    finishes_what_is_in_flight(Kind::Postgres).await;
}

#[tokio::test]
async fn a_delivery_that_waits_for_the_store_is_committed_in_the_drain() {
    let place = Place::new(Kind::Sqlite);
    let gateway = place.start();
    let delivery = Delivery::message("waits");
    let lock = SqliteLock::hold(&place.file(), Lock::Immediate);
    let mut sender = half(&gateway, &delivery).await;
    sender.write(&delivery.body[10..]).await.unwrap();
    gateway.signal(Signal::INT);
    drains(&gateway);
    lock.release();
    assert_eq!(sender.response().await.unwrap().status, 204);
    assert_eq!(gateway.wait(SOON).code(), Some(0));
    assert_eq!(place.only_event().await.receipts, 1);
}

#[tokio::test]
async fn a_second_signal_stops_at_once() {
    for second in [Signal::TERM, Signal::INT] {
        let place = Place::new(Kind::Sqlite);
        let gateway = place.start();
        let mut sender = half(&gateway, &Delivery::message("never-whole")).await;
        gateway.signal(Signal::TERM);
        drains(&gateway);
        gateway.signal(second);
        let status = gateway.wait(SOON);
        assert_eq!(status.code(), Some(1), "an orderly end, and a failing one");
        assert!(sender.response().await.is_none());
        assert_eq!(place.events().await, []);
    }
}

#[tokio::test]
async fn a_drain_ends_with_its_grace() {
    let config = format!("shutdown_grace = \"200ms\"\n{MAIN}");
    let place = Place::with(Kind::Sqlite, &config);
    let gateway = place.start();
    let mut sender = half(&gateway, &Delivery::message("never-whole")).await;
    gateway.signal(Signal::TERM);
    gateway.wait(SOON);
    assert!(sender.response().await.is_none());
}
