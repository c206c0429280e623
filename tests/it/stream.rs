//! Following the events by server-sent events, against the real process: nothing is missed, nothing
//! comes twice, whoever restarts in between.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::delivery::Delivery;
use crate::support::event_stream::{Block, EventStream};
use crate::support::http::get;
use crate::support::place::{Kind, MAIN, Place};
use crate::support::process::Gateway;

const STREAM: &str = "/v1/events/stream";

async fn deliver(gateway: &Gateway, ids: &[&str]) {
    for id in ids {
        assert_eq!(Delivery::message(id).send(gateway.public).await.status, 204);
    }
}

async fn resumes(kind: Kind) {
    let place = Place::new(kind);
    let gateway = place.start();
    deliver(&gateway, &["a-1", "a-2"]).await;
    let mut stream = EventStream::open(gateway.private, STREAM, None).await;
    assert_eq!(stream.header("content-type"), Some("text/event-stream"));
    assert_eq!(stream.header("cache-control"), Some("no-store"));
    deliver(&gateway, &["a-3"]).await;
    let (last, event) = stream.event().await.unwrap();
    assert_eq!(event["event"]["externalid"], "a-3", "only what comes from now on");
    assert_eq!(event["message"]["text"], "привет 👋");

    // The drain ends it in good order, and is not held up by it.
    gateway.signal(Signal::TERM);
    assert_eq!(stream.event().await, None);
    assert_eq!(gateway.wait(Duration::from_secs(8)).code(), Some(0));

    let gateway = place.start();
    deliver(&gateway, &["a-4", "b-5"]).await;
    let mut resumed = EventStream::open(gateway.private, STREAM, Some(last)).await;
    assert_eq!(resumed.names(2).await, ["a-4", "b-5"]);
    // The header goes before the address, with which a client comes back.
    let all = format!("{STREAM}?after=0");
    let mut whole = EventStream::open(gateway.private, &all, None).await;
    let mut again = EventStream::open(gateway.private, &all, Some(last)).await;
    deliver(&gateway, &["a-6", "a-2", "a-7"]).await;
    assert_eq!(resumed.names(2).await, ["a-6", "a-7"], "a duplicate is no event");
    assert_eq!(again.names(4).await, ["a-4", "b-5", "a-6", "a-7"]);
    assert_eq!(whole.names(7).await, ["a-1", "a-2", "a-3", "a-4", "b-5", "a-6", "a-7"]);
}

#[tokio::test]
async fn a_client_resumes_where_it_was_on_sqlite() {
    resumes(Kind::Sqlite).await;
}

#[tokio::test]
async fn a_client_resumes_where_it_was_on_postgres() {
    resumes(Kind::Postgres).await;
}

#[tokio::test]
async fn a_stream_is_filtered_and_goes_on_behind_what_does_not_match() {
    let second = MAIN.replace("main", "second");
    let place = Place::with(Kind::Sqlite, &format!("{MAIN}{second}"));
    let gateway = place.start();
    let conversation = "unifyport/main/acc_8c21d0/conversation/a";
    let filters = [
        ("source=main&conversation=".to_owned() + conversation, vec!["a-1", "a-4"]),
        ("source=second".to_owned(), vec!["b-3"]),
        (
            "channel=whatsapp&type=unifyport.message.received".to_owned(),
            vec!["a-1", "b-2", "b-3", "a-4"],
        ),
        ("type=unifyport.unknown".to_owned(), vec!["sha256:"]),
    ];
    let mut streams = vec![];
    for (filter, expected) in filters {
        let path = format!("{STREAM}?{filter}");
        streams.push((EventStream::open(gateway.private, &path, None).await, expected));
    }
    deliver(&gateway, &["a-1", "b-2"]).await;
    let to_second = Delivery::message("b-3").to("/webhooks/unifyport/second");
    assert_eq!(to_second.send(gateway.public).await.status, 204);
    deliver(&gateway, &["a-4"]).await;
    assert_eq!(Delivery::new("no JSON").send(gateway.public).await.status, 204);
    for (stream, expected) in &mut streams {
        let names = stream.names(expected.len()).await;
        let same = names.iter().zip(&*expected).all(|(name, start)| name.starts_with(start));
        assert!(same, "{names:?} {expected:?}");
    }
}

