//! SIGHUP: what changed is in force, what is in flight does not notice, and a bad file changes
//! nothing.

use std::time::Duration;

use rustix::process::Signal;

use crate::support::delivery::{Delivery, now};
use crate::support::http::{Connection, get, post};
use crate::support::place::{Kind, Place};
use crate::support::process::Gateway;

const SOON: Duration = Duration::from_secs(20);

/// What is changed.
struct Config<'a> {
    tolerance: &'a str,
    consumers: &'a str,
    more: &'a str,
}

const FIRST: Config<'_> =
    Config { tolerance: "5m", consumers: "[[consumer]]\nname = \"default\"\n", more: "" };

impl Config<'_> {
    fn text(&self) -> String {
        let Config { tolerance, consumers, more } = self;
        format!(
            "{more}\n[[unifyport]]\nname = \"main\"\nsecrets = [{{ file = \"secret\" }}]\n\
             tolerance = \"{tolerance}\"\n{consumers}\n[[token]]\nname = \"ops\"\n\
             value = {{ file = \"token\" }}\nrole = \"operator\"\n"
        )
    }
}

/// A gateway whose secret and token stand in files.
fn place(kind: Kind) -> Place {
    let place = Place::with(kind, &FIRST.text());
    write(&place, "secret", "old secret");
    write(&place, "token", "old-token");
    place
}

fn write(place: &Place, file: &str, content: &str) {
    std::fs::write(place.home.dir().join(file), format!("{content}\n")).unwrap();
}

/// Sends SIGHUP and waits for the line that says what came of it.
fn reload(gateway: &Gateway, place: &Place, config: &Config<'_>, line: &str, times: usize) {
    place.home.configure(&config.text());
    gateway.signal(Signal::HUP);
    let seen = std::cell::Cell::new(0);
    gateway.log().wait_for(SOON, |text| {
        seen.set(seen.get() + usize::from(text.contains(line)));
        (seen.get() == times).then_some(())
    });
}

fn signed(secret: &str, id: &str) -> Delivery {
    Delivery::signed(secret, &now().to_string(), format!("{{\"id\":\"{id}\"}}"))
}

async fn status(gateway: &Gateway, token: &str, consumer: &str) -> u16 {
    let bearer = format!("Bearer {token}");
    let headers = [("Authorization", &*bearer), ("Content-Type", "application/json")];
    let path = format!("/v1/consumers/{consumer}/claim");
    post(gateway.private, &path, &headers, b"{}").await.status
}

async fn changes_are_taken_over(kind: Kind) {
    let place = place(kind);
    let gateway = place.start();
    let stale = now() - Duration::from_secs(600);
    let stale = Delivery::signed("new secret", &stale.to_string(), "{\"id\":\"stale\"}");
    assert_eq!(signed("old secret", "1").send(gateway.public).await.status, 204);
    assert_eq!(signed("new secret", "2").send(gateway.public).await.status, 401);
    assert_eq!(status(&gateway, "old-token", "default").await, 200);
    assert_eq!(status(&gateway, "old-token", "late").await, 404);

    // In flight while everything changes: kept connections, and a delivery under the old secret.
    let mut kept = Connection::open(gateway.public).await;
    assert_eq!(kept.request("GET", "/healthz", &[], b"").await.unwrap().status, 200);
    let delivery = signed("old secret", "in flight");
    let mut half = Connection::open(gateway.public).await;
    half.write(&delivery.clone().with("Expect", "100-continue").head()).await.unwrap();
    half.interim().await;

    write(&place, "secret", "new secret");
    write(&place, "token", "new-token");
    let consumers = "[[consumer]]\nname = \"default\"\n[[consumer]]\nname = \"late\"\n";
    let next = Config { tolerance: "1h", consumers, more: "" };
    reload(&gateway, &place, &next, "is in force", 1);

    half.write(&delivery.body).await.unwrap();
    assert_eq!(half.response().await.unwrap().status, 204);
    assert_eq!(kept.request("GET", "/healthz", &[], b"").await.unwrap().status, 200);
    assert_eq!(signed("old secret", "3").send(gateway.public).await.status, 401);
    assert_eq!(signed("new secret", "4").send(gateway.public).await.status, 204);
    assert_eq!(stale.send(gateway.public).await.status, 204);
    assert_eq!(status(&gateway, "old-token", "default").await, 401);
    assert_eq!(status(&gateway, "new-token", "late").await, 200);
    gateway.terminate();

    let events = place.events().await;
    let ids: Vec<_> = events.iter().map(|event| &*event.attributes.external_id).collect();
    assert_eq!(ids, ["1", "in flight", "4", "stale"]);
    let store = place.store().await;
    let consumers = async |id| {
        let detail = store.event(id).await.unwrap().unwrap();
        detail.work.into_iter().map(|work| work.consumer).collect::<Vec<_>>()
    };
    assert_eq!(consumers(events[0].id).await, ["default"]);
    assert_eq!(consumers(events[2].id).await, ["default", "late"], "work from the change on");
}

