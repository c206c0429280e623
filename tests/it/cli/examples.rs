//! The examples, run against a real gateway.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::Router;
use axum::routing::post;
use inboxd::http::server::{Limits, serve};
use inboxd::shutdown::Shutdown;
use rustix::process::Signal;

use super::super::support::child::Process;
use super::super::support::http::get;
use super::super::support::postgres::free_port;
use super::*;

const LIMIT: Duration = Duration::from_secs(60);

/// A built example. `cargo test` builds them beside the binary, `cargo test --test it` does not.
fn example(name: &str) -> Command {
    let binary = Path::new(env!("CARGO_BIN_EXE_inboxd"));
    let path: PathBuf = binary.with_file_name("examples").join(name);
    assert!(path.is_file(), "{} is not there: run `cargo build --examples`", path.display());
    Command::new(path)
}

/// Both workers, which behave alike.
fn workers(url: SocketAddr, token: &str) -> [Command; 2] {
    let mut python = Command::new("python3");
    python.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/worker.py"));
    [example("worker"), python].map(|mut worker| {
        worker.env("INBOXD_URL", format!("http://{url}")).env("INBOXD_TOKEN", token);
        worker
    })
}

const WORKER: &str = "[[token]]\nname = \"w\"\nvalue = { env = \"TOKEN\" }\nrole = \"worker\"\n";

#[tokio::test]
async fn a_worker_prints_and_acks_what_was_sent() {
    let home = Home::new(&format!("{ENDPOINT}{WORKER}")).env("SECRET", SECRET).env("TOKEN", "t-1");
    let gateway = home.start();
    let url = format!("http://{}/webhooks/unifyport/main", gateway.public);
    for mut worker in workers(gateway.private, "t-1") {
        // Waits for the first events, so it may start before they are there.
        let (mut running, output) = Process::spawn_heard(worker.arg("--once"));
        let mut send = example("send_unifyport");
        send.args(["--count", "2", "--url", &url]).env("INBOXD_UNIFYPORT_SECRET", SECRET);
        assert_eq!(run(&mut send, b"").ok().matches("204 No Content").count(), 2);
        output.wait_for(LIMIT, |line| line.starts_with("whatsapp  ").then_some(()));
        assert!(running.wait(LIMIT).success(), "{}", running.stderr().text());
        // The first claim may have been answered before the second delivery.
        if output.text().lines().count() < 2 {
            assert!(run(&mut worker, b"").ok().starts_with("whatsapp  "));
        }
        let stopped = run(worker.env("INBOXD_TOKEN", "wrong"), b"");
        assert_eq!((stopped.code, stopped.stdout.len()), (Some(1), 0), "{stopped:?}");
        assert!(stopped.stderr.contains("the inbox refuses to claim (401"), "{stopped:?}");
    }
    drop(gateway);
    for number in 1..=4 {
        let event = inboxd(&home, &["events", "show", &format!("{number}"), "--json"]).json_lines();
        assert_eq!(event[0]["consumers"][0]["state"], "done");
    }
}

#[tokio::test]
async fn a_worker_outlives_a_restart_of_the_gateway_and_prints_no_controls() {
    let address = format!("127.0.0.1:{}", free_port());
    let home = home().env("INBOXD_SERVER_PRIVATE", &address);
    let address: SocketAddr = address.parse().unwrap();
    for (n, mut worker) in workers(address, "").into_iter().enumerate() {
        let (mut running, output) = Process::spawn_heard(&mut worker);
        let error = running.stderr().clone();
        let printed = |start: &str| {
            output.wait_for(LIMIT, |line| line.contains(start).then(|| line.to_owned()))
        };
        error.wait_for(LIMIT, |line| line.starts_with("the inbox does not answer").then_some(()));
        for round in 0..2 {
            let gateway = home.start();
            let id = format!("evt_{n}_{round}");
            let text = format!("{id}: \u{1b}[2J\u{9b}\u{202e}");
            deliver(&home, &gateway, message(&id, "Ada", &text).as_bytes());
            let line = printed(&format!("{id}:"));
            assert!(!line.contains(|c: char| c.is_control() || c == '\u{202e}'), "{line:?}");
            until(async || {
                let events = get(gateway.private, "/v1/events?limit=1", &[]).await.json();
                let id = events["events"][0]["event"]["id"].as_str().unwrap().to_owned();
                let one = get(gateway.private, &format!("/v1/events/{id}"), &[]).await.json();
                (one["consumers"][0]["state"] == "done").then_some(())
            })
            .await;
            gateway.kill();
        }
        // Not SIGINT, because it is ignored below a shell that runs the tests in the background.
        running.signal(Signal::TERM);
        running.wait(LIMIT);
    }
}

