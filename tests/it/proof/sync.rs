//! The disk first, then the answer: seen in the order of system calls of a lone delivery.

use rustix::process::Pid;

use crate::support::delivery::Delivery;
use crate::support::place::{Kind, MAIN, Place};
use crate::support::postgres::Cluster;
use crate::support::trace::{Call, Trace, calls};

const TRACED: [&str; 2] =
    ["-e", "trace=fsync,fdatasync,read,recvfrom,write,pwrite64,writev,pwritev,sendto,sendmsg"];

/// That the bytes written to a file of this name were synced, and the sync done, before the
/// answer began.
fn synced_before_the_answer(trace: &str, file: &str) {
    let calls = calls(trace);
    let is = |call: &Call, names: &[&str], part: &str| {
        names.iter().any(|name| call.text.starts_with(name)) && call.text.contains(part)
    };
    let find = |names: &[&str], part: &str| {
        let found = calls.iter().find(|call| is(call, names, part));
        found.unwrap_or_else(|| panic!("no {names:?} with {part:?} in\n{trace}"))
    };
    let arrival = find(&["read", "recvfrom"], "POST /webhooks");
    let answer = find(&["write", "sendto", "sendmsg"], "HTTP/1.1 204");
    let between =
        || calls.iter().filter(|call| call.begin > arrival.end && call.end < answer.begin);
    let written = between().rfind(|call| is(call, &["write", "pwrite"], file));
    let written = written.unwrap_or_else(|| panic!("nothing written to {file} in\n{trace}"));
    let synced = between().any(|call| {
        let after = call.begin > written.end;
        after && is(call, &["fsync", "fdatasync"], file) && call.text.ends_with("= 0")
    });
    assert!(synced, "no sync of {file} between the write and the answer in\n{trace}");
}

#[tokio::test]
async fn sqlite_syncs_its_log_before_the_answer() {
    let place = Place::new(Kind::Sqlite);
    let gateway = place.start();
    // The first delivery may also bring the endpoint's state up to date; the second is alone.
    assert_eq!(Delivery::message("first").send(gateway.public).await.status, 204);
    let Some(trace) = Trace::attach(&[gateway.pid()], &TRACED) else { return };
    assert_eq!(Delivery::message("lone").send(gateway.public).await.status, 204);
    synced_before_the_answer(&trace.detach(), "inboxd.db-wal");
}

#[tokio::test]
async fn postgres_syncs_its_log_before_the_answer() {
    let cluster = Cluster::start_private(&[]);
    let place = Place::on(&cluster.create_database(), MAIN);
    let gateway = place.start();
    assert_eq!(Delivery::message("first").send(gateway.public).await.status, 204);
    let directory = cluster.sql("postgres", "SHOW data_directory");
    let postmaster = std::fs::read_to_string(format!("{directory}/postmaster.pid")).unwrap();
    let others = "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()";
    let sessions = cluster.sql("postgres", others);
    let pids = postmaster.lines().take(1).chain(sessions.lines());
    let pids: Vec<Pid> = pids
        .filter_map(|pid| Pid::from_raw(pid.trim().parse().unwrap()))
        .chain([gateway.pid()])
        .collect();
    let Some(trace) = Trace::attach(&pids, &TRACED) else { return };
    assert_eq!(Delivery::message("lone").send(gateway.public).await.status, 204);
    synced_before_the_answer(&trace.detach(), "/pg_wal/");
}
