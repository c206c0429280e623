//! `consumers`: list, show, add, pause, resume, remove; and what `check` says of them.

use std::net::SocketAddr;

use serde_json::json;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection as _, SqliteConnection};

use super::super::support::http::{get, post};
use super::*;

const CRM: &str = "[[consumer]]\nname = \"crm\"\n";

/// What one claim of this consumer's work brings: the senders' ids.
async fn claim(address: SocketAddr, consumer: &str, body: Value) -> Vec<String> {
    let path = format!("/v1/consumers/{consumer}/claim");
    let headers = [("Content-Type", "application/json")];
    let answer = post(address, &path, &headers, body.to_string().as_bytes()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let deliveries = answer.json()["deliveries"].as_array().unwrap().clone();
    let id = |delivery: &Value| delivery["event"]["externalid"].as_str().unwrap().to_owned();
    deliveries.iter().map(id).collect()
}

fn messages(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|id| message(id, "Ada", "Hi")).collect()
}

/// A home whose inbox holds messages of one conversation with these ids.
fn inbox_of(ids: &[&str]) -> Home {
    let messages = messages(ids);
    inbox(&messages.iter().map(String::as_bytes).collect::<Vec<_>>())
}

/// What `consumers show --json` says.
fn show(home: &Home, name: &str) -> Value {
    inboxd(home, &["consumers", "show", name, "--json"]).json_lines().remove(0)
}

#[tokio::test]
async fn a_list_is_what_the_api_answers() {
    let home = inbox_of(&["a", "b"]);
    inboxd(&home, &["consumers", "add", "audit", "--channel", "telegram"]).ok();
    let gateway = home.start();
    assert_eq!(claim(gateway.private, "default", json!({"max": 1})).await, ["a"]);
    let api = until(async || {
        let mut api = get(gateway.private, "/v1/consumers", &[]).await.json();
        let noted = !api["consumers"][1]["last_claim_at"].is_null();
        // The one thing that the time alone changes.
        api["consumers"][1]["oldest_ready_seconds"].take().as_f64().filter(|_| noted)?;
        Some(api)
    })
    .await;
    let mut list = inboxd(&home, &["consumers", "list", "--json"]).json_lines().remove(0);
    assert!(list["consumers"][1]["oldest_ready_seconds"].take().as_f64().unwrap() > 0.0);
    assert_eq!(list, api);
    let mut one = show(&home, "default");
    assert!(one["oldest_ready_seconds"].take().is_f64());
    assert_eq!(one, api["consumers"][1]);
    let table = inboxd(&home, &["consumers", "list"]).ok();
    let lines: Vec<Vec<&str>> =
        table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0][..3], ["CONSUMER", "STATE", "READY"], "{table}");
    assert_eq!(lines[1], ["audit", "-", "0", "0", "0", "0", "0", "-"], "{table}");
    assert_eq!(lines[2][..7], ["default", "-", "1", "0", "1", "0", "0"], "{table}");
    assert!(table.lines().all(|line| line.len() <= 80), "{table}");
    let text = inboxd(&home, &["consumers", "show", "audit"]).ok();
    for row in ["ordering      conversation", "lease         1m", "filter        channels telegram"]
    {
        assert!(text.contains(row), "{row}\n{text}");
    }
    let unknown = inboxd(&home, &["consumers", "show", "nobody"]).failed(1);
    assert!(unknown.starts_with("the store knows no consumer \"nobody\"; "), "{unknown}");
}

#[tokio::test]
async fn a_consumer_can_begin_with_what_is_there() {
    let home = inbox_of(&["a", "b", "c"]);
    let added = inboxd(&home, &["consumers", "add", "crm", "--from", "beginning"]).ok();
    assert!(
        added.starts_with(
            "crm is added: 3 events of the inbox are its work, and so is what comes from now on\n\
             its settings stand in the store; a [[consumer]] table of this name in the configuration"
        ),
        "{added}"
    );
    let gateway = home.start();
    deliver(&home, &gateway, message("d", "Ada", "Hi").as_bytes());
    assert_eq!(claim(gateway.private, "crm", json!({})).await, ["a", "b", "c", "d"]);

    let added = inboxd(&home, &["consumers", "add", "late"]).ok();
    assert!(added.starts_with("late is added: its work is what comes from now on\n"), "{added}");
    let added = inboxd(&home, &["consumers", "add", "hour", "--from", "1h"]).ok();
    assert!(added.starts_with("hour is added: 4 events"), "{added}");
    let future = ["consumers", "add", "future", "--from", "2999-01-01T00:00:00Z"];
    let added = inboxd(&home, &future).ok();
    assert!(added.starts_with("future is added: 0 events"), "{added}");
    deliver(&home, &gateway, message("e", "Ada", "Hi").as_bytes());
    assert_eq!(claim(gateway.private, "late", json!({"wait": "30s"})).await, ["e"]);

    let taken = inboxd(&home, &["consumers", "add", "crm", "--lease", "9s"]).failed(1);
    assert!(
        taken.starts_with("there is a consumer crm already, which is left as it is"),
        "{taken}"
    );
    assert_eq!(show(&home, "crm")["lease"], "1m");
}

