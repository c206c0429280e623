//! Conversations over HTTP: of both receivers in one list, and each over time.

use std::net::SocketAddr;

use inboxd::simulate::bot_api::update::{DATE, Update};
use inboxd::simulate::bot_api::{FakeBotApi, Options, token};
use serde_json::{Value, json};

use crate::support::condition::until;
use crate::support::delivery::Delivery;
use crate::support::http::{Response, get};
use crate::support::place::{Kind, MAIN, Place};

const BOT: i64 = 4242;
const ACCOUNT: &str = "acc_8c21d0";

/// One consumer of everything, one of what comes by UnifyPort.
const CONSUMERS: &str = "
[[consumer]]
name = \"a\"
[[consumer]]
name = \"b\"
filter = { channels = [\"whatsapp\"] }
";

/// A delivery of this type about conversation `chat`.
fn delivery(id: &str, event_type: &str, chat: &str, message: Value) -> Delivery {
    let body = json!({
        "id": id, "type": event_type, "provider": "whatsapp", "account_id": ACCOUNT,
        "occurred_at": "2026-06-08T12:34:56Z",
        "data": {
            "conversation": {"id": chat, "type": "user", "title": format!("Chat {chat}")},
            "sender": {"id": chat, "name": "Jordan"}, "message": message,
        },
    });
    Delivery::new(body.to_string()).with("X-Device-Event-Id", id)
}

fn subject(chat: &str) -> String {
    format!("unifyport/main/{ACCOUNT}/conversation/{chat}")
}

async fn send(address: SocketAddr, delivery: Delivery) {
    assert_eq!(delivery.send(address).await.status, 204);
}

async fn read(address: SocketAddr, path: &str) -> Value {
    let answer = get(address, path, &[]).await;
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    answer.json()
}

async fn messages(address: SocketAddr, subject: &str, more: &str) -> Value {
    read(address, &format!("/v1/conversations/messages?subject={subject}{more}")).await
}

/// A line for each entry: kind, id and text, `*` if it was edited, `-` if it was deleted.
fn lines(messages: &Value) -> Vec<String> {
    let line = |entry: &Value| {
        let text = |member: &str| entry[member].as_str().unwrap_or_default().to_owned();
        let edited = if entry["edited_at"].is_null() { "" } else { "*" };
        let deleted = if entry["deleted"] == true { "-" } else { "" };
        format!("{} {} {}{edited}{deleted}", text("kind"), text("message_id"), text("text"))
    };
    messages["messages"].as_array().unwrap().iter().map(line).collect()
}

async fn both_receivers_are_merged(kind: Kind) {
    let fake = FakeBotApi::start(Options::default()).await.unwrap();
    fake.add_bot(BOT, &token::example(BOT));
    let bot = format!(
        "[[telegram]]\nname = \"support\"\ntoken = {{ env = \"BOT_TOKEN\" }}\napi_url = \"{}\"\n",
        fake.api_url()
    );
    let place = Place::with(kind, &format!("{bot}{MAIN}{CONSUMERS}"));
    let place = place.env("BOT_TOKEN", &token::example(BOT));
    let gateway = place.start();
    let (public, address) = (gateway.public, gateway.private);

    let text = json!({"id": "m1", "type": "text", "text": "Hi", "direction": "inbound"});
    send(public, delivery("e1", "message.received", "1", text)).await;
    send(public, Delivery::new("signed, but no JSON")).await;
    fake.push(BOT, &Update::text(7, 50, "Is it open?"));
    let photo = json!({"message_id": 51, "date": DATE, "from": {"id": 7, "first_name": "Ada"},
        "chat": {"id": 7, "type": "private", "first_name": "Ada"},
        "photo": [{"file_id": "small"}, {"file_id": "large"}]});
    fake.push(BOT, &Update::new("message", &photo));
    let edit = json!({"message_id": 50, "date": DATE, "edit_date": DATE + 9, "text": "Is it still open?",
        "from": {"id": 7, "first_name": "Ada"},
        "chat": {"id": 7, "type": "private", "first_name": "Ada"}});
    fake.push(BOT, &Update::new("edited_message", &edit));
    fake.push(
        BOT,
        &Update::new(
            "callback_query",
            &json!({"id": "q", "from": {"id": 7},
        "data": "yes", "message": {"message_id": 51, "date": 0, "chat": {"id": 7}}}),
        ),
    );
    let list = until("all updates are there", async || {
        let list = read(address, "/v1/conversations").await;
        let first = list["conversations"][0].clone();
        (first["channel"] == "telegram" && first["unfinished"] == 4).then_some(list)
    })
    .await;

    let telegram = format!("telegram/{BOT}/chat/7");
    let conversations = list["conversations"].as_array().unwrap();
    assert_eq!((conversations.len(), &list["next"]), (2, &Value::Null), "{list}");
    let (first, second) = (&conversations[0], &conversations[1]);
    assert_eq!(first["subject"], telegram);
    assert_eq!(first["account"], BOT.to_string());
    assert_eq!(first["source"], "support");
    assert_eq!(
        first["conversation"],
        json!({"id": "7", "type": "private", "title": "Ada"}),
        "of an event before the latest, which has no title"
    );
    assert_eq!(first["last"]["kind"], "edit", "the latest that says something");
    assert_eq!(first["last"]["text"], "Is it still open?");
    assert_eq!(second["subject"], subject("1"));
    assert_eq!(second["channel"], "whatsapp");
    assert_eq!(second["account"], ACCOUNT);
    assert_eq!(second["source"], "main");
    assert_eq!(second["conversation"]["title"], "Chat 1");
    assert_eq!(second["last"]["text"], "Hi");
    assert_eq!(second["last"]["direction"], "inbound");
    assert_eq!(second["last"]["type"], "unifyport.message.received");
    assert_eq!(second["last"]["receivedat"], second["last_received_at"]);
    assert_eq!(second["unfinished"], 2, "of both consumers");

    for (query, found) in [
        ("?channel=telegram", &[&telegram][..]),
        ("?source=main", &[&subject("1")]),
        ("?source=main&channel=telegram", &[]),
        ("?limit=1", &[&telegram]),
    ] {
        let list = read(address, &format!("/v1/conversations{query}")).await;
        let subjects: Vec<_> = list["conversations"].as_array().unwrap().iter().collect();
        let subjects: Vec<_> =
            subjects.iter().map(|one| one["subject"].as_str().unwrap()).collect();
        assert_eq!(subjects, found, "{query}");
        if query == "?limit=1" {
            let next = list["next"].as_str().unwrap();
            let rest = read(address, &format!("/v1/conversations?limit=1&after={next}")).await;
            assert_eq!(rest["conversations"][0]["subject"], subject("1"));
        }
    }

    let timeline = messages(address, &telegram, "").await;
    let expected = ["message 50 Is it still open?*", "message 51 ", "callback 51 yes"];
    assert_eq!(lines(&timeline), expected);
    let edited = &timeline["messages"][0];
    assert_eq!(edited["edited_at"], "2026-09-21T14:13:29Z");
    assert_eq!((&edited["deleted"], &edited["deleted_at"]), (&json!(false), &Value::Null));
    assert_eq!(edited["type"], "telegram.message");
    assert_eq!(timeline["messages"][1]["attachments"][0]["ref"], "large");
    let one = format!("/v1/events/{}", edited["event_id"].as_str().unwrap());
    let one = read(address, &one).await;
    assert_eq!(one["event"]["sequence"], edited["sequence"]);
    assert_eq!(one["message"]["text"], "Is it open?", "the event itself is what it was");
    assert_eq!(fake.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn both_receivers_are_merged_on_sqlite() {
    both_receivers_are_merged(Kind::Sqlite).await;
}

#[tokio::test]
async fn both_receivers_are_merged_on_postgres() {
    both_receivers_are_merged(Kind::Postgres).await;
}

/// All pages of a conversation, `size` events each.
async fn paged(address: SocketAddr, chat: &str, size: usize, order: &str) -> Vec<String> {
    let mut seen = Vec::new();
    let mut after = String::new();
    loop {
        let more = format!("&limit={size}&order={order}{after}");
        let page = messages(address, &subject(chat), &more).await;
        seen.extend(lines(&page));
        let Some(next) = page["next"].as_str() else { return seen };
        after = format!("&after={next}");
    }
}

async fn edits_and_deletions_reach_over_pages(kind: Kind) {
    let place = Place::new(kind);
    let gateway = place.start();
    let mut count = 0;
    let mut tell = async |event_type: &str, message: Value| {
        count += 1;
        let delivery = delivery(&format!("e{count}"), event_type, "1", message);
        send(gateway.public, delivery).await;
    };
    let said = |id: &str, text: &str| json!({"id": id, "text": text});
    // Overtaken by their messages, as happens to retries.
    tell("message.updated", said("late", "edited before it came")).await;
    tell("message.deleted", json!({"id": "m2"})).await;
    tell("message.received", said("m1", "one")).await;
    tell("message.received", said("m2", "two")).await;
    tell("message.reaction", json!({"target_message_id": "m1"})).await;
    tell("message.updated", said("gone", "its message was never here")).await;
    tell("message.received", said("late", "late")).await;
    tell("message.updated", said("m1", "ONE")).await;
    tell("message.updated", said("gone", "nor was it later")).await;
    tell("message.updated", said("m1", "ONE!")).await;
    tell("message.received", said("m3", "three")).await;
    tell("message.deleted", json!({"ids": ["m3", "gone", "never"]})).await;
    // Another conversation's messages have the same ids.
    let other = delivery("o1", "message.updated", "2", said("m3", "of another"));
    send(gateway.public, other).await;

    let mut expected = [
        "message m1 ONE!*",
        "message m2 two-",
        "reaction m1 ",
        "edit gone nor was it later*-",
        "message late edited before it came*",
        "message m3 three-",
    ];
    for order in ["asc", "desc"] {
        for size in [500, 1, 2, 3, 5, 7] {
            let seen = paged(gateway.private, "1", size, order).await;
            assert_eq!(seen, expected, "{size} {order}");
        }
        expected.reverse();
    }
    let other = messages(gateway.private, &subject("2"), "").await;
    assert_eq!(lines(&other), ["edit m3 of another*"]);
    let unknown = messages(gateway.private, &subject("3"), "").await;
    assert_eq!(unknown, json!({"messages": [], "next": null}));
}

#[tokio::test]
async fn edits_and_deletions_reach_over_pages_on_sqlite() {
    edits_and_deletions_reach_over_pages(Kind::Sqlite).await;
}

#[tokio::test]
async fn edits_and_deletions_reach_over_pages_on_postgres() {
    edits_and_deletions_reach_over_pages(Kind::Postgres).await;
}

#[tokio::test]
async fn a_page_has_a_bound_in_bytes() {
    let place = Place::new(Kind::Sqlite);
    let gateway = place.start();
    for number in 0..4 {
        let message = json!({"id": format!("m{number}"), "text": "x".repeat(4 << 20)});
        let delivery = delivery(&format!("e{number}"), "message.received", "1", message);
        send(gateway.public, delivery).await;
    }
    let first = messages(gateway.private, &subject("1"), "").await;
    assert_eq!(lines(&first).len(), 2);
    let after = format!("&after={}", first["next"].as_str().unwrap());
    let second = messages(gateway.private, &subject("1"), &after).await;
    assert_eq!((lines(&second).len(), &second["next"]), (2, &Value::Null));
}

fn refused(answer: &Response, status: u16, code: &str, field: Option<&str>) {
    assert_eq!(answer.status, status, "{answer:?}");
    let problem = answer.json();
    assert_eq!((&problem["code"], problem["field"].as_str()), (&json!(code), field));
}

#[tokio::test]
async fn what_reading_by_conversation_refuses() {
    let tokens = "[[token]]\nname = \"ops\"\nvalue = { env = \"OPS\" }\nrole = \"operator\"\n\
                  [[token]]\nname = \"crm\"\nvalue = { env = \"CRM\" }\nrole = \"worker\"\n";
    let place = Place::with(Kind::Sqlite, &format!("{MAIN}{tokens}"));
    let place = place.env("OPS", "ops-token").env("CRM", "crm-token");
    let gateway = place.start();
    let ask = async |token: &str, path: &str| {
        let bearer = format!("Bearer {token}");
        let path = format!("/v1/conversations{path}");
        get(gateway.private, &path, &[("Authorization", &*bearer)]).await
    };
    for (path, code, field) in [
        ("?limit=0", "invalid_value", "limit"),
        ("?limit=501", "invalid_value", "limit"),
        ("?after=x", "invalid_value", "after"),
        ("?subject=x", "unknown_field", "subject"),
        ("/messages", "invalid_value", "subject"),
        ("/messages?limit=5", "invalid_value", "subject"),
        ("/messages?subject=x&limit=501", "invalid_value", "limit"),
        ("/messages?subject=x&after=1.5", "invalid_value", "after"),
        ("/messages?subject=x&order=up", "invalid_value", "order"),
        ("/messages?subject=x&channel=y", "unknown_field", "channel"),
    ] {
        refused(&ask("ops-token", path).await, 422, code, Some(field));
    }
    for path in ["", "/messages?subject=x", "/messages?subject="] {
        assert_eq!(ask("ops-token", path).await.status, 200, "{path}");
        assert_eq!(ask("crm-token", path).await.status, 403, "{path}");
        assert_eq!(ask("other", path).await.status, 401, "{path}");
    }
}
