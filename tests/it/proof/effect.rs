//! The boundary that no inbox can close: something was done outside and nobody recorded it. The
//! gateway is killed and the worker is gone between the two; what then comes back is in doubt, is
//! found out, and is not done twice.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::condition::until;
use crate::support::delivery::Delivery;
use crate::support::http::{Connection, Response, get, post};
use crate::support::place::{Kind, Place};

const CONSUMER: &str = "/v1/consumers/default";
const JSON: [(&str, &str); 1] = [("Content-Type", "application/json")];

/// What stands outside, such as a mail provider: how often it was asked to act, by key.
type Outside = HashMap<String, u32>;

async fn call(address: SocketAddr, name: &str, body: Value) -> Response {
    post(address, &format!("{CONSUMER}/{name}"), &JSON, body.to_string().as_bytes()).await
}

async fn claim(address: SocketAddr) -> Option<Value> {
    let claimed = call(address, "claim", json!({"max": 1, "lease": "1s"})).await.json();
    claimed["deliveries"].get(0).cloned()
}

async fn listed(address: SocketAddr, state: &str) -> Value {
    get(address, &format!("{CONSUMER}/effects?state={state}"), &[]).await.json()["effects"].clone()
}

/// The worker and the gateway die after the worker began, and before or after it has `acted`.
async fn reconciled(kind: Kind, acted: bool) {
    let place = Place::new(kind);
    let gateway = place.start();
    assert_eq!(Delivery::message("evt").send(gateway.public).await.status, 204);
    let lost = claim(gateway.private).await.unwrap();
    let key = format!("answer:{}", lost["event"]["id"].as_str().unwrap());
    let begin = |delivery: &Value| json!({"key": key, "receipt": delivery["receipt"]});
    let begun = call(gateway.private, "effects/begin", begin(&lost)).await;
    assert_eq!((begun.status, &begun.json()["state"]), (201, &json!("begun")));
    let lost_token = begun.json()["token"].clone();
    let mut outside = Outside::new();
    if acted {
        *outside.entry(key.clone()).or_default() += 1;
    }
    gateway.kill();

    let gateway = place.start();
    let address = gateway.private;
    let in_doubt = until("the lease runs out", async || {
        let listed = listed(address, "in_doubt").await;
        listed.get(0).cloned()
    })
    .await;
    assert_eq!((&in_doubt["key"], &in_doubt["event_id"]), (&json!(key), &lost["event"]["id"]));
    let again = claim(address).await.expect("the work is found again");
    assert_eq!(again["attempt"], 2);
    let told = call(address, "effects/begin", begin(&again)).await.json();
    assert_eq!((&told["state"], &told["begun_at"]), (&json!("in_doubt"), &in_doubt["begun_at"]));
    // What the lost worker knew is worth nothing any more.
    let late = json!({"key": key, "token": lost_token, "result": "late"});
    assert_eq!(call(address, "effects/finish", late).await.json()["code"], "stale_token");
    let late = call(address, "effects/begin", begin(&lost)).await;
    assert_eq!(late.json()["code"], "stale_receipt");

    let mut token = told["token"].clone();
    if !outside.contains_key(&key) {
        let abandon = json!({"key": key, "token": token});
        assert_eq!(call(address, "effects/abandon", abandon).await.status, 200);
        let begun = call(address, "effects/begin", begin(&again)).await;
        assert_eq!(begun.status, 201);
        token = begun.json()["token"].clone();
        *outside.entry(key.clone()).or_default() += 1;
    }
    let finish = json!({"key": key, "token": token, "result": {"sent": 1}});
    assert_eq!(call(address, "effects/finish", finish).await.status, 200);
    gateway.kill();

    // The same death between the record and the ack: it is known to have happened.
    let gateway = place.start();
    let address = gateway.private;
    let last = until("the lease runs out", async || claim(address).await).await;
    let told = call(address, "effects/begin", begin(&last)).await.json();
    assert_eq!(told, json!({"state": "finished", "result": {"sent": 1}}));
    let acked = call(address, "ack", json!({"receipts": [last["receipt"]]})).await.json();
    assert_eq!(acked["done"], json!([last["receipt"]]));
    assert_eq!(outside, Outside::from([(key, 1)]));
    assert_eq!(listed(address, "in_doubt").await, json!([]));
    gateway.terminate();
    assert_eq!(place.only_event().await.work[0].state, "done");
}

#[tokio::test]
async fn sqlite_after_the_act() {
    reconciled(Kind::Sqlite, true).await;
}

