//! Workers that wait for work: woken soon whoever commits it, a thousand at a time, and in nobody's
//! way while they wait.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::condition::until;
use crate::support::delivery::Delivery;
use crate::support::http::{Connection, Response, head, post};
use crate::support::place::{Kind, MAIN, Place};
use crate::support::postgres;
use crate::support::process::Gateway;

const CLAIM: &str = "/v1/consumers/default/claim";
const JSON: (&str, &str) = ("Content-Type", "application/json");

async fn claim(address: SocketAddr, body: Value) -> Vec<Value> {
    let answer = post(address, CLAIM, &[JSON], body.to_string().as_bytes()).await;
    deliveries(&answer)
}

fn deliveries(answer: &Response) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["deliveries"].as_array().unwrap().clone()
}

async fn ack(address: SocketAddr, delivery: &Value) {
    let body = json!({"receipts": [delivery["receipt"]]}).to_string();
    let path = "/v1/consumers/default/ack";
    let answer = post(address, path, &[JSON], body.as_bytes()).await;
    assert_eq!(answer.json()["stale"], json!([]));
}

/// A claim under way, which the gateway has begun to read.
async fn waiting(address: SocketAddr, body: &str) -> Connection {
    let mut connection = Connection::open(address).await;
    let headers = [JSON, ("Expect", "100-continue")];
    connection.write(head("POST", CLAIM, &headers, body.len()).as_bytes()).await.unwrap();
    connection.interim().await;
    connection.write(body.as_bytes()).await.unwrap();
    connection
}

async fn woken_by_another_process(kind: Kind) {
    let place = Place::new(kind);
    let (gateway, other) = (place.start(), Place::on(&place.url, MAIN).start());
    let (mut waits, mut paces) = (vec![], vec![]);
    for round in 0..9 {
        let mut worker = waiting(gateway.private, r#"{"wait":"60s"}"#).await;
        let id = format!("{round}-elsewhere");
        let sent = Instant::now();
        assert_eq!(Delivery::message(&id).send(other.public).await.status, 204);
        paces.push(sent.elapsed());
        let committed = Instant::now();
        let claimed = deliveries(&worker.response().await.unwrap());
        waits.push(committed.elapsed());
        assert_eq!(claimed[0]["event"]["externalid"], id.as_str());
        ack(gateway.private, &claimed[0]).await;
    }
    waits.sort();
    paces.sort();
    println!("{kind:?}: a worker has another process's commit after {waits:?}");
    // By the machine's pace, because it may be busy with anything else.
    let limit = Duration::from_millis(250) + 4 * paces[4];
    assert!(waits[4] <= limit, "{waits:?}, while a delivery took {paces:?}");
}

#[tokio::test]
async fn a_worker_is_woken_by_another_process_on_sqlite() {
    woken_by_another_process(Kind::Sqlite).await;
}

#[tokio::test]
async fn a_worker_is_woken_by_another_process_on_postgres() {
    woken_by_another_process(Kind::Postgres).await;
}

const WORKERS: usize = 1000;

/// A message of a conversation of its own.
fn message(number: usize) -> Delivery {
    let conversation = json!({"id": number.to_string(), "type": "user"});
    let body = json!({
        "id": format!("evt_{number}"), "type": "message.received", "provider": "whatsapp",
        "account_id": "acc", "occurred_at": "2026-06-08T12:34:56Z",
        "data": {"conversation": conversation, "message": {"type": "text", "text": "hello"}},
    });
    Delivery::new(body.to_string())
}

/// How long each of these deliveries took to be answered 204, sorted.
async fn delivered(gateway: &Gateway, numbers: std::ops::Range<usize>) -> Vec<Duration> {
    let send = async |number: usize| {
        let begun = Instant::now();
        assert_eq!(message(number).send(gateway.public).await.status, 204);
        begun.elapsed()
    };
    let mut waits: Vec<_> = stream::iter(numbers).map(send).buffer_unordered(20).collect().await;
    waits.sort();
    waits
}

/// Connections of gateways to this place's database.
fn connections(place: &Place) -> usize {
    let (_, database) = place.url.rsplit_once('/').unwrap();
    let sql = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = '{database}'
         AND application_name = 'inboxd'"
    );
    postgres::shared().sql("postgres", &sql).parse().unwrap()
}

