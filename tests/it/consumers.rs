//! `GET /v1/consumers` on both stores, and consumers that the configuration names.

use std::net::SocketAddr;

use inboxd::consumer::Start;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::store::fixture::consumer;
use crate::support::condition::until;
use crate::support::delivery::Delivery;
use crate::support::http::{Response, get, post};
use crate::support::place::{Kind, MAIN, Place};

async fn call(address: SocketAddr, path: &str, body: Value) -> Value {
    let headers = [("Content-Type", "application/json")];
    post(address, path, &headers, body.to_string().as_bytes()).await.json()
}

async fn as_holder(token: &str, address: SocketAddr, path: &str) -> Response {
    get(address, path, &[("Authorization", &*format!("Bearer {token}"))]).await
}

fn names(answer: &Response) -> Vec<String> {
    assert_eq!(answer.status, 200, "{answer:?}");
    let consumers = answer.json()["consumers"].as_array().unwrap().clone();
    consumers.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
}

async fn shown(kind: Kind) {
    let place = Place::new(kind);
    let gateway = place.start();
    let address = gateway.private;
    for id in ["a-1", "a-2", "b-1", "c-1"] {
        assert_eq!(Delivery::message(id).send(gateway.public).await.status, 204);
    }
    let claimed = call(address, "/v1/consumers/default/claim", json!({"max": 2})).await;
    let receipt = &claimed["deliveries"][0]["receipt"];
    call(address, "/v1/consumers/default/ack", json!({"receipts": [receipt]})).await;
    let shown = until("the claim is noted", async || {
        let shown = get(address, "/v1/consumers/default", &[]).await.json();
        (!shown["last_claim_at"].is_null()).then_some(shown)
    })
    .await;
    let mut expected = json!({
        "name": "default", "ready": 2, "delayed": 0, "leased": 1, "done": 1, "dead": 0,
        "oldest_ready_seconds": shown["oldest_ready_seconds"],
        "paused": false, "filling": false, "ordering": "conversation", "lease": "1m",
        "max_attempts": 20, "backoff": {"first": "1s", "max": "15m"},
        "filter": {"channels": [], "sources": [], "types": []},
        "created_at": shown["created_at"], "last_claim_at": shown["last_claim_at"],
        "warning": null,
    });
    assert_eq!(shown, expected);
    assert!(shown["oldest_ready_seconds"].as_f64().unwrap() > 0.0);

    let store = place.store().await;
    store.add_consumer(consumer("all"), Start::Beginning).await.unwrap();
    store.pause_consumer("default", true).await.unwrap();
    let list = get(address, "/v1/consumers", &[]).await;
    assert_eq!(names(&list), ["all", "default"]);
    let (all, default) = (&list.json()["consumers"][0], &list.json()["consumers"][1]);
    assert_eq!((&all["filling"], &all["ready"]), (&json!(true), &json!(0)));
    expected["paused"] = json!(true);
    expected["oldest_ready_seconds"] = default["oldest_ready_seconds"].clone();
    assert_eq!(default, &expected);
    store.close().await;

    let unknown = get(address, "/v1/consumers/nobody", &[]).await;
    assert_eq!((unknown.status, &unknown.json()["code"]), (404, &json!("unknown_consumer")));
    gateway.terminate();

    // The next gateway fills it to the end, which nobody else does.
    let gateway = place.start();
    let claimed = until("it is filled", async || {
        let claimed = call(gateway.private, "/v1/consumers/all/claim", json!({})).await;
        Some(claimed["deliveries"].as_array()?.len()).filter(|count| *count > 0)
    })
    .await;
    assert_eq!(claimed, 4);
    assert_eq!(place.events().await.len(), 4);
}

#[tokio::test]
async fn how_a_consumer_stands_on_sqlite() {
    shown(Kind::Sqlite).await;
}

#[tokio::test]
async fn how_a_consumer_stands_on_postgres() {
    shown(Kind::Postgres).await;
}

const TOKENS: &str = "
[[consumer]]
name = \"crm\"
[[consumer]]
name = \"audit\"
[[token]]
name = \"ops\"
value = { env = \"OPS\" }
role = \"operator\"
[[token]]
name = \"crm-workers\"
value = { env = \"CRM\" }
role = \"worker\"
consumers = [\"crm\"]
[[token]]
name = \"workers\"
value = { env = \"ANY\" }
role = \"worker\"
";

#[tokio::test]
async fn a_worker_sees_its_own_consumers() {
    let place = Place::with(Kind::Sqlite, &format!("{MAIN}{TOKENS}"));
    let place = place.env("OPS", "ops-token").env("CRM", "crm-token").env("ANY", "any-token");
    let gateway = place.start();
    let address = gateway.private;
    for (token, list, audit) in [
        ("ops-token", &["audit", "crm"][..], 200),
        ("any-token", &["audit", "crm"], 200),
        ("crm-token", &["crm"], 403),
    ] {
        assert_eq!(names(&as_holder(token, address, "/v1/consumers").await), list, "{token}");
        let one = as_holder(token, address, "/v1/consumers/audit").await;
        assert_eq!(one.status, audit, "{token}");
        assert_eq!(as_holder(token, address, "/v1/consumers/crm").await.status, 200, "{token}");
    }
    assert_eq!(as_holder("x", address, "/v1/consumers").await.status, 401);
    let unknown = as_holder("crm-token", address, "/v1/consumers/nobody").await;
    assert_eq!(unknown.status, 403, "it does not learn who there is");
}

#[tokio::test]
async fn a_consumer_newly_named_in_the_configuration_begins_there() {
    let place = Place::new(Kind::Sqlite);
    let gateway = place.start();
    assert_eq!(Delivery::message("a-1").send(gateway.public).await.status, 204);
    place.home.configure(&format!("{MAIN}[[consumer]]\nname = \"crm\"\nlease = \"5m\"\n"));
    gateway.signal(Signal::HUP);
    let crm = until("the configuration is in force", async || {
        let crm = get(gateway.private, "/v1/consumers/crm", &[]).await;
        (crm.status == 200).then(|| crm.json())
    })
    .await;
    assert_eq!(
        (&crm["lease"], &crm["ready"], &crm["filling"]),
        (&json!("5m"), &json!(0), &json!(false))
    );
    assert_eq!(Delivery::message("a-2").send(gateway.public).await.status, 204);
    let list = get(gateway.private, "/v1/consumers", &[]).await;
    assert_eq!(names(&list), ["crm", "default"], "none is removed by not being named");
    let claimed = call(gateway.private, "/v1/consumers/crm/claim", json!({})).await;
    assert_eq!(claimed["deliveries"][0]["event"]["externalid"], "a-2");
}