#[tokio::test]
async fn what_a_payload_holds_cannot_break_the_stream() {
    let place = Place::new(Kind::Sqlite);
    let gateway = place.start();
    let mut stream = EventStream::open(gateway.private, STREAM, None).await;
    let pretty = "{\r\n  \"id\": \"a\",\n\n\"data\":\r{\"text\": \"x\\n\\nid: 9\\ndata: y\u{2028}\", \"n\": 1.10}}\n";
    let bodies = [pretty.as_bytes(), b"id: 7\n\ndata: {}\n\n", b"\xff\n"];
    for body in bodies {
        assert_eq!(Delivery::new(body).send(gateway.public).await.status, 204);
    }
    for (number, body) in (1..).zip(bodies) {
        let (id, event) = stream.event().await.unwrap();
        assert_eq!(id, number);
        match serde_json::from_slice::<Value>(body) {
            Ok(json) => assert_eq!(event["event"]["data"], json),
            Err(_) => assert!(event["event"]["data_base64"].is_string(), "{event}"),
        }
    }
}

#[tokio::test]
async fn a_client_that_reads_late_gets_everything_in_order() {
    let place = Place::new(Kind::Sqlite);
    let gateway = place.start();
    let mut stream = EventStream::open(gateway.private, STREAM, None).await;
    let filling = "x".repeat(1 << 20);
    for number in 0..12 {
        let body = json!({"id": format!("{number}"), "filling": filling}).to_string();
        assert_eq!(Delivery::new(body).send(gateway.public).await.status, 204);
    }
    let expected: Vec<String> = (0..12).map(|number| number.to_string()).collect();
    let names = stream.names(12).await;
    assert_eq!(names, expected);
}

#[tokio::test]
async fn a_stream_without_events_shows_that_it_lives() {
    let place = Place::new(Kind::Sqlite);
    let gateway = place.start();
    let mut stream = EventStream::open(gateway.private, STREAM, None).await;
    assert_eq!(stream.block().await, Some(Block::Comment("keep-alive".to_owned())));
    deliver(&gateway, &["a-1"]).await;
    assert_eq!(stream.names(1).await, ["a-1"]);
}

/// Half of the rounds took at most so long, or a few times as long as a delivery on a machine that is
/// busy with anything else.
async fn half_within(limit: Duration, by: &Gateway, seen_at: &Gateway) {
    let mut stream = EventStream::open(seen_at.private, STREAM, None).await;
    let (mut waits, mut paces) = (vec![], vec![]);
    for round in 0..9 {
        let id = format!("{round}-{}", limit.as_millis());
        let sent = Instant::now();
        deliver(by, &[&id]).await;
        paces.push(sent.elapsed());
        let committed = Instant::now();
        assert_eq!(stream.names(1).await, [id]);
        waits.push(committed.elapsed());
    }
    waits.sort();
    paces.sort();
    println!("a stream shows a commit after {waits:?}");
    assert!(waits[4] <= limit + 4 * paces[4], "{waits:?}, while a delivery took {paces:?}");
}

#[tokio::test]
async fn a_commit_is_seen_at_once_and_another_process_is_seen_soon() {
    let place = Place::new(Kind::Postgres);
    let other = Place::on(&place.url, MAIN);
    let (gateway, other) = (place.start(), other.start());
    half_within(Duration::from_millis(50), &gateway, &gateway).await;
    half_within(Duration::from_millis(250), &other, &gateway).await;
}

#[tokio::test]
async fn what_a_stream_refuses() {
    let token = "[[token]]\nname = \"worker\"\nvalue = { env = \"WORKER\" }\nrole = \"worker\"\n";
    let place = Place::with(Kind::Sqlite, &format!("{MAIN}{token}")).env("WORKER", "worker-token");
    let gateway = place.start();
    let bearer = [("Authorization", "Bearer worker-token")];
    assert_eq!(get(gateway.private, STREAM, &bearer).await.status, 403);
    assert_eq!(get(gateway.private, STREAM, &[]).await.status, 401);

    let place = Place::new(Kind::Sqlite);
    let gateway = place.start();
    for (id, path, field) in [
        (Some("evt_1"), "", "Last-Event-ID"),
        (Some("-1"), "", "Last-Event-ID"),
        (Some(""), "", "Last-Event-ID"),
        (Some("99999999999999999999"), "?after=1", "Last-Event-ID"),
        (None, "?after=first", "after"),
        (None, "?chanel=telegram", "chanel"),
        (None, "?limit=5", "limit"),
    ] {
        let headers: Vec<_> = id.iter().map(|id| ("Last-Event-ID", *id)).collect();
        let answer = get(gateway.private, &format!("{STREAM}{path}"), &headers).await;
        assert_eq!((answer.status, &answer.json()["field"]), (422, &json!(field)), "{answer:?}");
    }
}
