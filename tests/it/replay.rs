//! Replaying and requeueing over HTTP, and beside a gateway that runs.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::condition::until;
use crate::support::delivery::Delivery;
use crate::support::http::get;
use crate::support::place::{Kind, MAIN, Place};
use crate::support::process::Gateway;
use crate::worker::{ACK, CLAIM, TOKENS, call, call_as, deliveries, refused};

const REPLAY: &str = "/v1/consumers/default/replay";
const REQUEUE: &str = "/v1/consumers/default/dead/requeue";

/// A consumer whose work is dead after one attempt.
const ONCE: &str = "[[consumer]]\nname = \"default\"\nmax_attempts = 1\n";

fn ids(deliveries: &[Value]) -> Vec<&str> {
    deliveries.iter().map(|one| one["event"]["externalid"].as_str().unwrap()).collect()
}

async fn claim(address: SocketAddr) -> Vec<Value> {
    deliveries(&call(address, CLAIM, json!({})).await)
}

async fn ack(address: SocketAddr, deliveries: &[Value]) -> Value {
    let receipts: Vec<_> = deliveries.iter().map(|one| &one["receipt"]).collect();
    call(address, ACK, json!({"receipts": receipts})).await.json()
}

/// Delivers these and finishes them; gives what was claimed.
async fn finished(gateway: &Gateway, events: &[&str]) -> Vec<Value> {
    for id in events {
        assert_eq!(Delivery::message(id).send(gateway.public).await.status, 204);
    }
    let claimed = claim(gateway.private).await;
    assert_eq!(claimed.len(), events.len());
    ack(gateway.private, &claimed).await;
    claimed
}

async fn replayed(kind: Kind) {
    let place = Place::new(kind);
    let gateway = place.start();
    let address = gateway.private;
    let old = finished(&gateway, &["a-1", "b-1", "a-2"]).await;
    assert_eq!(claim(address).await.len(), 0);
    assert_eq!(Delivery::message("a-3").send(gateway.public).await.status, 204);

    let subject = &old[0]["event"]["subject"];
    let answer = call(address, REPLAY, json!({"conversation": subject})).await;
    assert_eq!((answer.status, answer.json()), (200, json!({"replayed": 2})));
    assert_eq!(ack(address, &old[..1]).await["done"], json!([]), "stale");
    let claimed = claim(address).await;
    assert_eq!(ids(&claimed), ["a-3", "a-1", "a-2"]);
    assert!(claimed.iter().all(|one| one["attempt"] == 1), "{claimed:?}");
    let answer = call(address, REPLAY, json!({})).await;
    assert_eq!(answer.json(), json!({"replayed": 1}), "what is leased stays so");
    assert_eq!(ids(&claim(address).await), ["b-1"]);
    ack(address, &claimed).await;

    let id = &old[0]["event"]["id"];
    let nobody = "0190a5b0-0000-7000-8000-000000000000";
    for (body, count) in [
        (json!({"ids": [id, nobody]}), 1),
        (json!({"ids": []}), 0),
        (json!({"channel": "telegram"}), 0),
        (
            json!({"source": "main", "type": "unifyport.message.received", "until": "2000-01-01T00:00:00Z"}),
            0,
        ),
        (json!({"since": "2000-01-01T00:00:00Z", "channel": "whatsapp", "ids": null}), 2),
    ] {
        let answer = call(address, REPLAY, body.clone()).await;
        assert_eq!(answer.json(), json!({"replayed": count}), "{body}");
    }
    gateway.terminate();
    let gateway = place.start();
    assert_eq!(ids(&claim(gateway.private).await), ["a-1", "a-2", "a-3"]);
}

#[tokio::test]
async fn what_is_replayed_on_sqlite() {
    replayed(Kind::Sqlite).await;
}

#[tokio::test]
async fn what_is_replayed_on_postgres() {
    replayed(Kind::Postgres).await;
}

/// Lets the work that is due run out of its one attempt.
async fn let_die(address: SocketAddr) {
    let taken = deliveries(&call(address, CLAIM, json!({"lease": "1ms"})).await);
    for one in &taken {
        let path = format!("/v1/events/{}", one["event"]["id"].as_str().unwrap());
        until("the work is dead", async || {
            // Whoever claims next finds that the lease ran out.
            assert_eq!(claim(address).await.len(), 0);
            let event = get(address, &path, &[]).await.json();
            (event["consumers"][0]["state"] == "dead").then_some(())
        })
        .await;
    }
}

async fn requeued(kind: Kind) {
    let place = Place::with(kind, &format!("{MAIN}{ONCE}"));
    let gateway = place.start();
    let address = gateway.private;
    let done = finished(&gateway, &["a-1"]).await;
    for id in ["a-2", "b-1", "c-1"] {
        assert_eq!(Delivery::message(id).send(gateway.public).await.status, 204);
    }
    let_die(address).await;
    let one = place.events().await[1].id.to_string();
    let answer = call(address, REQUEUE, json!({"ids": [one, done[0]["event"]["id"]]})).await;
    assert_eq!((answer.status, answer.json()), (200, json!({"requeued": 1})));
    let claimed = claim(address).await;
    assert_eq!((ids(&claimed), &claimed[0]["attempt"]), (vec!["a-2"], &json!(1)));
    let answer = call(address, REQUEUE, json!({"all": true})).await;
    assert_eq!(answer.json(), json!({"requeued": 2}));
    assert_eq!(call(address, REQUEUE, json!({"all": true})).await.json(), json!({"requeued": 0}));
    assert_eq!(ids(&claim(address).await), ["b-1", "c-1"]);
}

