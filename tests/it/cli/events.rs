//! `events list`, `show` and `raw`.

use std::process::Stdio;

use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use super::super::support::http::get;
use super::super::support::postgres;
use super::*;

/// Texts that strangers send to hurt a terminal, or that are hard to lay out.
const HOSTILE: [&str; 6] = [
    "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31mred",
    "first\r\nsecond\tthird\u{2028}fourth",
    "\u{202e}txet sdrawkcab a\u{2066}",
    "家族👨‍👩‍👧‍👦和世界上最长的一条消息在这里没有尽头也没有边界",
    "e\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}",
    "",
];

#[test]
fn a_list_fits_a_terminal_and_cannot_harm_it() {
    let bodies: Vec<String> = HOSTILE
        .iter()
        .enumerate()
        .map(|(n, text)| message(&format!("evt_{n}"), &format!("{text} 你好"), text))
        .collect();
    let mut bodies: Vec<&[u8]> = bodies.iter().map(|body| body.as_bytes()).collect();
    bodies.push(b"\xff not json");
    let home = inbox(&bodies);
    let list = inboxd(&home, &["events", "list"]).ok();
    let lines: Vec<&str> = list.lines().collect();
    assert_eq!(lines.len(), 1 + bodies.len(), "{list}");
    for line in &lines {
        assert!(line.width() <= 80, "{} columns: {line}", line.width());
        assert!(!line.contains(|c: char| c.is_control() || c == '\u{202e}'), "{line:?}");
    }
    assert!(lines[0].starts_with("NO  RECEIVED (UTC)  CHANNEL"), "{list}");
    assert!(lines[1].trim_start().starts_with("7  ") && lines[1].contains("unifyport.unknown"));
    assert!(lines[2].contains("unifyport.message.rec"), "{list}");
    assert!(lines[4].contains("家族👨‍👩‍👧‍👦和世界上") && lines[4].ends_with('…'), "{list}");
    assert!(lines[6].contains("first second third"), "{list}");

    for number in 1..=bodies.len() {
        let shown = inboxd(&home, &["events", "show", &number.to_string()]).ok();
        assert!(!shown.contains(|c: char| c.is_control() && c != '\n'), "{shown:?}");
        let json = inboxd(&home, &["events", "show", &number.to_string(), "--json"]).ok();
        assert!(!json.trim_end().contains(char::is_control), "{json:?}");
    }
    let json = inboxd(&home, &["events", "list", "--json"]).json_lines();
    let texts =
        json.iter().rev().map(|item| item["event"]["data"]["data"]["message"]["text"].as_str());
    let texts: Vec<_> = texts.take(HOSTILE.len()).map(Option::unwrap).collect();
    assert_eq!(texts, HOSTILE, "the meaning is kept");
}

#[tokio::test]
async fn json_is_what_the_api_answers() {
    let home = home();
    let gateway = home.start();
    let spread = "{\n \"type\": \"spread\",\r\n\t\"n\": 1.10, \"n\": 12345678901234567890\n}";
    for body in [&*message("evt_1", "Ada", "Hi"), spread, "\u{feff}odd"] {
        deliver(&home, &gateway, body.as_bytes());
    }
    let api: Value = get(gateway.private, "/v1/events", &[]).await.json();
    let list = inboxd(&home, &["events", "list", "--json"]);
    assert!(list.stdout.windows(4).any(|text| text == b"1.10"), "digits are kept");
    assert_eq!(Value::Array(list.json_lines()), api["events"]);

    let id = api["events"][2]["event"]["id"].as_str().unwrap();
    let one: Value = get(gateway.private, &format!("/v1/events/{id}"), &[]).await.json();
    for id in [id, "1"] {
        assert_eq!(inboxd(&home, &["events", "show", id, "--json"]).json_lines()[0], one);
    }
    let shown = inboxd(&home, &["events", "show", id]).ok();
    let subject = "unifyport/main/acc/conversation/Ada";
    for line in [
        &*format!("id            {id}"),
        "type          unifyport.message.received",
        "sender        Ada (Ada)",
        "text          Hi",
        &format!("conversation  {subject}"),
        "secret        number 1 of the configured",
        "work          default: ready, attempt 0, due ",
    ] {
        assert!(shown.lines().any(|shown| shown.starts_with(line)), "{line}\n{shown}");
    }
}

#[test]
fn raw_writes_the_exact_bytes() {
    let every_byte: Vec<u8> = (0..=255).collect();
    let bodies: [&[u8]; 4] = [b"", &every_byte, b"no line break", b"{ \"n\": 1.10 }\r\n\n"];
    let home = inbox(&bodies);
    for (number, body) in (1..).zip(bodies) {
        let raw = inboxd(&home, &["events", "raw", &format!("{number}")]);
        assert_eq!((raw.code, &*raw.stdout, &*raw.stderr), (Some(0), body, ""));
    }
}