#[test]
fn settings_are_checked_as_in_the_configuration() {
    let home = inbox_of(&[]);
    let all = "consumers add crm --ordering none --lease 2m30s --max-attempts 7 --backoff-first 5s \
               --backoff-max 1h --channel a --channel b --source main --type t";
    inboxd(&home, &all.split_whitespace().collect::<Vec<_>>()).ok();
    let crm = show(&home, "crm");
    let expected = json!({
        "ordering": "none", "lease": "2m30s", "max_attempts": 7,
        "backoff": {"first": "5s", "max": "1h"},
        "filter": {"channels": ["a", "b"], "sources": ["main"], "types": ["t"]},
    });
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&crm[key], value, "{key}");
    }
    for wrong in [
        &["Crm"][..],
        &["x", "--ordering", "some"],
        &["x", "--lease", "0s"],
        &["x", "--lease", "13h"],
        &["x", "--lease", "60"],
        &["x", "--max-attempts", "0"],
        &["x", "--max-attempts", "1000001"],
        &["x", "--backoff-first", "0s"],
        &["x", "--backoff-first", "1h"],
        &["x", "--channel", ""],
        &["x", "--from", "yesterday"],
    ] {
        let error = inboxd(&home, &[&["consumers", "add"], wrong].concat()).failed(2);
        assert!(!error.is_empty(), "{wrong:?}");
    }
    let list = inboxd(&home, &["consumers", "list", "--json"]).json_lines().remove(0);
    assert_eq!(list["consumers"].as_array().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_holds_at_once_and_lasts_over_a_restart() {
    let home = inbox_of(&["a", "b"]);
    let gateway = home.start();
    let paused = inboxd(&home, &["consumers", "pause", "default"]).ok();
    assert!(paused.starts_with("default rests: its claims are empty from now on"), "{paused}");
    assert_eq!(claim(gateway.private, "default", json!({})).await, [""; 0]);
    deliver(&home, &gateway, message("c", "Ada", "Hi").as_bytes());
    gateway.terminate();
    let gateway = home.start();
    assert_eq!(claim(gateway.private, "default", json!({})).await, [""; 0]);
    let table = inboxd(&home, &["consumers", "list"]).ok();
    assert!(table.lines().nth(1).unwrap().starts_with("default   paused      3"), "{table}");

    // A worker that waits is called when it ends.
    let address = gateway.private;
    let waiting =
        tokio::spawn(async move { claim(address, "default", json!({"wait": "60s"})).await });
    let resumed = inboxd(&home, &["consumers", "resume", "default"]).ok();
    assert_eq!(resumed, "default goes on: what waits for it can be claimed\n");
    assert_eq!(waiting.await.unwrap(), ["a", "b", "c"]);
    let unknown = inboxd(&home, &["consumers", "pause", "nobody"]).failed(1);
    assert!(unknown.starts_with("the store knows no consumer \"nobody\""), "{unknown}");
}

#[tokio::test]
async fn a_consumer_is_removed_only_when_that_is_meant_and_lasts() {
    let home = inbox_of(&["a", "b"]);
    let refused = inboxd(&home, &["consumers", "remove", "default", "--yes"]).failed(1);
    assert!(refused.starts_with("the configuration has the consumer default, as it has"));
    home.configure(&format!("{ENDPOINT}{CRM}"));
    let gateway = home.start();
    let refused = inboxd(&home, &["consumers", "remove", "crm", "--yes"]).failed(1);
    assert!(refused.starts_with("the configuration still names crm: take its [[consumer]]"));

    let asked = inboxd(&home, &["consumers", "remove", "default"]).failed(1);
    assert!(
        asked.starts_with(
            "nothing is removed: with default would go 2 unfinished and 0 dead pieces of its work; \
             say --yes"
        ),
        "{asked}"
    );
    assert_eq!(claim(gateway.private, "default", json!({"max": 1})).await, ["a"]);
    let removed = inboxd(&home, &["consumers", "remove", "default", "--yes"]).ok();
    assert_eq!(
        removed,
        "default is removed, and with it 2 unfinished and 0 dead pieces of its work; the events stay \
         in the inbox\n"
    );
    let gone = post(
        gateway.private,
        "/v1/consumers/default/claim",
        &[("Content-Type", "application/json")],
        b"{}",
    );
    assert_eq!(gone.await.status, 404);
    let unknown = inboxd(&home, &["consumers", "remove", "default", "--yes"]).failed(1);
    assert!(unknown.starts_with("the store knows no consumer \"default\""), "{unknown}");
    assert_eq!(inboxd(&home, &["events", "list", "--json"]).json_lines().len(), 2);
    inboxd(&home, &["check"]).ok();
}

#[tokio::test]
async fn who_is_not_claimed_from_is_pointed_out() {
    let home = inbox_of(&["a", "b"]);
    let options = SqliteConnectOptions::new().filename(home.dir().join("inboxd.db"));
    let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
    let sql = "UPDATE consumers SET created_at = created_at - 7200000000";
    sqlx::query(sql).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();

    let words = "2 events wait for the consumer default and nobody has ever claimed from it";
    let check = inboxd(&home, &["check"]).ok();
    assert!(check.contains(&format!("consumers      note: {words}")), "{check}");
    let list = inboxd(&home, &["consumers", "list"]).ok();
    assert!(list.contains(&format!("\n\n{words}")), "{list}");
    let gateway = home.start();
    let said = |line: &str| {
        let line: Value = serde_json::from_str(line).ok()?;
        line["message"].as_str()?.starts_with(words).then(|| line["level"] == "WARN")
    };
    assert_eq!(gateway.log().find(Duration::from_secs(60), said), Some(true));
    let api = get(gateway.private, "/v1/consumers/default", &[]).await.json();
    assert!(api["warning"].as_str().unwrap().starts_with(words), "{api}");
    claim(gateway.private, "default", json!({})).await;
    until(async || {
        let api = get(gateway.private, "/v1/consumers/default", &[]).await.json();
        api["warning"].is_null().then_some(())
    })
    .await;
}
