//! What it prints, and that it comes out the same every time.

use std::time::Instant;

use unicode_width::UnicodeWidthStr;

use super::*;

/// Standard output of one demo, and how long it took; the test fails if the demo did, or if it wrote
/// to stderr.
fn shown() -> (String, Duration) {
    let folder = TestDir::new("demo");
    let started = Instant::now();
    let output = demo(&folder, &[]).output().unwrap();
    let took = started.elapsed();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), &*stderr), (Some(0), ""), "{:?}", output.stdout);
    assert!(is_empty(&folder));
    (String::from_utf8(output.stdout).unwrap(), took)
}

#[test]
fn it_shows_and_proves_the_whole_thing() {
    let (shown, _) = shown();
    for fact in [
        "1. Messages come in",
        "one of them\n              is not UTF-8",
        "2. The gateway dies between commit and confirmation",
        "started again on the same file",
        "retried, as after a lost answer: 204",
        "under another event id (replay): 204",
        "the secret did not sign: 401",
        "update again beside a new one: one known, one stored",
        "4. A worker claims over HTTP",
        "13 arrivals (5 updates, 8 deliveries) = 9 events + 3 duplicates + 1 refused",
        "9 of 9 events worked on once, in the order of receipt",
        "0 lost and 0 doubled",
        "inboxd demo --keep",
    ] {
        assert!(shown.contains(fact), "{fact}\n{shown}");
    }
    let (_, table) = shown.split_once("CHANNEL ").unwrap();
    let channels: Vec<&str> =
        table.lines().skip(1).take(9).filter_map(|line| line.split(' ').next()).collect();
    let expected = "telegram telegram whatsapp line zalo x telegram telegram whatsapp";
    assert_eq!(channels.join(" "), expected);
    assert!(table.contains("line      ゆき        注文しました"), "{shown}");
    assert!(!shown.contains(|c: char| c.is_control() && c != '\n'), "{shown:?}");
    let wide: Vec<&str> = shown.lines().filter(|line| line.width() > 80).collect();
    assert!(wide.is_empty(), "{wide:?}");
}

#[test]
fn it_comes_out_the_same_every_time() {
    let runs: Vec<(String, Duration)> = (0..3).map(|_| shown()).collect();
    for (text, _) in &runs {
        assert_eq!(*text, runs[0].0);
    }
    // The quickest, because the machine may be busy with other tests.
    let quickest = runs.iter().map(|(_, took)| *took).min().unwrap();
    assert!(quickest < Duration::from_secs(10), "{quickest:?}");
}

#[test]
fn only_its_counts_and_its_folder_decide_the_exit_code() {
    let folder = TestDir::new("demo");
    // Nobody reads the output, but the counts are right: that is a success.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let unread = demo(&folder, &[]).stdout(writer).status().unwrap();
    assert_eq!(unread.code(), Some(0));

    let unwritable = demo(&folder, &[]).env("TMPDIR", folder.join("missing")).output().unwrap();
    assert_eq!(unwritable.status.code(), Some(1));
    let error = String::from_utf8(unwritable.stderr).unwrap();
    assert!(error.contains("name another folder with TMPDIR"), "{error}");
    assert!(is_empty(&folder));
}
