//! `--keep`: what it prints works, and Ctrl-C ends it.

use rustix::process::Signal;
use serde_json::Value;

use super::super::support::child::Process;
use super::*;

/// Runs a line that the demo printed, with this binary as `inboxd`.
fn shell(line: &str) -> String {
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_inboxd"));
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", binary.parent().unwrap().display());
    let line = line.replace("curl ", "curl -sS --noproxy '*' ");
    let output = Command::new("sh").args(["-ec", &line]).env("PATH", path).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}\n{stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// The printed commands, each on one line.
fn commands(shown: &str) -> Vec<String> {
    let (_, help) = shown.split_once("Left running until Ctrl-C").unwrap();
    let joined = help.replace("\\\n", "");
    let lines = joined.lines().filter_map(|line| line.strip_prefix("   "));
    lines.map(str::to_owned).collect()
}

#[test]
fn what_it_prints_can_be_typed_until_ctrl_c() {
    let folder = TestDir::new("demo");
    // Taken, if they are not already: it goes elsewhere, where no other process asks.
    let _usual = ["127.0.0.1:8080", "127.0.0.1:8081"].map(std::net::TcpListener::bind);
    let (mut running, output) = Process::spawn_heard(&mut demo(&folder, &["--keep"]));
    let told = output.find(LIMIT, |line| line.ends_with("inboxd events tail").then_some(()));
    assert!(told.is_some(), "{}\n{}", output.text(), running.stderr().text());
    let commands = commands(&output.text());
    let [events, sources, claim, ack, deliver, tail] = &commands[..] else {
        panic!("{commands:?}")
    };
    let json = |text: String| serde_json::from_str::<Value>(&text).unwrap();
    assert_eq!(json(shell(events))["events"].as_array().unwrap().len(), 2);
    assert_eq!(json(shell(sources))["sources"].as_array().unwrap().len(), 2);

    let claimed = json(shell(claim));
    let delivery = &claimed["deliveries"][0];
    assert!(delivery["message"]["text"].as_str().unwrap().starts_with("Message 1 by"));
    let receipt = delivery["receipt"].as_str().unwrap();
    let acked = json(shell(&ack.replace("RECEIPT", receipt)));
    assert_eq!(acked["done"][0], receipt);

    assert_eq!(shell(deliver), "204 No Content\n");
    let list = tail.replace("events tail", "events list --channel line --limit 1");
    assert!(shell(&list).contains("message.received"));

    running.signal(Signal::INT);
    assert_eq!(running.wait(LIMIT).code(), Some(0), "{}", running.stderr().text());
    assert!(running.stderr().wait_for_end(LIMIT));
    assert_eq!(running.stderr().text(), "");
    assert!(is_empty(&folder));
}

#[test]
fn a_signal_before_the_end_is_no_success() {
    let folder = TestDir::new("demo");
    let (mut running, output) = Process::spawn_heard(&mut demo(&folder, &[]));
    output.wait_for(LIMIT, |line| line.contains("throw-away").then_some(()));
    running.signal(Signal::TERM);
    let code = running.wait(LIMIT).code();
    assert!(running.stderr().wait_for_end(LIMIT));
    // It may have been done already.
    let told = running.stderr().text();
    let expected = if code == Some(0) { "" } else { "the demo was stopped before its end\n" };
    assert!(matches!(code, Some(0 | 1)), "{code:?}");
    assert_eq!(told, expected);
    assert!(is_empty(&folder));
}
