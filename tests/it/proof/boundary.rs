//! SIGKILL at the crash boundaries of a delivery, placed by barriers and not by luck: before the
//! commit nothing is there and the retry is stored once; after it, the retry is a duplicate.

use sqlx::{Connection as _, PgConnection};

use super::wire::{Then, Wire};
use crate::support::condition::until;
use crate::support::delivery::Delivery;
use crate::support::disk::{Lock, SqliteLock};
use crate::support::http::Connection;
use crate::support::place::{Kind, MAIN, Place};
use crate::support::postgres;
use crate::support::process::Gateway;
use crate::support::trace::{Trace, only};

/// After the gateway was killed: `stored` tells whether the delivery must be there already. Then
/// it is sent again, as its sender does, and must be there once.
async fn recovers(place: &Place, delivery: &Delivery, stored: bool) {
    let before = place.events().await.len();
    assert_eq!(before, usize::from(stored), "events after the kill");
    let gateway = place.start();
    assert_eq!(delivery.send(gateway.public).await.status, 204);
    gateway.terminate();
    let event = place.only_event().await;
    assert_eq!(event.event.body, delivery.body);
    assert_eq!(event.receipts, 1 + i64::from(stored), "the retry is counted");
    assert_eq!(event.work.len(), 1, "and makes no work");
}

/// Sends the whole delivery and waits until the gateway has taken all of it out of the socket.
async fn in_flight(gateway: &Gateway, delivery: &Delivery) -> Connection {
    let mut connection = Connection::open(gateway.public).await;
    connection.write(&delivery.request()).await.unwrap();
    let [peer, own] = [gateway.public.port(), connection.local().port()];
    until("the gateway reads the delivery", async || (unread(peer, own) == Some(0)).then_some(()))
        .await;
    connection
}

/// Bytes that wait in the socket on local port `own`, connected to `peer`. Source: proc(5).
fn unread(own: u16, peer: u16) -> Option<u64> {
    let port = |text: &str| u16::from_str_radix(text.rsplit_once(':')?.1, 16).ok();
    let sockets = std::fs::read_to_string("/proc/net/tcp").unwrap();
    sockets.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let found = port(fields[1]) == Some(own) && port(fields[2]) == Some(peer);
        let (_, receive) = fields[4].split_once(':')?;
        found.then(|| u64::from_str_radix(receive, 16).unwrap())
    })
}

#[tokio::test]
async fn sqlite_before_the_transaction() {
    let place = Place::new(Kind::Sqlite);
    let gateway = place.start();
    let delivery = Delivery::message("before");
    let lock = SqliteLock::hold(&place.file(), Lock::Immediate);
    let mut connection = in_flight(&gateway, &delivery).await;
    gateway.kill();
    assert!(connection.response().await.is_none());
    lock.release();
    recovers(&place, &delivery, false).await;
}

/// The kernel's own barrier: the process ends at the entry of the call that `arguments` name.
async fn killed_at(place: &Place, delivery: &Delivery, arguments: &[String]) -> bool {
    let gateway = place.start();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let Some(trace) = Trace::attach(&[gateway.pid()], &arguments) else { return false };
    assert_eq!(delivery.attempt(gateway.public).await, None, "an answer");
    trace.wait();
    gateway.kill();
    true
}

#[tokio::test]
async fn sqlite_inside_the_transaction() {
    // A frame of the log is a header and a page; the last one of a transaction is its commit.
    for write in [1, 2, 9] {
        let place = Place::new(Kind::Sqlite);
        let delivery = Delivery::message("inside");
        let log = place.file().with_extension("db-wal");
        let kill = format!("inject=write,pwrite64:error=EIO:signal=SIGKILL:when={write}");
        let at = [&only(&log)[..], &["-e".to_owned(), kill]].concat();
        if killed_at(&place, &delivery, &at).await {
            recovers(&place, &delivery, false).await;
        }
    }
}

#[tokio::test]
async fn sqlite_between_commit_and_answer() {
    let place = Place::new(Kind::Sqlite);
    let delivery = Delivery::message("between");
    // On SQLite nothing but an answer is ever written with these calls.
    let at = ["-e", "inject=sendto,sendmsg,writev:error=EPIPE:signal=SIGKILL"];
    if killed_at(&place, &delivery, &at.map(str::to_owned)).await {
        recovers(&place, &delivery, true).await;
    }
}

#[tokio::test]
async fn postgres_inside_the_transaction() {
    let place = Place::new(Kind::Postgres);
    let gateway = place.start();
    let delivery = Delivery::message("inside");
    let mut session = PgConnection::connect(&place.url).await.unwrap();
    sqlx::raw_sql("BEGIN; LOCK TABLE bodies IN ACCESS EXCLUSIVE MODE")
        .execute(&mut session)
        .await
        .unwrap();
    let mut connection = in_flight(&gateway, &delivery).await;
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
         AND application_name = 'inboxd' AND wait_event_type = 'Lock'";
    until("the transaction waits for the table", async || {
        let count: i64 = sqlx::query_scalar(waiting).fetch_one(&mut session).await.unwrap();
        (count == 1).then_some(())
    })
    .await;
    gateway.kill();
    assert!(connection.response().await.is_none());
    sqlx::raw_sql("ROLLBACK").execute(&mut session).await.unwrap();
    gone(&mut session).await;
    recovers(&place, &delivery, false).await;
}

/// Waits until PostgreSQL has found out that the gateway is no more.
async fn gone(session: &mut PgConnection) {
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
         AND application_name = 'inboxd'";
    until("the gateway's sessions end", async || {
        let count: i64 = sqlx::query_scalar(sessions).fetch_one(&mut *session).await.unwrap();
        (count == 0).then_some(())
    })
    .await;
}

/// A place whose gateway reaches PostgreSQL through a wire that obeys the test.
async fn behind_a_wire() -> (Place, Place, Wire) {
    let url = postgres::shared().create_database();
    let wire = Wire::to(&url).await;
    (Place::on(&wire.url, MAIN), Place::on(&url, MAIN), wire)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_between_commit_and_answer() {
    let (place, direct, wire) = behind_a_wire().await;
    let gateway = place.start();
    let delivery = Delivery::message("between");
    wire.at_commit_of(b"wamid.between", Then::Withhold);
    let mut connection = in_flight(&gateway, &delivery).await;
    wire.committed().await;
    gateway.kill();
    assert!(connection.response().await.is_none());
    recovers(&direct, &delivery, true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_when_nobody_knows_whether_it_was_committed() {
    let (place, direct, wire) = behind_a_wire().await;
    let gateway = place.start();
    let delivery = Delivery::message("unknown");
    wire.at_commit_of(b"wamid.unknown", Then::Cut);
    let answer = delivery.send(gateway.public).await;
    assert_eq!(answer.status, 503);
    assert!(answer.header("retry-after").is_some());
    assert_eq!(direct.only_event().await.receipts, 1, "it was committed");
    assert_eq!(delivery.send(gateway.public).await.status, 204, "well again by itself");
    gateway.terminate();
    assert_eq!(direct.only_event().await.receipts, 2);
}
