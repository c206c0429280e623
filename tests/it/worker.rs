//! The worker API as far as it goes: claim, ack, the long poll, roles, and what it refuses.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::condition::until;
use crate::support::delivery::Delivery;
use crate::support::http::{Response, get, post};
use crate::support::place::{Kind, MAIN, Place};

pub(crate) const CLAIM: &str = "/v1/consumers/default/claim";
pub(crate) const ACK: &str = "/v1/consumers/default/ack";

pub(crate) async fn call(address: SocketAddr, path: &str, body: Value) -> Response {
    call_as("", address, path, body).await
}

pub(crate) async fn call_as(token: &str, address: SocketAddr, path: &str, body: Value) -> Response {
    let bearer = format!("Bearer {token}");
    let headers = [("Content-Type", "application/json"), ("Authorization", &*bearer)];
    post(address, path, &headers, body.to_string().as_bytes()).await
}

pub(crate) fn deliveries(answer: &Response) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["deliveries"].as_array().unwrap().clone()
}

pub(crate) fn refused(answer: &Response, status: u16, code: &str, field: Option<&str>) {
    assert_eq!(answer.status, status, "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("application/problem+json"));
    let problem = answer.json();
    assert_eq!((&problem["code"], problem["field"].as_str()), (&json!(code), field));
}

async fn claimed_and_acked(kind: Kind) {
    let place = Place::new(kind);
    let gateway = place.start();
    // Two of one conversation and one of another.
    for id in ["a-1", "b-1", "a-2"] {
        assert_eq!(Delivery::message(id).send(gateway.public).await.status, 204);
    }
    let first = deliveries(&call(gateway.private, CLAIM, json!({"max": 1})).await);
    assert_eq!(first[0]["event"]["externalid"], "a-1");
    assert_eq!((&first[0]["attempt"], &first[0]["event"]["sequence"]), (&json!(1), &json!("1")));
    let second = deliveries(&call(gateway.private, CLAIM, json!({})).await);
    assert_eq!(second.len(), 1, "the rest of the conversation waits: {second:?}");
    assert_eq!(second[0]["event"]["externalid"], "b-1");

    let receipt = &first[0]["receipt"];
    for _ in 0..2 {
        let ack = json!({"receipts": [receipt, "AAAA", "never given"]});
        let acked = call(gateway.private, ACK, ack).await.json();
        assert_eq!(acked, json!({"done": [receipt], "stale": ["AAAA", "never given"]}));
    }
    let third = deliveries(&call(gateway.private, CLAIM, json!({"lease": "1ms"})).await);
    assert_eq!(third[0]["event"]["externalid"], "a-2");
    let again = until("the lease runs out", async || {
        let again = deliveries(&call(gateway.private, CLAIM, json!({"lease": "60s"})).await);
        again.first().cloned()
    })
    .await;
    assert_eq!((&again["attempt"], &again["event"]), (&json!(2), &third[0]["event"]));
    let late = json!({"receipts": [third[0]["receipt"], again["receipt"]]});
    let acked = call(gateway.private, ACK, late).await.json();
    assert_eq!(acked, json!({"done": [again["receipt"]], "stale": [third[0]["receipt"]]}));
    let left = json!({"receipts": [second[0]["receipt"]]});
    call(gateway.private, ACK, left).await;
    assert_eq!(deliveries(&call(gateway.private, CLAIM, json!({})).await).len(), 0);
    gateway.terminate();

    // Finished work stays finished, and its duplicate makes none.
    let gateway = place.start();
    assert_eq!(Delivery::message("a-1").send(gateway.public).await.status, 204);
    assert_eq!(deliveries(&call(gateway.private, CLAIM, json!({})).await).len(), 0);
}

#[tokio::test]
async fn what_is_claimed_and_acked_on_sqlite() {
    claimed_and_acked(Kind::Sqlite).await;
}

#[tokio::test]
async fn what_is_claimed_and_acked_on_postgres() {
    claimed_and_acked(Kind::Postgres).await;
}

async fn woken_by_a_commit(kind: Kind) {
    let place = Place::new(kind);
    let gateway = place.start();
    let address = gateway.private;
    let mut fastest = Duration::MAX;
    for round in 0..5 {
        let waiting = tokio::spawn(async move {
            let answer = call(address, CLAIM, json!({"wait": "30s"})).await;
            (deliveries(&answer), Instant::now())
        });
        let own = get(address, "/readyz", &[]).await;
        assert_eq!(own.status, 200);
        let id = format!("{round}-wakes");
        assert_eq!(Delivery::message(&id).send(gateway.public).await.status, 204);
        let answered = Instant::now();
        let (claimed, woken) = waiting.await.unwrap();
        assert_eq!(claimed[0]["event"]["externalid"], id.as_str());
        fastest = fastest.min(woken.saturating_duration_since(answered));
        call(address, ACK, json!({"receipts": [claimed[0]["receipt"]]})).await;
    }
    // The fastest of several, because the machine may be busy with anything else.
    assert!(fastest < Duration::from_millis(50), "woken after {fastest:?}");

    let begin = Instant::now();
    assert_eq!(deliveries(&call(address, CLAIM, json!({"wait": "200ms"})).await).len(), 0);
    assert!(begin.elapsed() >= Duration::from_millis(200));
}

#[tokio::test]
async fn a_worker_that_waits_is_woken_by_a_commit_on_sqlite() {
    woken_by_a_commit(Kind::Sqlite).await;
}

#[tokio::test]
async fn a_worker_that_waits_is_woken_by_a_commit_on_postgres() {
    woken_by_a_commit(Kind::Postgres).await;
}

#[tokio::test]
async fn what_the_worker_api_refuses() {
    let place = Place::new(Kind::Sqlite);
    let gateway = place.start();
    let address = gateway.private;
    let unknown = call(address, "/v1/consumers/nobody/claim", json!({})).await;
    refused(&unknown, 404, "unknown_consumer", None);
    let unknown = call(address, "/v1/consumers/nobody/ack", json!({"receipts": []})).await;
    refused(&unknown, 404, "unknown_consumer", None);

    let unknown = call(address, "/v1/consumers/%ff/claim", json!({})).await;
    refused(&unknown, 404, "not_found", None);

    let typo = call(address, CLAIM, json!({"maxx": 1})).await;
    refused(&typo, 422, "unknown_field", Some("maxx"));
    let typo = call(address, ACK, json!({"receipts": [], "receipt": "x"})).await;
    refused(&typo, 422, "unknown_field", Some("receipt"));
    for (body, field) in [
        (json!({"max": 0}), "max"),
        (json!({"max": 1001}), "max"),
        (json!({"max": "10"}), "max"),
        (json!({"max": 1.5}), "max"),
        (json!({"max": -1.0}), "max"),
        (json!({"max": 1e30}), "max"),
        (json!({"lease": "0s"}), "lease"),
        (json!({"lease": "13h"}), "lease"),
        (json!({"lease": 60}), "lease"),
        (json!({"wait": "61s"}), "wait"),
    ] {
        let answer = call(address, CLAIM, body).await;
        refused(&answer, 422, "invalid_value", Some(field));
    }
    let answer = call(address, CLAIM, json!([1])).await;
    refused(&answer, 422, "invalid_value", Some("body"));
    let answer = call(address, CLAIM, json!({"max": 10.0, "wait": null})).await;
    assert_eq!(deliveries(&answer).len(), 0);
    let answer = call(address, "/v1/consumers/default/claim?max=5", json!({})).await;
    refused(&answer, 422, "unknown_field", Some("max"));
    let answer = call(address, ACK, json!({})).await;
    refused(&answer, 422, "invalid_value", Some("receipts"));
    let answer = get(address, "/v1/events?chanel=x", &[]).await;
    refused(&answer, 422, "unknown_field", Some("chanel"));
    let answer = get(address, "/v1/events?limit=501", &[]).await;
    refused(&answer, 422, "invalid_value", Some("limit"));

    let answer = post(address, CLAIM, &[("Content-Type", "application/json")], b"{").await;
    refused(&answer, 400, "malformed_json", None);
    let answer = post(address, CLAIM, &[], b"{}").await;
    refused(&answer, 415, "not_json", None);
    let answer = get(address, CLAIM, &[]).await;
    refused(&answer, 405, "method_not_allowed", None);
    assert_eq!(answer.header("allow"), Some("POST"));
    for id in ["nothing", "%ff", "0190a5b0-0000-7000-8000-000000000000"] {
        for end in ["", "/raw"] {
            let answer = get(address, &format!("/v1/events/{id}{end}"), &[]).await;
            refused(&answer, 404, "not_found", None);
        }
    }
}

pub(crate) const TOKENS: &str = "
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
async fn what_each_role_may_do() {
    let place = Place::with(Kind::Sqlite, &format!("{MAIN}{TOKENS}"));
    let place = place.env("OPS", "ops-token").env("CRM", "crm-token").env("ANY", "any-token");
    let gateway = place.start();
    let address = gateway.private;
    assert_eq!(Delivery::message("evt_1").send(gateway.public).await.status, 204);
    let id = place.only_event().await.event.id;

    let claim = |consumer| format!("/v1/consumers/{consumer}/claim");
    for (token, crm, audit) in
        [("ops-token", 200, 200), ("any-token", 200, 200), ("crm-token", 200, 403), ("x", 401, 401)]
    {
        for (consumer, status) in [("crm", crm), ("audit", audit)] {
            let answer = call_as(token, address, &claim(consumer), json!({})).await;
            assert_eq!(answer.status, status, "{token} {consumer}");
            let ack = format!("/v1/consumers/{consumer}/ack");
            let answer = call_as(token, address, &ack, json!({"receipts": []})).await;
            assert_eq!(answer.status, status, "{token} {consumer}");
            for call in ["nack", "extend"] {
                let path = format!("/v1/consumers/{consumer}/{call}");
                let answer = call_as(token, address, &path, json!({"receipts": []})).await;
                assert_eq!(answer.status, status, "{token} {consumer} {call}");
            }
            let bearer = format!("Bearer {token}");
            let dead = format!("/v1/consumers/{consumer}/dead");
            let answer = get(address, &dead, &[("Authorization", &*bearer)]).await;
            assert_eq!(answer.status, status, "{token} {consumer} dead");
        }
    }
    let one = format!("/v1/events/{id}");
    let raw = format!("/v1/events/{id}/raw");
    for (token, events, operator) in
        [("ops-token", 200, 200), ("crm-token", 200, 403), ("any-token", 200, 403), ("", 401, 401)]
    {
        let bearer = format!("Bearer {token}");
        for (path, status) in
            [(&*one, events), (&raw, events), ("/v1/events", operator), ("/v1/sources", operator)]
        {
            let answer = get(address, path, &[("Authorization", &*bearer)]).await;
            assert_eq!(answer.status, status, "{token} {path}");
        }
    }
    let answer = get(address, "/v1/events", &[]).await;
    refused(&answer, 401, "unauthenticated", None);
    assert!(answer.header("www-authenticate").is_some());
    for path in ["/healthz", "/readyz"] {
        assert_eq!(get(address, path, &[]).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn an_open_listener_answers_this_machine_alone() {
    let place = Place::new(Kind::Sqlite);
    let gateway = place.start();
    let origin = [("Origin", "http://evil.example")];
    refused(&get(gateway.private, "/v1/events", &origin).await, 403, "origin_forbidden", None);
    let mut connection = crate::support::http::Connection::open(gateway.private).await;
    let request = b"GET /v1/events HTTP/1.1\r\nHost: evil.example\r\n\r\n";
    connection.write(request).await.unwrap();
    refused(&connection.response().await.unwrap(), 403, "host_forbidden", None);
    assert_eq!(get(gateway.private, "/v1/events", &[]).await.status, 200);
}