#[tokio::test]
async fn dead_work_is_requeued_on_sqlite() {
    requeued(Kind::Sqlite).await;
}

#[tokio::test]
async fn dead_work_is_requeued_on_postgres() {
    requeued(Kind::Postgres).await;
}

/// How long after `replay` was done a worker that waits had the work, in the fastest of several.
async fn woken_by(address: SocketAddr, first: &[Value], replay: impl AsyncFn()) -> Duration {
    let mut fastest = Duration::MAX;
    for _ in 0..5 {
        let waiting = tokio::spawn(async move {
            let answer = call(address, CLAIM, json!({"wait": "30s"})).await;
            (deliveries(&answer), Instant::now())
        });
        assert_eq!(get(address, "/readyz", &[]).await.status, 200);
        replay().await;
        let made = Instant::now();
        let (claimed, woken) = waiting.await.unwrap();
        assert_eq!(ids(&claimed), ids(first));
        fastest = fastest.min(woken.saturating_duration_since(made));
        ack(address, &claimed).await;
    }
    fastest
}

async fn a_worker_waits(kind: Kind) {
    let place = Place::new(kind);
    let gateway = place.start();
    let address = gateway.private;
    let first = finished(&gateway, &["a-1"]).await;
    let by_http = woken_by(address, &first, async || {
        let answer = call(address, REPLAY, json!({})).await;
        assert_eq!(answer.json(), json!({"replayed": 1}));
    });
    let took = by_http.await;
    assert!(took < Duration::from_millis(50), "woken after {took:?}");
    let by_command = woken_by(address, &first, async || {
        let mut command = place.home.command(&["replay", "--id", "1", "--json"]);
        let ran = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&ran.stdout), "{\"replayed\":1}\n", "{ran:?}");
    });
    let took = by_command.await;
    assert!(took < Duration::from_millis(250), "woken after {took:?}");
}

#[tokio::test]
async fn a_worker_that_waits_is_woken_by_a_replay_on_sqlite() {
    a_worker_waits(Kind::Sqlite).await;
}

#[tokio::test]
async fn a_worker_that_waits_is_woken_by_a_replay_on_postgres() {
    a_worker_waits(Kind::Postgres).await;
}

#[tokio::test]
async fn what_replays_refuse() {
    let place = Place::with(Kind::Sqlite, &format!("{MAIN}{TOKENS}"));
    let place = place.env("OPS", "ops-token").env("CRM", "crm-token").env("ANY", "any-token");
    let gateway = place.start();
    let address = gateway.private;
    for (end, body) in [("replay", json!({})), ("dead/requeue", json!({"all": true}))] {
        for (token, consumer, status) in [
            ("ops-token", "crm", 200),
            ("crm-token", "crm", 200),
            ("any-token", "audit", 200),
            ("crm-token", "audit", 403),
            ("", "crm", 401),
            ("ops-token", "nobody", 404),
        ] {
            let path = format!("/v1/consumers/{consumer}/{end}");
            let answer = call_as(token, address, &path, body.clone()).await;
            assert_eq!(answer.status, status, "{token} {path}");
        }
    }
    let replay = "/v1/consumers/crm/replay";
    let requeue = "/v1/consumers/crm/dead/requeue";
    let id = "0190a5b0-0000-7000-8000-000000000000";
    for (path, body, code, field) in [
        (replay, json!({"ids": [id, "x"]}), "invalid_value", "ids[1]"),
        (replay, json!({"ids": id}), "invalid_value", "ids"),
        (replay, json!({"ids": vec![id; 10_001]}), "invalid_value", "ids"),
        (replay, json!({"since": "yesterday"}), "invalid_value", "since"),
        (replay, json!({"until": 5}), "invalid_value", "until"),
        (replay, json!({"chanel": "x"}), "unknown_field", "chanel"),
        (replay, json!([]), "invalid_value", "body"),
        (requeue, json!({}), "invalid_value", "ids"),
        (requeue, json!({"ids": [id], "all": true}), "invalid_value", "all"),
        (requeue, json!({"all": false}), "invalid_value", "all"),
        (requeue, json!({"ids": [7]}), "invalid_value", "ids[0]"),
        (requeue, json!({"every": true}), "unknown_field", "every"),
    ] {
        let answer = call_as("ops-token", address, path, body).await;
        refused(&answer, 422, code, Some(field));
    }
    let answer = call_as("ops-token", address, replay, json!({"ids": vec![id; 10_000]})).await;
    assert_eq!(answer.json(), json!({"replayed": 0}));
}