#[tokio::test]
async fn sqlite_before_the_act() {
    reconciled(Kind::Sqlite, false).await;
}

#[tokio::test]
async fn postgres_after_the_act() {
    reconciled(Kind::Postgres, true).await;
}

#[tokio::test]
async fn postgres_before_the_act() {
    reconciled(Kind::Postgres, false).await;
}

/// Events of the run, and workers on them.
const EVENTS: usize = 40;
const WORKERS: usize = 4;
/// Far longer than a worker takes from its claim to its act.
const LEASE: Duration = Duration::from_secs(2);
/// From a restart to the next kill, at the most.
const LONGEST_LIFE_MS: u64 = 300;

/// What the workers of a run share.
struct Run {
    /// Where the gateway is now.
    gateway: Mutex<SocketAddr>,
    outside: Mutex<Outside>,
}

impl Run {
    /// Makes a call; none if the gateway is not there, or does not answer, or not with 2xx.
    async fn call(&self, name: &str, body: Value) -> Option<Value> {
        let address = *self.gateway.lock().unwrap();
        let mut connection = Connection::try_open(address).await.ok()?;
        let (path, body) = (format!("{CONSUMER}/{name}"), body.to_string());
        let answer = connection.request("POST", &path, &JSON, body.as_bytes()).await?;
        (answer.status < 300).then(|| answer.json())
    }

    /// Works off one delivery as README says; none wherever the worker is cut short, by its own
    /// death or the gateway's.
    async fn work(&self) -> Option<()> {
        let claim = json!({"max": 1, "lease": "2s", "wait": "1s"});
        let claimed = Instant::now();
        let delivery = self.call("claim", claim).await?["deliveries"].get(0)?.clone();
        let key = delivery["event"]["id"].as_str()?.to_owned();
        let begin = json!({"key": key, "receipt": delivery["receipt"]});
        let mut told = self.call("effects/begin", begin.clone()).await?;
        let happened = self.outside.lock().unwrap().contains_key(&key);
        if told["state"] == "in_doubt" && !happened {
            self.call("effects/abandon", json!({"key": key, "token": told["token"]})).await?;
            told = self.call("effects/begin", begin).await?;
        }
        dies()?;
        if told["state"] == "begun" {
            // An act takes its time within the lease, or is not begun.
            (claimed.elapsed() < LEASE / 2).then_some(())?;
            *self.outside.lock().unwrap().entry(key.clone()).or_default() += 1;
            dies()?;
        }
        if told["state"] != "finished" {
            self.call("effects/finish", json!({"key": key, "token": told["token"]})).await?;
        }
        dies()?;
        self.call("ack", json!({"receipts": [delivery["receipt"]]})).await.map(drop)
    }
}

/// None in one of eight cases.
fn dies() -> Option<()> {
    (!rand::random_ratio(1, 8)).then_some(())
}

/// Gateway and workers die at random; every event is acted on once.
async fn at_random(kind: Kind, kills: u32) {
    let place = Place::new(kind);
    let mut gateway = place.start();
    for number in 0..EVENTS {
        let delivery = Delivery::message(&format!("{}-{number}", number % 10));
        assert_eq!(delivery.send(gateway.public).await.status, 204);
    }
    let run = Arc::new(Run { gateway: gateway.private.into(), outside: Mutex::default() });
    let workers: Vec<_> = (0..WORKERS)
        .map(|_| {
            let run = run.clone();
            tokio::spawn(async move {
                loop {
                    run.work().await;
                }
            })
        })
        .collect();
    for _ in 0..kills {
        // No wait for anything: the random moment is what is tested.
        tokio::time::sleep(Duration::from_millis(rand::random_range(0..LONGEST_LIFE_MS))).await;
        gateway.kill();
        gateway = place.start();
        *run.gateway.lock().unwrap() = gateway.private;
    }
    let address = gateway.private;
    let store = place.store().await;
    until("all events are acted on and done", async || {
        let unfinished = store.next_due("default").await.unwrap();
        let acted = run.outside.lock().unwrap().len() == EVENTS;
        (acted && unfinished.is_none()).then_some(())
    })
    .await;
    store.close().await;
    workers.iter().for_each(|worker| worker.abort());
    assert_eq!(listed(address, "in_doubt").await, json!([]));
    let outside = run.outside.lock().unwrap().clone();
    assert!(outside.values().all(|acts| *acts == 1), "{outside:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_at_random() {
    at_random(Kind::Sqlite, 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_at_random() {
    at_random(Kind::Postgres, 2).await;
}
