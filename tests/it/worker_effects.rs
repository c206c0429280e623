//! Effects over HTTP: what begin, finish and abandon answer, the list, roles, and what is refused.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::support::delivery::Delivery;
use crate::support::http::{Response, get, post};
use crate::support::place::{Kind, MAIN, Place};

const EFFECTS: &str = "/v1/consumers/default/effects";
const KEY: &str = "answer:evt";

async fn call_as(token: &str, address: SocketAddr, path: &str, body: &str) -> Response {
    let bearer = format!("Bearer {token}");
    let headers = [("Content-Type", "application/json"), ("Authorization", &*bearer)];
    post(address, path, &headers, body.as_bytes()).await
}

async fn call(address: SocketAddr, name: &str, body: Value) -> Response {
    call_as("", address, &format!("{EFFECTS}/{name}"), &body.to_string()).await
}

/// The receipt of what is claimed next, with the event's id.
async fn claim(address: SocketAddr, lease: &str) -> (String, String) {
    let body = json!({"max": 1, "lease": lease, "wait": "30s"}).to_string();
    let claimed = call_as("", address, "/v1/consumers/default/claim", &body).await.json();
    let delivery = &claimed["deliveries"][0];
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&delivery["receipt"]), text(&delivery["event"]["id"]))
}

fn refused(answer: &Response, status: u16, code: &str, field: Option<&str>) {
    assert_eq!(answer.status, status, "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("application/problem+json"));
    let problem = answer.json();
    assert_eq!((&problem["code"], problem["field"].as_str()), (&json!(code), field));
}

async fn begun_reconciled_and_finished(kind: Kind) {
    let place = Place::new(kind);
    let gateway = place.start();
    let address = gateway.private;
    for id in ["a-1", "b-1"] {
        assert_eq!(Delivery::message(id).send(gateway.public).await.status, 204);
    }
    let (receipt, event) = claim(address, "1ms").await;
    let begin = json!({"key": KEY, "receipt": receipt});
    let begun = call(address, "begin", begin.clone()).await;
    let token = begun.json()["token"].clone();
    assert_eq!((begun.status, begun.json()), (201, json!({"state": "begun", "token": token})));
    let again = call(address, "begin", begin.clone()).await;
    assert_eq!((again.status, again.json()), (200, json!({"state": "begun", "token": token})));

    // For another event, which was due before the first one's lease ran out, as it has by now.
    let (second, other_event) = claim(address, "60s").await;
    let doubt = call(address, "begin", json!({"key": KEY, "receipt": second})).await;
    let told = doubt.json();
    assert_eq!((doubt.status, &told["state"]), (200, &json!("in_doubt")), "{doubt:?}");
    assert!(told["begun_at"].as_str().unwrap().ends_with('Z') && told["token"] != token);
    for (name, extra) in [("finish", json!({"result": 1})), ("abandon", json!({}))] {
        for old in [token.clone(), json!("AAAA"), json!("not base64!"), json!("")] {
            let mut body = json!({"key": KEY, "token": old});
            body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            refused(&call(address, name, body).await, 409, "stale_token", None);
        }
    }
    let list = get(address, &format!("{EFFECTS}?state=in_doubt"), &[]).await.json();
    let shown = json!({"key": KEY, "event_id": event, "begun_at": told["begun_at"],
                       "state": "in_doubt"});
    assert_eq!(list, json!({"effects": [shown], "next": null}));

    let abandon = json!({"key": KEY, "token": told["token"]});
    let abandoned = call(address, "abandon", abandon.clone()).await;
    assert_eq!((abandoned.status, abandoned.json()), (200, json!({"state": "abandoned"})));
    refused(&call(address, "abandon", abandon).await, 409, "stale_token", None);
    let begun = call(address, "begin", json!({"key": KEY, "receipt": second})).await;
    assert_eq!(begun.status, 201);
    let (third, _) = claim(address, "60s").await;
    let running = call(address, "begin", json!({"key": KEY, "receipt": third})).await;
    assert_eq!((running.status, running.json()), (200, json!({"state": "running"})));

    // Digits, order, repeated keys and spaces are the worker's own.
    let result = "{ \"n\":1.10, \"a\":12345678901234567890,\"n\":2,\"\\u0000\":\"\\ud800\" }";
    let token = begun.json()["token"].clone();
    let finish = format!(r#"{{"key":"{KEY}","token":{token},"result": {result} }}"#);
    for _ in 0..2 {
        let finished = call_as("", address, &format!("{EFFECTS}/finish"), &finish).await;
        assert_eq!((finished.status, finished.json()), (200, json!({"state": "finished"})));
    }
    let other = json!({"key": KEY, "token": token});
    refused(&call(address, "finish", other.clone()).await, 409, "stale_token", None);
    let told = call(address, "begin", json!({"key": KEY, "receipt": third})).await;
    let text = String::from_utf8(told.body.clone()).unwrap();
    assert_eq!((told.status, text), (200, format!(r#"{{"state":"finished","result":{result}}}"#)));
    let list = get(address, &format!("{EFFECTS}?state=finished"), &[]).await.json();
    assert_eq!(list["effects"][0]["event_id"], json!(other_event));
    assert!(list["effects"][0]["finished_at"].is_string(), "{list}");

    // A result that is left out, or null, is none.
    let none = json!({"key": "none", "receipt": third});
    let token = call(address, "begin", none.clone()).await.json()["token"].clone();
    for finish in [
        json!({"key": "none", "token": token}),
        json!({"key": "none", "token": token, "result": null}),
    ] {
        assert_eq!(call(address, "finish", finish).await.status, 200);
    }
    let told = call(address, "begin", none).await.json();
    assert_eq!(told, json!({"state": "finished", "result": null}));
    let list = get(address, &format!("{EFFECTS}?limit=1"), &[]).await.json();
    assert_eq!(list["effects"][0]["key"], KEY);
    let next = format!("{EFFECTS}?limit=1&after={}", list["next"].as_str().unwrap());
    let list = get(address, &next, &[]).await.json();
    assert_eq!((&list["effects"][0]["key"], &list["next"]), (&json!("none"), &Value::Null));
}

#[tokio::test]
async fn begun_reconciled_and_finished_on_sqlite() {
    begun_reconciled_and_finished(Kind::Sqlite).await;
}

#[tokio::test]
async fn begun_reconciled_and_finished_on_postgres() {
    begun_reconciled_and_finished(Kind::Postgres).await;
}

#[tokio::test]
async fn what_is_refused() {
    let place = Place::new(Kind::Sqlite);
    let gateway = place.start();
    let address = gateway.private;
    assert_eq!(Delivery::message("a-1").send(gateway.public).await.status, 204);
    let (receipt, _) = claim(address, "60s").await;
    for stale in ["", "AAAA", "never given", &format!("{receipt}A"), &"A".repeat(32)] {
        let answer = call(address, "begin", json!({"key": KEY, "receipt": stale})).await;
        refused(&answer, 409, "stale_receipt", None);
    }
    let long = "x".repeat(1025);
    for key in ["", "a\0b", &long] {
        for (name, other) in [("begin", "receipt"), ("finish", "token"), ("abandon", "token")] {
            let answer = call(address, name, json!({"key": key, other: "x"})).await;
            refused(&answer, 422, "invalid_value", Some("key"));
        }
    }
    let begin = json!({"key": &long[1..], "receipt": receipt});
    assert_eq!(call(address, "begin", begin).await.status, 201);
    let answer = call(address, "begin", json!({"key": KEY})).await;
    refused(&answer, 422, "invalid_value", Some("receipt"));
    let answer = call(address, "begin", json!({"key": KEY, "receipt": receipt, "token": 1})).await;
    refused(&answer, 422, "unknown_field", Some("token"));
    let answer = call(address, "abandon", json!({"key": KEY, "token": "x", "result": 1})).await;
    refused(&answer, 422, "unknown_field", Some("result"));
    let broken = format!(r#"{{"key":"{KEY}","token":"x","result":{{"a"}}}}"#);
    let answer = call_as("", address, &format!("{EFFECTS}/finish"), &broken).await;
    refused(&answer, 400, "malformed_json", None);
    for (query, field) in [
        ("state=begun", "state"),
        ("limit=0", "limit"),
        ("limit=501", "limit"),
        ("after=7", "after"),
    ] {
        let answer = get(address, &format!("{EFFECTS}?{query}"), &[]).await;
        refused(&answer, 422, "invalid_value", Some(field));
    }
    let answer = get(address, &format!("{EFFECTS}?stat=x"), &[]).await;
    refused(&answer, 422, "unknown_field", Some("stat"));
    let nobody = "/v1/consumers/nobody/effects";
    refused(&get(address, nobody, &[]).await, 404, "unknown_consumer", None);
    for (name, field) in [("begin", "receipt"), ("finish", "token"), ("abandon", "token")] {
        for given in [&*receipt, "never given"] {
            let body = json!({"key": KEY, field: given}).to_string();
            let answer = call_as("", address, &format!("{nobody}/{name}"), &body).await;
            refused(&answer, 404, "unknown_consumer", None);
        }
    }
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
";

#[tokio::test]
async fn a_worker_records_for_its_own_consumers() {
    let place = Place::with(Kind::Sqlite, &format!("{MAIN}{TOKENS}"));
    let place = place.env("OPS", "ops-token").env("CRM", "crm-token");
    let gateway = place.start();
    for (token, crm, audit) in [("ops-token", 200, 200), ("crm-token", 200, 403), ("x", 401, 401)] {
        for (consumer, status) in [("crm", crm), ("audit", audit)] {
            let path = format!("/v1/consumers/{consumer}/effects");
            let bearer = format!("Bearer {token}");
            let list = get(gateway.private, &path, &[("Authorization", &*bearer)]).await;
            assert_eq!(list.status, status, "{token} {consumer}");
            // Who may ask learns that what it names was never given.
            let status = if status == 200 { 409 } else { status };
            for (name, other) in [("begin", "receipt"), ("finish", "token"), ("abandon", "token")] {
                let body = json!({"key": "k", other: "x"}).to_string();
                let path = format!("{path}/{name}");
                let answer = call_as(token, gateway.private, &path, &body).await;
                assert_eq!(answer.status, status, "{token} {consumer} {name}");
            }
        }
    }
}
