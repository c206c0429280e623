//! `events tail`.

use std::time::Duration;

use rustix::process::Signal;

use super::super::support::child::Process;
use super::*;

const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn tail_shows_the_newest_and_then_what_comes() {
    let bodies: Vec<String> =
        (1..=12).map(|n| message(&format!("evt_{n}"), "Ada", &format!("text-{n}."))).collect();
    let bodies: Vec<&[u8]> = bodies.iter().map(|body| body.as_bytes()).collect();
    let home = inbox(&bodies);
    // It needs no gateway, and one that starts meanwhile does not disturb it.
    let (mut tail, output) = Process::spawn_heard(&mut home.command(&["events", "tail"]));
    let seen = |text: &'static str| {
        output.wait_for(LIMIT, move |line| line.contains(text).then_some(()));
    };
    seen("text-12.");
    assert!(!output.text().contains("text-2."), "the newest ten: {}", output.text());
    let gateway = home.start();
    deliver(&home, &gateway, message("evt_13", "Ada", "text-13.").as_bytes());
    seen("text-13.");
    deliver(&home, &gateway, message("evt_14", "Ada", "text-14.").as_bytes());
    seen("text-14.");

    tail.signal(Signal::INT);
    assert_eq!(tail.wait(LIMIT).code(), Some(0));
    assert!(output.wait_for_end(LIMIT));
    let numbers: Vec<String> = output
        .text()
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().next().unwrap().to_owned())
        .collect();
    let expected: Vec<String> = (3..=14).map(|number| number.to_string()).collect();
    assert_eq!(numbers, expected, "each once, in order");
    assert_eq!(tail.stderr().text(), "");
}

#[test]
fn tail_follows_through_its_filter_and_prints_json_lines() {
    let home = inbox(&[b"{}", message("evt_1", "Ada", "one").as_bytes(), b"[]"]);
    let arguments = ["events", "tail", "--json", "--channel", "whatsapp", "--limit", "1"];
    let (mut tail, output) = Process::spawn_heard(&mut home.command(&arguments));
    let seen = |id: &'static str| {
        output.wait_for(LIMIT, move |line| {
            let event: Value = serde_json::from_str(line).unwrap();
            assert_eq!(event["event"]["channel"], "whatsapp");
            (event["event"]["externalid"] == id).then_some(())
        });
    };
    seen("evt_1");
    let gateway = home.start();
    for body in [&*message("evt_2", "Bob", "a\n\u{9b}b"), "7", &message("evt_3", "Bob", "c")] {
        deliver(&home, &gateway, body.as_bytes());
    }
    seen("evt_3");
    tail.signal(Signal::INT);
    assert_eq!(tail.wait(LIMIT).code(), Some(0));
    assert_eq!(output.text().lines().count(), 3, "{}", output.text());
}

#[test]
fn tail_resumes_behind_a_number() {
    let home = inbox(&[b"{}", b"[]", message("evt_1", "Ada", "one").as_bytes()]);
    let arguments = ["events", "tail", "--json", "--after", "1"];
    let (mut tail, output) = Process::spawn_heard(&mut home.command(&arguments));
    let seen = |number: &'static str| {
        output.wait_for(LIMIT, move |line| {
            let event: Value = serde_json::from_str(line).unwrap();
            (event["event"]["sequence"] == number).then_some(())
        });
    };
    seen("3");
    let gateway = home.start();
    deliver(&home, &gateway, b"7");
    seen("4");
    tail.signal(Signal::INT);
    assert_eq!(tail.wait(LIMIT).code(), Some(0));
    assert_eq!(output.text().lines().count(), 3, "{}", output.text());
    let both = inboxd(&home, &["events", "tail", "--after", "1", "--limit", "5"]);
    assert!(both.failed(2).contains("--limit"));
}