#[tokio::test]
async fn changes_are_taken_over_on_sqlite() {
    changes_are_taken_over(Kind::Sqlite).await;
}

#[tokio::test]
async fn changes_are_taken_over_on_postgres() {
    changes_are_taken_over(Kind::Postgres).await;
}

#[tokio::test]
async fn a_bad_file_changes_nothing_and_the_log_says_why() {
    let place = place(Kind::Sqlite);
    let gateway = place.start();
    write(&place, "secret", "new secret");
    let refused = "nothing is changed";
    reload(&gateway, &place, &Config { tolerance: "soon", ..FIRST }, refused, 1);
    write(&place, "secret", "");
    reload(&gateway, &place, &FIRST, refused, 2);
    std::fs::remove_file(place.home.dir().join("token")).unwrap();
    reload(&gateway, &place, &FIRST, refused, 3);
    place.home.configure("no TOML [");
    gateway.signal(Signal::HUP);
    let syntax = |line: &str| line.contains("not TOML").then_some(());
    gateway.log().wait_for(SOON, syntax);
    let log = gateway.log().text();
    for word in ["tolerance", "\\\"soon\\\"", "secrets", "value"] {
        assert!(log.contains(word), "{word} in {log}");
    }
    assert!(!log.contains("new secret"), "{log}");

    assert_eq!(signed("old secret", "1").send(gateway.public).await.status, 204);
    assert_eq!(signed("new secret", "2").send(gateway.public).await.status, 401);
    assert_eq!(status(&gateway, "old-token", "default").await, 200);

    // The file is mended: now it counts, and what needs a restart says so.
    write(&place, "secret", "new secret");
    write(&place, "token", "new-token");
    let mended = Config { more: "max_body = \"1MiB\"", ..FIRST };
    reload(&gateway, &place, &mended, "restart to apply", 1);
    reload(&gateway, &place, &mended, "is in force", 2);
    assert_eq!(signed("new secret", "3").send(gateway.public).await.status, 204);
}

#[tokio::test]
async fn a_store_that_fails_leaves_everything_as_it_was_until_the_next_hang_up() {
    let place = place(Kind::Sqlite);
    let gateway = place.start();
    write(&place, "secret", "new secret");
    let lock = crate::support::disk::SqliteLock::hold(
        &place.file(),
        crate::support::disk::Lock::Immediate,
    );
    reload(&gateway, &place, &FIRST, "is not in force", 1);
    lock.release();
    assert_eq!(signed("old secret", "1").send(gateway.public).await.status, 204);
    reload(&gateway, &place, &FIRST, "is in force", 1);
    assert_eq!(signed("new secret", "2").send(gateway.public).await.status, 204);
    assert_eq!(get(gateway.private, "/readyz", &[]).await.status, 200);
}