#[test]
fn filters_choose() {
    let bodies = [message("evt_1", "Ada", "one"), message("evt_2", "Bob", "two")];
    let home = inbox(&[bodies[0].as_bytes(), bodies[1].as_bytes(), b"{}"]);
    let ids = |arguments: &[&str]| -> Vec<String> {
        let list = inboxd(&home, &[&["events", "list", "--json"], arguments].concat());
        let number = |item: Value| item["event"]["sequence"].as_str().unwrap().to_owned();
        list.json_lines().into_iter().map(number).collect()
    };
    let subject = "unifyport/main/acc/conversation/Ada";
    assert_eq!(ids(&[]), ["3", "2", "1"]);
    assert_eq!(ids(&["--limit", "2"]), ["3", "2"]);
    assert_eq!(ids(&["--channel", "whatsapp"]), ["2", "1"]);
    assert_eq!(ids(&["--type", "unifyport.unknown"]), ["3"]);
    assert_eq!(ids(&["--conversation", subject]), ["1"]);
    assert_eq!(ids(&["--source", "main", "--channel", "whatsapp", "--limit", "1"]), ["2"]);
    assert!(ids(&["--source", "other"]).is_empty());
    assert_eq!(ids(&["--since", "1h"]), ["3", "2", "1"]);
    assert!(ids(&["--until", "1h"]).is_empty());
    assert!(ids(&["--since", "2999-01-01T00:00:00Z"]).is_empty());
    assert_eq!(ids(&["--until", "2999-01-01T00:00:00+02:00"]), ["3", "2", "1"]);
    let table = inboxd(&home, &["events", "list", "--source", "other"]).ok();
    assert_eq!(table, "NO  RECEIVED (UTC)  CHANNEL  SOURCE  SENDER  TEXT OR TYPE\n");
}

#[test]
fn a_reader_that_had_enough_is_no_failure() {
    let home = inbox(&[b"{}"]);
    for arguments in [
        &["events", "list"][..],
        &["events", "list", "--json"],
        &["events", "raw", "1"],
        &["events", "tail"],
        &["sources", "list"],
        &["check"],
        &["migrate"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = home.command(arguments);
        let output = command.stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped()).spawn();
        let output = output.unwrap().wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(output.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn what_is_not_there_is_said() {
    let empty = home();
    let error = inboxd(&empty, &["events", "list"]).failed(1);
    assert_eq!(
        error,
        "cannot open the store sqlite:inboxd.db: there is no inbox at inboxd.db; `inboxd migrate` \
         or `inboxd serve` makes it\n"
    );
    let home = inbox(&[]);
    let remedy = "it was removed, or never here; `inboxd events list` shows what is\n";
    for command in ["show", "raw"] {
        for (id, named) in [
            ("1", "the number 1"),
            ("-1", "the number -1"),
            ("01939f5e-0000-7000-8000-000000000000", "the id 01939f5e-0000-7000-8000-000000000000"),
        ] {
            let error = inboxd(&home, &["events", command, "--", id]).failed(1);
            assert_eq!(error, format!("there is no event with {named}: {remedy}"));
        }
        let error = inboxd(&home, &["events", command, "first"]).failed(2);
        assert!(error.contains("write the id of an event, or its number"), "{error}");
    }
    for wrong in [["--since", "yesterday"], ["--limit", "0"], ["--limit", "many"]] {
        let error = inboxd(&home, &[&["events", "list"], &wrong[..]].concat()).failed(2);
        assert!(error.contains(wrong[0]), "{error}");
    }
}

#[test]
fn postgres_is_read_alike() {
    let url = postgres::shared().create_database();
    let home = home().env("INBOXD_STORE_URL", &url);
    let gateway = home.start();
    deliver(&home, &gateway, message("evt_1", "Ada", "one").as_bytes());
    deliver(&home, &gateway, b"\xff");
    assert_eq!(inboxd(&home, &["events", "list", "--json", "--since", "1h"]).json_lines().len(), 2);
    assert!(inboxd(&home, &["events", "list"]).ok().contains("Ada"));
    let list = inboxd(&home, &["events", "list", "--json", "--type", "unifyport.unknown"]);
    let number = list.json_lines()[0]["event"]["sequence"].as_str().unwrap().to_owned();
    assert_eq!(inboxd(&home, &["events", "raw", &number]).stdout, b"\xff");
    assert!(inboxd(&home, &["sources", "list"]).ok().contains("unifyport/main"));
}
