//! `dead list` and `show`.

use std::sync::Arc;
use std::time::Duration;

use inboxd::clock::Clock;
use inboxd::store::{self, Options, Store};
use inboxd::work::{ClaimRequest, Nack};
use unicode_width::UnicodeWidthStr;

use super::super::support::http::get;
use super::*;

async fn store(home: &Home) -> Arc<dyn Store> {
    let url = format!("sqlite:{}", home.dir().join("inboxd.db").display());
    let clock = Clock::wall();
    let options = Options { migrate: false, allow_unsafe_durability: false, clock };
    store::open(&url, options).await.unwrap()
}

/// Gives up the first event of a consumer, for good at the second attempt.
async fn bury(store: &dyn Store, consumer: &str, error: &str) {
    let request = ClaimRequest { max: 1, max_bytes: usize::MAX, lease: None };
    for dead in [false, true] {
        let claimed = store.claim(consumer, request.clone()).await.unwrap();
        let delay = Some(Duration::ZERO);
        let nack = Nack { delay, error: dead.then(|| error.to_owned()), dead };
        store.nack(consumer, vec![claimed[0].receipt], nack).await.unwrap();
    }
}

#[tokio::test]
async fn a_list_is_what_the_api_answers_and_fits_a_terminal() {
    let home = inbox(&[
        message("evt_1", "Ada", "Hi").as_bytes(),
        message("evt_2", "Ada", "Hi").as_bytes(),
        message("evt_3", "Ada", "Hi").as_bytes(),
    ]);
    assert_eq!(inboxd(&home, &["dead", "list"]).ok(), "default has no dead letter\n");
    assert_eq!(inboxd(&home, &["dead", "list", "--json"]).ok(), "");
    let store = store(&home).await;
    bury(&*store, "default", "\u{1b}[2Jthe CRM\nis down").await;
    bury(&*store, "default", &"long ".repeat(100)).await;
    store.close().await;

    let list = inboxd(&home, &["dead", "list"]).ok();
    let lines: Vec<&str> = list.lines().collect();
    assert!(lines[0].starts_with("NO  DIED (UTC)"), "{list}");
    assert!(lines[1].ends_with(" 2  \u{fffd}[2Jthe CRM is down"), "{list}");
    assert!(lines[2].ends_with('…') && lines.len() == 3, "{list}");
    for line in &lines {
        assert!(line.width() <= 80 && !line.contains(char::is_control), "{line:?}");
    }
    let first = inboxd(&home, &["dead", "list", "--limit", "1"]).ok();
    assert_eq!(first.lines().count(), 2, "{first}");

    let gateway = home.start();
    let api = get(gateway.private, "/v1/consumers/default/dead", &[]).await.json();
    let listed = inboxd(&home, &["dead", "list", "--json"]).json_lines();
    assert_eq!(Value::Array(listed), api["dead"], "whether serve runs or not");

    let shown = inboxd(&home, &["dead", "show", "1"]).ok();
    assert!(shown.starts_with("consumer      default\ndied          20"), "{shown}");
    assert!(shown.contains("\nfailed        attempt 1 at 20"), "{shown}");
    assert!(shown.contains("Z: \u{fffd}[2Jthe CRM\n"), "{shown}");
    assert!(shown.contains("\ntext          Hi\n"), "{shown}");
    let json = inboxd(&home, &["dead", "show", "1", "--json"]).json_lines();
    assert_eq!(json, [api["dead"][0].clone()]);
    let shown = inboxd(&home, &["events", "show", "1"]).ok();
    assert!(shown.contains("\nwork          default: dead since 20"), "{shown}");
    assert!(shown.contains("\nfailed        attempt 1 at 20"), "{shown}");
}

#[tokio::test]
async fn what_is_not_dead_is_not_shown() {
    let home = inbox(&[message("evt_1", "Ada", "Hi").as_bytes()]);
    assert_eq!(
        inboxd(&home, &["dead", "show", "1"]).failed(1),
        "the event 1 is not dead for default but ready; `inboxd events show 1` tells more\n"
    );
    let error = inboxd(&home, &["dead", "show", "7"]).failed(1);
    assert!(error.starts_with("there is no event with the number 7: "), "{error}");
    inboxd(&home, &["dead", "show", "x"]).failed(2);
}

#[tokio::test]
async fn one_of_several_consumers_is_named() {
    let home = home();
    home.configure(&format!(
        "{ENDPOINT}[[consumer]]\nname = \"crm\"\n[[consumer]]\nname = \"audit\"\n"
    ));
    let gateway = home.start();
    deliver(&home, &gateway, message("evt_1", "Ada", "Hi").as_bytes());
    assert!(gateway.terminate().success());
    let store = store(&home).await;
    bury(&*store, "crm", "no").await;
    store.close().await;
    for command in [&["dead", "list"][..], &["dead", "show", "1"]] {
        let error = inboxd(&home, command).failed(2);
        let names = "there are several consumers; say --consumer with one of: audit, crm\n";
        assert_eq!(error, names);
    }
    let error = inboxd(&home, &["dead", "list", "--consumer", "x"]).failed(1);
    assert_eq!(error, "there is no consumer \"x\"; there is: audit, crm\n");
    let list = inboxd(&home, &["dead", "list", "--consumer", "crm"]).ok();
    assert_eq!(list.lines().count(), 2, "{list}");
    let none = inboxd(&home, &["dead", "list", "--consumer", "audit"]).ok();
    assert_eq!(none, "audit has no dead letter\n");
    let error = inboxd(&home, &["dead", "show", "1", "--consumer", "audit"]).failed(1);
    assert!(error.starts_with("the event 1 is not dead for audit but ready; "), "{error}");
}
