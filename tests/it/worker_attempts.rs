//! Nack, extend and dead letters over HTTP.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::support::condition::until;
use crate::support::delivery::Delivery;
use crate::support::http::{get, post};
use crate::support::place::{Kind, MAIN, Place};
use crate::worker::{ACK, CLAIM, call, deliveries, refused};

const NACK: &str = "/v1/consumers/default/nack";
const EXTEND: &str = "/v1/consumers/default/extend";
const DEAD: &str = "/v1/consumers/default/dead";
/// A consumer whose second attempt is the last, and whose backoff is over at once.
const TWICE: &str = "[[consumer]]
name = \"default\"
max_attempts = 2
backoff = { first = \"1ms\", max = \"1ms\" }
";

async fn claim(address: SocketAddr) -> Vec<Value> {
    deliveries(&call(address, CLAIM, json!({})).await)
}

async fn given_up(kind: Kind) {
    let place = Place::with(kind, &format!("{MAIN}{TWICE}"));
    let gateway = place.start();
    let address = gateway.private;
    for id in ["a-1", "a-2", "b-1"] {
        assert_eq!(Delivery::message(id).send(gateway.public).await.status, 204);
    }
    let first = claim(address).await;
    let receipts: Vec<&Value> = first.iter().map(|delivery| &delivery["receipt"]).collect();
    let [a1, a2, b1] = receipts[..] else { panic!("{first:?}") };

    let body = json!({"receipts": [b1, "AAAA", b1], "lease": "10m"});
    let extended = call(address, EXTEND, body).await.json();
    assert_eq!(extended, json!({"extended": [b1, b1], "stale": ["AAAA"]}));

    let body =
        json!({"receipts": [a1, "never given", b1], "error": "the CRM is down", "delay": "0s"});
    let nacked = call(address, NACK, body).await.json();
    assert_eq!(nacked, json!({"requeued": [a1, b1], "dead": [], "stale": ["never given"]}));
    let body = json!({"receipts": [a1, a2]});
    let stale = json!({"requeued": [], "dead": [], "stale": [a1, a2]});
    assert_eq!(call(address, NACK, body.clone()).await.json(), stale, "both went back");
    let stale = json!({"extended": [], "stale": [a1, a2]});
    assert_eq!(call(address, EXTEND, body).await.json(), stale);

    let second = claim(address).await;
    let attempts: Vec<_> = second.iter().map(|delivery| &delivery["attempt"]).collect();
    assert_eq!(attempts, [2, 1, 2]);
    let (a1, a2, b1) = (&second[0]["receipt"], &second[1]["receipt"], &second[2]["receipt"]);
    let body = json!({"receipts": [a2], "dead": true, "error": "cannot be read"});
    let nacked = call(address, NACK, body).await.json();
    assert_eq!(nacked, json!({"requeued": [], "dead": [a2], "stale": []}));
    let nacked = call(address, NACK, json!({"receipts": [a1]})).await.json();
    assert_eq!(nacked, json!({"requeued": [], "dead": [a1], "stale": []}), "the last attempt");
    assert_eq!(claim(address).await, [Value::Null; 0]);

    let dead = get(address, DEAD, &[]).await.json();
    let letters = dead["dead"].as_array().unwrap();
    let ids: Vec<_> =
        letters.iter().filter_map(|letter| letter["event"]["externalid"].as_str()).collect();
    assert_eq!((ids, &dead["next"]), (vec!["a-1", "a-2"], &Value::Null));
    assert_eq!(letters[0]["event"], first[0]["event"]);
    assert_eq!(letters[0]["message"], first[0]["message"]);
    let attempts = letters[0]["attempts"].as_array().unwrap();
    assert_eq!((&attempts[0]["attempt"], &attempts[1]["attempt"]), (&json!(1), &json!(2)));
    assert_eq!(attempts[0]["error"], "the CRM is down");
    assert_eq!(attempts[1]["error"], "nacked");
    assert_eq!(attempts[1]["at"], letters[0]["died_at"]);
    assert_eq!(letters[1]["attempts"][0]["error"], "cannot be read");

    let page = get(address, &format!("{DEAD}?limit=1"), &[]).await.json();
    assert_eq!((&page["dead"][0], page["dead"].as_array().unwrap().len()), (&letters[0], 1));
    let next = page["next"].as_str().unwrap();
    let page = get(address, &format!("{DEAD}?limit=500&after={next}"), &[]).await.json();
    assert_eq!(page, json!({"dead": [letters[1]], "next": null}));

    let id = letters[0]["event"]["id"].as_str().unwrap();
    let detail = get(address, &format!("/v1/events/{id}"), &[]).await.json();
    let consumer = &detail["consumers"][0];
    assert_eq!(
        (&consumer["state"], &consumer["attempts"]),
        (&json!("dead"), &letters[0]["attempts"])
    );
    assert_eq!(consumer["finished_at"], letters[0]["died_at"]);

    let acked = call(address, ACK, json!({"receipts": [a1, b1]})).await.json();
    assert_eq!(acked, json!({"done": [b1], "stale": [a1]}));
    assert_eq!(place.events().await.len(), 3);
}

#[tokio::test]
async fn what_is_given_up_on_sqlite() {
    given_up(Kind::Sqlite).await;
}

#[tokio::test]
async fn what_is_given_up_on_postgres() {
    given_up(Kind::Postgres).await;
}

async fn comes_again_by_itself(kind: Kind) {
    let place = Place::new(kind);
    let gateway = place.start();
    let address = gateway.private;
    for id in ["a-1", "a-2"] {
        assert_eq!(Delivery::message(id).send(gateway.public).await.status, 204);
    }
    let first = claim(address).await;
    let waiting =
        tokio::spawn(
            async move { deliveries(&call(address, CLAIM, json!({"wait": "60s"})).await) },
        );
    // Nobody is called when a delay is over; whoever waits is given it all the same.
    let body = json!({"receipts": [first[0]["receipt"]], "delay": "300ms"});
    call(address, NACK, body).await;
    let again = waiting.await.unwrap();
    assert_eq!((&again[0]["event"], &again[0]["attempt"]), (&first[0]["event"], &json!(2)));
    assert_eq!((&again[1]["event"], &again[1]["attempt"]), (&first[1]["event"], &json!(1)));
    // Without a delay the backoff of one to two seconds comes first.
    let waiting =
        tokio::spawn(
            async move { deliveries(&call(address, CLAIM, json!({"wait": "60s"})).await) },
        );
    let body = json!({"receipts": [again[1]["receipt"], again[0]["receipt"]], "dead": false});
    let nacked = call(address, NACK, body).await.json();
    assert_eq!(nacked["requeued"].as_array().unwrap().len(), 2, "{nacked}");
    let again = waiting.await.unwrap();
    assert_eq!(again[0]["attempt"], json!(3));
    // A lease that is made short is over soon.
    let body = json!({"receipts": [again[0]["receipt"]], "lease": "1ms"});
    call(address, EXTEND, body).await;
    let last = until("the lease runs out", async || claim(address).await.first().cloned()).await;
    assert_eq!(last["attempt"], json!(4));
}

#[tokio::test]
async fn what_is_nacked_comes_again_by_itself_on_sqlite() {
    comes_again_by_itself(Kind::Sqlite).await;
}

#[tokio::test]
async fn what_is_nacked_comes_again_by_itself_on_postgres() {
    comes_again_by_itself(Kind::Postgres).await;
}

#[tokio::test]
async fn an_error_that_was_cut_amid_a_character_is_kept() {
    let place = Place::new(Kind::Sqlite);
    let gateway = place.start();
    let address = gateway.private;
    assert_eq!(Delivery::message("a-1").send(gateway.public).await.status, 204);
    let receipt = claim(address).await[0]["receipt"].clone();
    // As JavaScript writes the first half of an emoji.
    let body = format!(r#"{{"receipts":[{receipt}],"error":"no \ud83d","dead":true}}"#);
    let json = [("Content-Type", "application/json")];
    let nacked = post(address, NACK, &json, body.as_bytes()).await.json();
    assert_eq!(nacked, json!({"requeued": [], "dead": [receipt], "stale": []}));
    let dead = get(address, DEAD, &[]).await.json();
    assert_eq!(dead["dead"][0]["attempts"][0]["error"], "no \u{fffd}");
}

#[tokio::test]
async fn what_nack_extend_and_dead_refuse() {
    let place = Place::new(Kind::Sqlite);
    let gateway = place.start();
    let address = gateway.private;
    for path in ["nack", "extend"] {
        let path = format!("/v1/consumers/nobody/{path}");
        let unknown = call(address, &path, json!({"receipts": []})).await;
        refused(&unknown, 404, "unknown_consumer", None);
    }
    let unknown = get(address, "/v1/consumers/nobody/dead", &[]).await;
    refused(&unknown, 404, "unknown_consumer", None);
    for (path, body, field) in [
        (NACK, json!({}), "receipts"),
        (NACK, json!({"receipts": "x"}), "receipts"),
        (NACK, json!({"receipts": [], "delay": "31d"}), "delay"),
        (NACK, json!({"receipts": [], "delay": "-1s"}), "delay"),
        (NACK, json!({"receipts": [], "delay": 30}), "delay"),
        (NACK, json!({"receipts": [], "dead": "yes"}), "dead"),
        (NACK, json!({"receipts": [], "error": 5}), "error"),
        (EXTEND, json!({}), "receipts"),
        (EXTEND, json!({"receipts": [], "lease": "0s"}), "lease"),
        (EXTEND, json!({"receipts": [], "lease": "13h"}), "lease"),
    ] {
        let answer = call(address, path, body).await;
        refused(&answer, 422, "invalid_value", Some(field));
    }
    for (path, field) in [(NACK, "lease"), (EXTEND, "delay")] {
        let answer = call(address, path, json!({"receipts": [], field: "1s"})).await;
        refused(&answer, 422, "unknown_field", Some(field));
    }
    for (query, code, field) in [
        ("limit=0", "invalid_value", "limit"),
        ("limit=501", "invalid_value", "limit"),
        ("after=x", "invalid_value", "after"),
        ("order=asc", "unknown_field", "order"),
    ] {
        let answer = get(address, &format!("{DEAD}?{query}"), &[]).await;
        refused(&answer, 422, code, Some(field));
    }
    let answer = get(address, NACK, &[]).await;
    refused(&answer, 405, "method_not_allowed", None);
    let longest = json!({"receipts": [], "delay": "30d", "error": null, "dead": null});
    assert_eq!(call(address, NACK, longest).await.status, 200);
}
