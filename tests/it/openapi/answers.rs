//! Every call, good and bad, against a real gateway: each answer is one that the document promises,
//! and each that it promises comes.

use std::net::SocketAddr;

use super::calls::{Client, Sent};
use super::document;
use super::refusals::{bad_calls, slow_bodies_and_foreign_pages};
use super::work::work;
use crate::support::delivery::{Delivery, message};
use crate::support::http::Response;
use crate::support::place::{Kind, MAIN, Place};

const TOKENS: &str = "
[[consumer]]
name = \"default\"
[[consumer]]
name = \"other\"
[[token]]
name = \"ops\"
value = { env = \"OPS\" }
role = \"operator\"
[[token]]
name = \"worker\"
value = { env = \"WORKER\" }
role = \"worker\"
consumers = [\"default\"]
";
pub(super) const OPS: &str = "ops-token";
pub(super) const WORKER: &str = "worker-token";

/// A small limit of bodies, to be over it cheaply.
fn place(kind: Kind) -> Place {
    let place = Place::with(kind, &format!("max_body = \"2KiB\"\n{MAIN}{TOKENS}"));
    place.env("OPS", OPS).env("WORKER", WORKER)
}

/// What reads, as an operator.
async fn reads(client: &mut Client<'_>) {
    for path in ["/healthz", "/readyz"] {
        assert_eq!(client.get("", path).await.status, 200);
    }
    for path in [
        "/v1/openapi.json",
        "/v1/sources",
        "/v1/gaps",
        "/v1/gaps?source=main&limit=1000",
        // What PostgreSQL's text cannot hold is found nowhere, and is no fault of ours.
        "/v1/gaps?source=%00",
        "/v1/events?channel=%00&source=%00&type=%00&conversation=%00",
        "/v1/conversations?channel=%00&source=%00",
        "/v1/conversations/messages?subject=%00",
    ] {
        assert_eq!(client.get(OPS, path).await.status, 200, "{path}");
    }
    let all = client.get(OPS, "/v1/events").await.json();
    assert!(all["events"].as_array().unwrap().len() >= 5 && all["next"].is_null(), "{all}");
    let page = client.get(OPS, "/v1/events?limit=1&order=asc").await.json();
    let next = page["next"].as_str().unwrap();
    let filters = "channel=whatsapp&source=main&type=unifyport.message.received&\
                   since=2020-01-01T00:00:00Z&until=2100-01-01T00:00:00%2B01:00";
    client.get(OPS, &format!("/v1/events?after={next}&order=desc&{filters}")).await;
    for event in all["events"].as_array().unwrap() {
        let path = format!("/v1/events/{}", event["event"]["id"].as_str().unwrap());
        for token in [OPS, WORKER] {
            assert_eq!(client.get(token, &path).await.status, 200);
            assert_eq!(client.get(token, &format!("{path}/raw")).await.status, 200);
        }
    }
    let conversations = client.get(OPS, "/v1/conversations?channel=whatsapp&source=main").await;
    let conversations = conversations.json();
    let subject = conversations["conversations"][0]["subject"].as_str().unwrap();
    let path = format!("/v1/conversations/messages?subject={subject}");
    let messages = client.get(OPS, &path).await.json();
    assert!(!messages["messages"].as_array().unwrap().is_empty(), "{messages}");
    client.get(OPS, &format!("{path}&order=desc&limit=1")).await;
    client.get(OPS, "/v1/conversations?limit=1").await;
}

/// The stream, as a client that has seen the first event.
async fn stream(client: &mut Client<'_>, address: SocketAddr) {
    const PATH: &str = "/v1/events/stream?channel=whatsapp";
    for seen in ["1x", "-1"] {
        let sent = Sent { token: OPS, headers: &[("Last-Event-ID", seen)], body: b"" };
        assert_eq!(client.call("GET", PATH, sent).await.status, 422);
    }
    let asked = reqwest::Client::new().get(format!("http://{address}{PATH}"));
    let asked = asked.bearer_auth(OPS).header("Last-Event-ID", "1");
    let mut answer = asked.send().await.unwrap();
    let mut text = Vec::new();
    while !text.ends_with(b"\n\n") {
        text.extend(answer.chunk().await.unwrap().expect("an event"));
    }
    let headers = answer.headers().iter();
    let headers =
        headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
    let status = answer.status().as_u16();
    client.judge("GET", PATH, &Response { status, headers: headers.collect(), body: vec![] });
    let text = String::from_utf8(text).unwrap();
    let data = text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
    client.fits("Item", &serde_json::from_str(data).unwrap());
}

async fn each_answer_is_documented_and_each_documented_one_comes(kind: Kind) {
    let place = place(kind);
    let gateway = place.start();
    for id in ["a-1", "b-1", "c-1", "a-2", "a-1"] {
        assert_eq!(Delivery::message(id).send(gateway.public).await.status, 204);
    }
    let conflict = message("a-1").iter().chain(b" ").copied().collect::<Vec<u8>>();
    for odd in [&conflict[..], b"not json", b"{}"] {
        assert_eq!(Delivery::new(odd).send(gateway.public).await.status, 204);
    }
    let document = document();
    let mut client = Client::new(&document, gateway.private);
    bad_calls(&mut client).await;
    reads(&mut client).await;
    stream(&mut client, gateway.private).await;
    work(&mut client).await;
    drop(gateway);

    let place = Place::with(Kind::Sqlite, &format!("body_timeout = \"20ms\"\n{MAIN}"));
    let gateway = place.start();
    slow_bodies_and_foreign_pages(&mut client, gateway.private).await;
    // Faults of ours, which have one form whatever was asked.
    assert_eq!(client.missing(&["500", "503"]), Vec::<String>::new());
}

#[tokio::test]
async fn each_answer_is_documented_and_each_documented_one_comes_on_sqlite() {
    each_answer_is_documented_and_each_documented_one_comes(Kind::Sqlite).await;
}

#[tokio::test]
async fn each_answer_is_documented_and_each_documented_one_comes_on_postgres() {
    each_answer_is_documented_and_each_documented_one_comes(Kind::Postgres).await;
}
