//! The signals that end the process.
use std::process::Command;

use inboxd::shutdown::Shutdown;

#[tokio::test]
async fn the_first_signal_drains_and_the_second_stops_at_once() {
    let shutdown = Shutdown::new();
    shutdown.listen_for_signals().unwrap();
    send("TERM");
    shutdown.soft().await;
    assert!(!shutdown.is_hard());
    send("INT");
    shutdown.hard().await;
}

fn send(signal: &str) {
    // The shell's own `kill`, because the command of that name is not installed everywhere.
    let kill = format!("kill -s {signal} {}", std::process::id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
}
