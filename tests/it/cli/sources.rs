//! `sources list` and `forget`.

use inboxd::clock::Clock;
use inboxd::source::SourceKind;
use inboxd::store::{self, Options};

use super::super::support::http::{get, post};
use super::*;

/// The endpoint `other` in place of `main`.
const OTHER: &str = "[[unifyport]]\nname = \"other\"\nsecrets = [{ env = \"SECRET\" }]\n";

#[tokio::test]
async fn a_list_is_what_the_api_answers() {
    let home = home();
    let gateway = home.start();
    for _ in 0..2 {
        deliver(&home, &gateway, message("evt_1", "Ada", "Hi").as_bytes());
    }
    // An endpoint tells how it is beside the answer, not before it.
    let api = until(async || {
        let api = get(gateway.private, "/v1/sources", &[]).await.json();
        (api["sources"][0]["state"] == "ok").then_some(api)
    })
    .await;
    assert_eq!(inboxd(&home, &["sources", "list", "--json"]).json_lines(), [api]);
    let list = inboxd(&home, &["sources", "list"]).ok();
    let lines: Vec<&str> = list.lines().collect();
    assert!(lines[0].starts_with("SOURCE          STATE"), "{list}");
    let cells: Vec<&str> = lines[1].split_whitespace().collect();
    assert_eq!((cells[0], cells[2], cells[3]), ("unifyport/main", "1", "1"), "{list}");
    assert!(lines.iter().all(|line| line.len() <= 80 || line.starts_with("unifyport/main: ")));
}

#[tokio::test]
async fn forgetting_ends_the_503_of_an_endpoint_that_is_no_longer_configured() {
    let home = inbox(&[b"{}"]);
    let refused = inboxd(&home, &["sources", "forget", "main"]).failed(1);
    assert!(refused.starts_with("the configuration still names unifyport/main: "), "{refused}");

    home.configure(OTHER);
    let gateway = home.start();
    let path = "/webhooks/unifyport/main";
    assert_eq!(post(gateway.public, path, &[], b"{}").await.status, 503);
    gateway.terminate();

    let forgotten = inboxd(&home, &["sources", "forget", "main"]).ok();
    assert_eq!(
        forgotten,
        "unifyport/main is forgotten: its events (1) stay in the inbox; deliveries to \
         /webhooks/unifyport/main are now answered 404, after which UnifyPort does not try again\n"
    );
    let again = inboxd(&home, &["sources", "forget", "main"]).failed(1);
    assert_eq!(
        again,
        "the store knows no source \"main\"; `inboxd sources list` shows those it knows\n"
    );
    let gateway = home.start();
    assert_eq!(post(gateway.public, path, &[], b"{}").await.status, 404);
    assert_eq!(inboxd(&home, &["events", "list", "--json"]).json_lines().len(), 1);
}

#[tokio::test]
async fn a_name_that_two_sources_share_needs_its_kind() {
    let home = inbox(&[]);
    home.configure(OTHER);
    let url = format!("sqlite:{}", home.dir().join("inboxd.db").display());
    let clock = Clock::wall();
    let options = Options { migrate: false, allow_unsafe_durability: false, clock };
    let store = store::open(&url, options).await.unwrap();
    store.register_source(SourceKind::Telegram, "main").await.unwrap();
    store.close().await;

    let error = inboxd(&home, &["sources", "forget", "main"]).failed(1);
    assert!(error.ends_with("write telegram/main or unifyport/main\n"), "{error}");
    let forgotten = inboxd(&home, &["sources", "forget", "telegram/main"]).ok();
    assert!(forgotten.starts_with("telegram/main is forgotten: "), "{forgotten}");
    let left = inboxd(&home, &["sources", "list"]).ok();
    assert!(left.contains("unifyport/main") && !left.contains("telegram"), "{left}");
}