async fn a_thousand_wait(kind: Kind) {
    let place = Place::new(kind);
    let gateway = place.start();
    let address = gateway.private;
    let idle = delivered(&gateway, 0..100).await;
    let first = claim(address, json!({"max": 1000})).await;
    join_all(first.iter().map(|delivery| ack(address, delivery))).await;

    let body = r#"{"max":1,"wait":"60s"}"#;
    let workers = stream::iter(0..WORKERS).map(|_| waiting(address, body)).buffered(50);
    let workers: Vec<Connection> = workers.collect().await;
    // Claims take turns, so those before have had theirs; each waits after its second.
    for _ in 0..2 {
        assert_eq!(claim(address, json!({})).await.len(), 0);
    }
    if kind == Kind::Postgres {
        assert!((1..=12).contains(&connections(&place)), "{}", connections(&place));
    }
    let woken = tokio::spawn(join_all(workers.into_iter().map(|mut worker| async move {
        deliveries(&worker.response().await.expect("an answer"))
    })));
    let waits = delivered(&gateway, 1000..1000 + WORKERS).await;
    let claimed = woken.await.unwrap();
    let ids = claimed.iter().flatten().map(|one| one["event"]["externalid"].as_str().unwrap());
    let distinct: HashSet<&str> = ids.collect();
    assert!(claimed.iter().all(|one| one.len() == 1) && distinct.len() == WORKERS);
    if kind == Kind::Postgres {
        assert!(connections(&place) <= 12);
    }
    let half = |waits: &[Duration]| waits[waits.len() / 2];
    println!(
        "{kind:?}: deliveries answered after {:?} with nobody waiting, {:?} while {WORKERS} are \
         woken, at most {:?}",
        half(&idle),
        half(&waits),
        waits[waits.len() - 1]
    );
    assert!(half(&waits) < 20 * half(&idle) + Duration::from_millis(200), "{waits:?}");
    assert_eq!(gateway.terminate().code(), Some(0));
}

#[tokio::test]
async fn a_thousand_workers_wait_and_are_woken_on_sqlite() {
    a_thousand_wait(Kind::Sqlite).await;
}

#[tokio::test]
async fn a_thousand_workers_wait_and_are_woken_on_postgres() {
    a_thousand_wait(Kind::Postgres).await;
}

async fn gone_in_the_middle(kind: Kind) {
    let place = Place::new(kind);
    let gateway = place.start();
    let address = gateway.private;
    for number in 0..10 {
        let worker = waiting(address, r#"{"wait":"60s","lease":"200ms"}"#).await;
        let id = format!("{number}-left");
        // It goes before the event comes, or while it is told of it.
        if number % 2 == 0 {
            worker.reset();
            assert_eq!(Delivery::message(&id).send(gateway.public).await.status, 204);
        } else {
            assert_eq!(Delivery::message(&id).send(gateway.public).await.status, 204);
            worker.reset();
        }
        let claimed = claim(address, json!({"wait": "60s"})).await;
        assert_eq!(claimed[0]["event"]["externalid"], id.as_str());
        assert!(claimed[0]["attempt"].as_i64().unwrap() <= 2, "{claimed:?}");
        ack(address, &claimed[0]).await;
    }
    until("nothing is left", async || claim(address, json!({})).await.is_empty().then_some(()))
        .await;
}

#[tokio::test]
async fn a_worker_that_leaves_while_it_is_answered_costs_time_alone_on_sqlite() {
    gone_in_the_middle(Kind::Sqlite).await;
}

#[tokio::test]
async fn a_worker_that_leaves_while_it_is_answered_costs_time_alone_on_postgres() {
    gone_in_the_middle(Kind::Postgres).await;
}
