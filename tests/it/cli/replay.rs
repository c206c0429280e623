//! `replay` and `dead requeue`.

use super::super::support::http::post;
use super::super::support::postgres;
use super::*;

const CONSUMERS: &str = "[[consumer]]\nname = \"crm\"\n[[consumer]]\nname = \"audit\"\n";

/// Finishes all work of the consumer that is due, or lets it run out of its leases.
async fn work(gateway: &Gateway, consumer: &str, finish: bool) {
    let json = [("Content-Type", "application/json")];
    let call = async |end: &str, body: Value| {
        let path = format!("/v1/consumers/{consumer}/{end}");
        post(gateway.private, &path, &json, body.to_string().as_bytes()).await.json()
    };
    let lease = if finish { "60s" } else { "1ms" };
    let claimed = call("claim", serde_json::json!({"max": 100, "lease": lease})).await;
    let claimed = claimed["deliveries"].as_array().unwrap().clone();
    assert!(!claimed.is_empty());
    if finish {
        let receipts: Vec<_> = claimed.iter().map(|one| &one["receipt"]).collect();
        call("ack", serde_json::json!({"receipts": receipts})).await;
    }
}

/// What the work of the only consumer with an event is.
fn state(home: &Home, number: &str) -> Value {
    let shown = inboxd(home, &["events", "show", number, "--json"]).json_lines();
    shown[0]["consumers"][0]["state"].clone()
}

/// A home whose inbox holds three deliveries, done, and where no gateway runs.
async fn done(home: Home) -> Home {
    let gateway = home.start();
    for (id, sender) in [("evt_1", "Ada"), ("evt_2", "Bob"), ("evt_3", "Ada")] {
        deliver(&home, &gateway, message(id, sender, "Hi").as_bytes());
    }
    work(&gateway, "default", true).await;
    assert!(gateway.terminate().success());
    home
}

async fn replayed(home: Home) {
    let home = done(home).await;
    let subject = "unifyport/main/acc/conversation/Ada";
    let said = inboxd(&home, &["replay", "--conversation", subject]).ok();
    assert_eq!(said, "2 events are due again for consumer default\n");
    assert_eq!(["1", "2", "3"].map(|number| state(&home, number)), ["ready", "done", "ready"]);
    let said = inboxd(&home, &["replay", "--all"]).ok();
    assert_eq!(said, "1 event is due again for consumer default\n");
    let json = inboxd(&home, &["replay", "--all", "--consumer", "default", "--json"]);
    assert_eq!(json.json_lines(), [serde_json::json!({"replayed": 0})]);
}

#[tokio::test]
async fn finished_work_is_due_again() {
    replayed(home()).await;
}

#[tokio::test]
async fn finished_work_is_due_again_on_postgres() {
    replayed(home().env("INBOXD_STORE_URL", &postgres::shared().create_database())).await;
}

#[tokio::test]
async fn events_are_named_by_id_number_or_filter() {
    let home = done(home()).await;
    let list = inboxd(&home, &["events", "list", "--json"]).json_lines();
    let id = list[0]["event"]["id"].as_str().unwrap();
    let none = "01939f5e-0000-7000-8000-000000000000";
    let json = inboxd(&home, &["replay", "--json", "--id", id, "--id", "1", "--id", none]);
    assert_eq!(json.json_lines(), [serde_json::json!({"replayed": 2})]);
    assert_eq!(["1", "2", "3"].map(|number| state(&home, number)), ["ready", "done", "ready"]);
    let json = inboxd(&home, &["replay", "--json", "--since", "1h", "--until", "1h"]);
    assert_eq!(json.json_lines(), [serde_json::json!({"replayed": 0})]);
    let json = inboxd(&home, &["replay", "--json", "--since", "1h", "--channel", "whatsapp"]);
    assert_eq!(json.json_lines(), [serde_json::json!({"replayed": 1})]);

    let error = inboxd(&home, &["replay", "--id", "9"]).failed(1);
    assert!(error.starts_with("there is no event with the number 9: "), "{error}");
    let error = inboxd(&home, &["replay", "--id", "nine"]).failed(2);
    assert!(error.contains("write the id of an event, or its number"), "{error}");
    let error = inboxd(&home, &["replay"]).failed(2);
    assert_eq!(error, "say which events by --id or by a filter such as --since, or say --all\n");
}

#[tokio::test]
async fn dead_work_is_requeued() {
    let home = home();
    home.configure(&format!("{ENDPOINT}[[consumer]]\nname = \"default\"\nmax_attempts = 1\n"));
    let gateway = home.start();
    for (id, sender) in [("evt_1", "Ada"), ("evt_2", "Bob")] {
        deliver(&home, &gateway, message(id, sender, "Hi").as_bytes());
    }
    work(&gateway, "default", false).await;
    until(async || {
        let json = [("Content-Type", "application/json")];
        post(gateway.private, "/v1/consumers/default/claim", &json, b"{}").await;
        (state(&home, "1") == "dead" && state(&home, "2") == "dead").then_some(())
    })
    .await;
    assert!(gateway.terminate().success());

    let error = inboxd(&home, &["dead", "requeue"]).failed(2);
    assert_eq!(error, "name the events by their ids or numbers, or say --all\n");
    let said = inboxd(&home, &["dead", "requeue", "2"]).ok();
    assert_eq!(said, "1 event is due again for consumer default\n");
    let json = inboxd(&home, &["dead", "requeue", "2", "1", "--json"]).json_lines();
    assert_eq!(json, [serde_json::json!({"requeued": 1})]);
    let said = inboxd(&home, &["dead", "requeue", "--all"]).ok();
    assert_eq!(said, "0 events are due again for consumer default\n");
    assert_eq!([state(&home, "1"), state(&home, "2")], ["ready", "ready"]);
}

#[tokio::test]
async fn several_consumers_must_be_told_apart() {
    let home = home();
    assert!(inboxd(&home, &["migrate"]).code == Some(0));
    let error = inboxd(&home, &["replay", "--all"]).failed(1);
    let none = "the store has no consumer; `inboxd serve` makes those of the configuration\n";
    assert_eq!(error, none);

    home.configure(&format!("{ENDPOINT}{CONSUMERS}"));
    let gateway = home.start();
    deliver(&home, &gateway, message("evt_1", "Ada", "Hi").as_bytes());
    for consumer in ["crm", "audit"] {
        work(&gateway, consumer, true).await;
    }
    for command in [&["replay", "--all"][..], &["dead", "requeue", "--all"]] {
        let error = inboxd(&home, command).failed(2);
        assert_eq!(error, "there are several consumers; say --consumer with one of: audit, crm\n");
        let other = inboxd(&home, &[command, &["--consumer", "crn"]].concat()).failed(1);
        assert_eq!(other, "there is no consumer \"crn\"; there is: audit, crm\n");
    }
    let said = inboxd(&home, &["replay", "--all", "--consumer", "crm"]).ok();
    assert_eq!(said, "1 event is due again for consumer crm\n");
    let shown = inboxd(&home, &["events", "show", "1", "--json"]).json_lines();
    let states = |at: usize| shown[0]["consumers"][at]["state"].clone();
    assert_eq!([states(0), states(1)], ["done", "ready"]);
}