#[tokio::test]
async fn a_worker_that_dies_after_acting_is_reconciled() {
    // The next worker waits until the lease of the one that died has run out.
    let home = Home::new(&format!("{ENDPOINT}[[consumer]]\nname = \"default\"\nlease = \"1s\"\n"))
        .env("SECRET", SECRET);
    let gateway = home.start();
    let answers = home.dir().join("answers.jsonl");
    let sent = || -> Vec<Value> {
        let text = std::fs::read_to_string(&answers).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    for (n, mut worker) in workers(gateway.private, "").into_iter().enumerate() {
        worker.env("ANSWERS", &answers);
        let mut dying = workers(gateway.private, "").into_iter().nth(n).unwrap();
        dying.env("ANSWERS", &answers).args(["--once", "--die-after-acting"]);
        for (round, happened) in [true, false].into_iter().enumerate() {
            deliver(&home, &gateway, message(&format!("{n}-{round}"), "Ada", "hi").as_bytes());
            assert_eq!(run(&mut dying, b"").code, Some(9));
            let once = sent();
            if !happened {
                // As if it had died just before.
                std::fs::remove_file(&answers).unwrap();
            }
            let ran = run(worker.arg("--once"), b"");
            assert_eq!((ran.code, &*ran.stdout), (Some(0), b"whatsapp  Ada  hi\n".as_slice()));
            assert_eq!(sent(), once, "{ran:?}");
            assert_eq!((once.len(), &once[0]["text"]), (1, &Value::from("You said: hi")));
            std::fs::remove_file(&answers).unwrap();
            let path = "/v1/consumers/default/effects?state=finished&limit=500";
            let effects = get(gateway.private, path, &[]).await.json()["effects"].clone();
            assert_eq!(effects.as_array().unwrap().len(), 2 * n + round + 1, "{effects}");
            assert_eq!(effects[2 * n + round]["key"], once[0]["key"]);
        }
    }
    drop(gateway);
    for number in 1..=4 {
        let event = inboxd(&home, &["events", "show", &format!("{number}"), "--json"]).json_lines();
        assert_eq!(event[0]["consumers"][0]["state"], "done");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stale_receipt_is_told_and_is_no_failure() {
    let claimed =
        r#"{"deliveries":[{"receipt":"r-1","event":{"channel":"c","type":"t"},"message":null}]}"#;
    let json = |body: &'static str| async move { ([("content-type", "application/json")], body) };
    let router = Router::new()
        .route("/v1/consumers/default/claim", post(move || json(claimed)))
        .route("/v1/consumers/default/ack", post(move || json(r#"{"done":[],"stale":["r-1"]}"#)));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let limits = Limits {
        header_timeout: LIMIT,
        write_timeout: LIMIT,
        max_connections: 10,
        shutdown_grace: LIMIT,
    };
    let server = tokio::spawn(serve(listener, router, limits, Shutdown::new()));
    for mut worker in workers(address, "") {
        let ran = tokio::task::block_in_place(|| run(worker.arg("--once"), b""));
        assert_eq!((ran.code, &*ran.stdout), (Some(0), b"c  -  t\n".as_slice()), "{ran:?}");
        assert!(ran.stderr.contains("came too late: the event was given to somebody else"));
    }
    server.abort();
}
