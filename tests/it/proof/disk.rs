//! SQLite on a disk that is full, locked, read-only or broken: 503, nothing lost, nothing doubled,
//! and well again by itself.

use std::time::Duration;

use crate::support::condition::until;
use crate::support::delivery::{Delivery, message};
use crate::support::disk::{Lock, SmallDisk, SqliteLock};
use crate::support::http::Response;
use crate::support::place::{Kind, MAIN, Place};
use crate::support::process::Gateway;
use crate::support::trace::{Trace, only};

fn is_passing(answer: &Response) {
    assert_eq!(answer.status, 503, "{answer:?}");
    let seconds: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&seconds));
    assert_eq!(answer.header("content-type"), Some("application/problem+json"));
}

async fn is_taken(delivery: &Delivery, gateway: &Gateway) {
    until("the delivery is taken", async || {
        let answer = delivery.send(gateway.public).await;
        if answer.status != 204 {
            is_passing(&answer);
        }
        (answer.status == 204).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_full_disk_and_room_on_it_again() {
    let Some(disk) = SmallDisk::mount("6m") else { return };
    let ballast = disk.path().join("ballast");
    std::fs::write(&ballast, vec![0; 3 << 20]).unwrap();
    let place = Place::on(&format!("sqlite:{}", disk.path().join("inboxd.db").display()), MAIN);
    let gateway = place.start();

    let large = |number: usize| {
        let mut body = message(&format!("{number}-on-a-small-disk"));
        body.splice(1..1, format!("\"padding\":\"{}\",", "x".repeat(64 << 10)).bytes());
        Delivery::new(body)
    };
    let mut taken = vec![];
    let refused = loop {
        let delivery = large(taken.len());
        let answer = delivery.send(gateway.public).await;
        if answer.status != 204 {
            is_passing(&answer);
            break delivery;
        }
        taken.push(delivery);
    };
    assert!(taken.len() > 3, "{} taken", taken.len());
    is_passing(&refused.send(gateway.public).await);

    std::fs::remove_file(&ballast).unwrap();
    is_taken(&refused, &gateway).await;
    taken.push(refused);
    assert_eq!(gateway.terminate().code(), Some(0));
    let events = place.events().await;
    let [events, taken] = [
        events.iter().map(|event| &event.body[..]).collect::<Vec<_>>(),
        taken.iter().map(|delivery| &delivery.body[..]).collect(),
    ];
    assert!(events == taken, "{} of {} events", events.len(), taken.len());
}

#[tokio::test]
async fn locked_for_longer_than_the_answer_timeout() {
    for lock in [Lock::Immediate, Lock::Exclusive] {
        let place = Place::with(Kind::Sqlite, &format!("answer_timeout = \"300ms\"\n{MAIN}"));
        let gateway = place.start();
        let held = SqliteLock::hold(&place.file(), lock);
        let delivery = Delivery::message("locked");
        is_passing(&delivery.send(gateway.public).await);
        held.release();
        is_taken(&delivery, &gateway).await;
        gateway.terminate();
        // The first may have been committed after its answer: then the second was a duplicate.
        assert!(place.only_event().await.receipts <= 2);
    }
}

#[tokio::test]
async fn locked_for_longer_than_the_store_itself_waits() {
    let place = Place::new(Kind::Sqlite);
    let gateway = place.start();
    let held = SqliteLock::hold(&place.file(), Lock::Immediate);
    let delivery = Delivery::message("locked");
    is_passing(&delivery.send(gateway.public).await);
    let limit = Duration::from_secs(10);
    let said = |line: &str| line.contains("cannot be committed").then_some(());
    gateway.log().wait_for(limit, said);
    held.release();
    is_taken(&delivery, &gateway).await;
    let said = |line: &str| line.contains("are committed again").then_some(());
    gateway.log().wait_for(limit, said);
    gateway.terminate();
    assert_eq!(place.only_event().await.receipts, 1);
}

/// A disk that lets the log's writes or syncs fail, as a broken or read-only one does.
async fn a_call_fails(inject: &str) {
    let place = Place::new(Kind::Sqlite);
    let gateway = place.start();
    assert_eq!(Delivery::message("before").send(gateway.public).await.status, 204);
    let log = only(&place.file().with_extension("db-wal"));
    let fault = [&log[0], &log[1], "-e", inject];
    let Some(trace) = Trace::attach(&[gateway.pid()], &fault) else { return };
    let delivery = Delivery::message("meanwhile");
    is_passing(&delivery.send(gateway.public).await);
    is_passing(&delivery.send(gateway.public).await);
    trace.detach();
    is_taken(&delivery, &gateway).await;
    gateway.terminate();
    let events = place.events().await;
    let ids: Vec<_> = events.iter().map(|event| &*event.attributes.external_id).collect();
    assert_eq!(ids, ["before", "meanwhile"]);
    assert_eq!(events[1].body, delivery.body);
}

#[tokio::test]
async fn a_log_that_cannot_be_written() {
    a_call_fails("inject=write,pwrite64:error=EROFS").await;
}

#[tokio::test]
async fn a_log_that_cannot_be_synced() {
    a_call_fails("inject=fsync,fdatasync:error=EIO").await;
}

#[tokio::test]
async fn a_read_only_disk_at_the_start() {
    let Some(disk) = SmallDisk::mount("6m") else { return };
    let place = Place::on(&format!("sqlite:{}", disk.path().join("inboxd.db").display()), MAIN);
    place.start().terminate();
    let remount = |how: &str| {
        let how = format!("remount,{how}");
        let mut mount = std::process::Command::new("mount");
        assert!(mount.args(["-o", &how]).arg(disk.path()).status().unwrap().success());
    };
    remount("ro");
    let refused = place.home.command(&["serve"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(words.contains("cannot open the store sqlite:"), "{words}");
    remount("rw");
    let gateway = place.start();
    assert_eq!(Delivery::message("again").send(gateway.public).await.status, 204);
}
