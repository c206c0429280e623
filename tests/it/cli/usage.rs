//! Help, wrong use, and a configuration with faults.

use super::*;

#[test]
fn every_command_explains_itself() {
    let home = Home::new("");
    let groups: [(&str, &[&str]); 13] = [
        ("serve", &[]),
        ("demo", &[]),
        ("check", &[]),
        ("migrate", &[]),
        ("events", &["list", "show", "raw", "tail"]),
        ("replay", &[]),
        ("dead", &["list", "show", "requeue"]),
        ("sources", &["list", "forget"]),
        ("consumers", &["list", "show", "add", "pause", "resume", "remove"]),
        ("unifyport", &["sign", "verify", "send"]),
        ("openapi", &[]),
        ("completions", &[]),
        ("man", &[]),
    ];
    let all = inboxd(&home, &["--help"]).ok();
    for (group, commands) in groups {
        assert!(all.lines().any(|line| line.trim_start().starts_with(group)), "{group}\n{all}");
        let help = inboxd(&home, &[group, "--help"]).ok();
        for command in commands {
            assert!(help.contains(command), "{help}");
            let help = inboxd(&home, &[group, command, "--help"]).ok();
            assert!(help.contains("Example: "), "{help}");
        }
        assert!(!commands.is_empty() || help.contains("Example: "), "{help}");
    }
}

#[test]
fn wrong_use_exits_with_2() {
    let home = Home::new("");
    for wrong in [
        &[][..],
        &["inbox"],
        &["events"],
        &["events", "list", "--jso"],
        &["events", "show"],
        &["replay", "--all", "--since", "1h"],
        &["replay", "--all", "--id", "1"],
        &["dead", "requeue", "--all", "1"],
        &["sources", "forget"],
        &["unifyport", "sign", "a", "b"],
        &["demo", "now"],
        &["completions", "cmd"],
        &["man", "inbox"],
    ] {
        assert!(!inboxd(&home, wrong).failed(2).is_empty(), "{wrong:?}");
    }
}

#[test]
fn each_fault_of_the_configuration_is_a_line() {
    let home = Home::new("max_bodi = 1\nmax_body = 5\n[store]\nurl = 7\n[[unifyport]]\n");
    for command in
        [&["serve"][..], &["check"], &["migrate"], &["events", "list"], &["sources", "list"]]
    {
        let faults = inboxd(&home, command).failed(1);
        let lines: Vec<&str> = faults.lines().collect();
        assert_eq!(lines.len(), 5, "{faults}");
        for (line, key) in
            lines.iter().zip(["server.max_bodi", "server.max_body", "store.url", "name", "secrets"])
        {
            assert!(line.contains("inboxd.toml:") && line.contains(key), "{key} in {line}");
        }
    }
}

#[test]
fn serve_with_nothing_to_receive_says_how_to_configure_a_receiver() {
    let error = inboxd(&Home::new(""), &["serve"]).failed(1);
    assert!(error.starts_with("there is nothing to receive: set INBOXD_"), "{error}");
    assert!(error.contains("[[unifyport]]"), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
}

#[test]
fn completions_are_printed_for_every_shell() {
    let home = Home::new("");
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = inboxd(&home, &["completions", shell]).ok();
        assert!(script.contains("unifyport") && script.contains("secret-env"), "{shell}");
    }
    let script = inboxd(&home, &["completions", "bash"]).ok();
    let checked = run(Command::new("bash").arg("-n"), script.as_bytes());
    assert_eq!((checked.code, &*checked.stderr), (Some(0), ""));
}

#[test]
fn each_command_has_a_manual_page() {
    let home = Home::new("");
    let page = inboxd(&home, &["man"]).ok();
    assert!(page.contains(".TH inboxd 1") && page.contains("serve"), "{page}");
    let page = inboxd(&home, &["man", "events", "list"]).ok();
    for expected in [".TH inboxd-events-list 1", "conversation", "Example: "] {
        assert!(page.contains(expected), "{expected}\n{page}");
    }
}

#[test]
fn a_store_that_cannot_be_opened_is_said_with_the_remedy() {
    let home = Home::new("");
    std::fs::write(
        home.dir().join("text.db"),
        "not a database, but longer than a header of one\n".repeat(9),
    )
    .unwrap();
    for (url, remedy) in [
        ("sqlite:no/such/folder/inboxd.db", "the folder no/such/folder is not there; create it"),
        ("sqlite:text.db", "is no SQLite database; point store.url at another one"),
    ] {
        let output = home.command(&["migrate"]).env("INBOXD_STORE_URL", url).output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{words}");
        assert!(words.contains(remedy), "{words}");
    }
}
