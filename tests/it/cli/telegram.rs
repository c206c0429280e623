//! `telegram`, `gaps`, and what `check` asks of bots.

use inboxd::simulate::bot_api::change::Change;
use inboxd::simulate::bot_api::rules::Timing;
use inboxd::simulate::bot_api::update::Update;
use inboxd::simulate::bot_api::{FakeBotApi, Options, token};

use super::super::support::http::get;
use super::*;

const BOT: i64 = 7_123_456_789;

/// A home with the bot `support`, and the server that has it.
async fn bot() -> (FakeBotApi, Home) {
    let options = Options { timing: Timing::scaled(1.0), ..Options::default() };
    let fake = FakeBotApi::start(options).await.unwrap();
    fake.add_bot(BOT, &token::example(BOT));
    let table = format!(
        "[[telegram]]\nname = \"support\"\ntoken = {{ env = \"BOT_TOKEN\" }}\napi_url = \"{}\"\n",
        fake.api_url()
    );
    let home = Home::new(&table).env("BOT_TOKEN", &token::example(BOT));
    (fake, home)
}

fn push(fake: &FakeBotApi, text: &str) {
    fake.push(BOT, &Update::text(1001, 1, text));
}

#[tokio::test(flavor = "multi_thread")]
async fn looking_at_a_bot_tells_how_it_is_and_confirms_nothing() {
    let (fake, home) = bot().await;
    for text in ["one", "two", "three"] {
        push(&fake, text);
    }
    let check = inboxd(&home, &["check"]).ok();
    assert!(check.contains(&format!("telegram       ok: support is bot {BOT}")), "{check}");
    assert!(check.contains("updates that wait: 3"), "{check}");
    let json = &inboxd(&home, &["check", "--json"]).json_lines()[0];
    assert_eq!(json["ok"], true);
    assert_eq!(json["findings"].as_array().unwrap().len(), 3, "{json}");
    let status = inboxd(&home, &["telegram", "status"]).ok();
    assert!(status.contains("never ran on this store"), "{status}");
    let json = &inboxd(&home, &["telegram", "status", "support", "--json"]).json_lines()[0];
    assert_eq!(json["bots"][0]["telegram"]["pending"], 3);
    assert_eq!(json["bots"][0]["telegram"]["id"], BOT);
    let unknown = inboxd(&home, &["telegram", "status", "other"]).failed(1);
    assert_eq!(unknown, "no bot is named \"other\"; there is support\n");

    let journal = fake.journal();
    let methods: Vec<&str> = journal.requests().map(|(_, r)| r.method.as_str()).collect();
    assert!(
        methods.iter().all(|method| ["getme", "getwebhookinfo"].contains(method)),
        "{methods:?}"
    );
    assert_eq!((fake.pending(BOT), fake.violations().len()), (3, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_is_a_fault_until_it_is_asked_away_and_what_waits_is_kept() {
    let (fake, home) = bot().await;
    push(&fake, "kept");
    fake.change(BOT, &Change::Webhook("https://hooks.example.org/a-secret-path".into()));
    let check = inboxd(&home, &["check"]);
    let words = String::from_utf8_lossy(&check.stdout).into_owned();
    assert_eq!((check.code, check.stderr.as_str()), (Some(1), "a fault was found\n"), "{words}");
    assert!(words.contains("hooks.example.org") && !words.contains("a-secret-path"), "{words}");
    assert!(words.contains("`inboxd telegram delete-webhook support`"), "{words}");
    assert_eq!(inboxd(&home, &["telegram", "status"]).code, Some(1));

    let removed = inboxd(&home, &["telegram", "delete-webhook", "support"]).ok();
    assert!(removed.contains("is removed; updates that wait and are kept: 1;"), "{removed}");
    let again = inboxd(&home, &["telegram", "delete-webhook", "support"]).ok();
    assert_eq!(again, "support has no webhook; there is nothing to remove\n");
    assert_eq!(fake.pending(BOT), 1);
    inboxd(&home, &["check"]).ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_not_accepted_is_a_fault_and_is_not_shown() {
    let (_fake, home) = bot().await;
    let wrong = "7123456789:wrong-canary-token-wrong-canary-to";
    let home = home.env("BOT_TOKEN", wrong);
    let check = inboxd(&home, &["check"]);
    let words = String::from_utf8_lossy(&check.stdout).into_owned();
    assert_eq!(check.code, Some(1), "{words}");
    assert!(words.contains("fault: support: the token is not accepted"), "{words}");
    assert!(!words.contains("canary") && !check.stderr.contains("canary"), "{words}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_possible_loss_is_listed_until_it_is_acknowledged() {
    let (fake, home) = bot().await;
    push(&fake, "first");
    let gateway = home.start();
    let stored = async |gateway: &Gateway, count: i64| {
        let sources = get(gateway.private, "/v1/sources", &[]).await.json();
        (sources["sources"][0]["stored"] == count).then_some(())
    };
    until(async || stored(&gateway, 1).await).await;
    assert!(gateway.terminate().success());
    push(&fake, "never fetched");
    fake.change(BOT, &Change::ExpireNow);
    push(&fake, "second");
    let gateway = home.start();
    until(async || stored(&gateway, 2).await).await;

    let list = inboxd(&home, &["gaps", "list"]).ok();
    assert!(list.lines().all(|line| line.chars().count() <= 80), "{list}");
    let cells: Vec<&str> = list.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!((cells[0], cells[4], cells[5]), ("1", "hole", "update"), "{list}");
    let api = get(gateway.private, "/v1/gaps?source=support", &[]).await.json();
    assert_eq!(inboxd(&home, &["gaps", "list", "--json"]).json_lines(), [api]);

    let usage = inboxd(&home, &["gaps", "acknowledge"]).failed(2);
    assert_eq!(usage, "name the gaps by their numbers, or say --all\n");
    assert_eq!(inboxd(&home, &["gaps", "acknowledge", "1", "99"]).ok(), "1 acknowledged\n");
    assert_eq!(inboxd(&home, &["gaps", "list"]).ok(), "no possible loss is open\n");
    assert_eq!(inboxd(&home, &["gaps", "list", "--all"]).ok().lines().count(), 2);
    let sources = inboxd(&home, &["sources", "list", "--json"]).json_lines();
    assert_eq!(sources[0]["sources"][0]["open_gaps"], 0);
    assert!(gateway.terminate().success());
    // The one loss is the update that expired; no offset destroyed another, none was malformed.
    assert_eq!(fake.violations(), Vec::<String>::new());
}
