//! The view of every documented kind of event, one file each, written by hand from what the channels
//! document: `golden/<channel>/<kind>.json` holds a case or a list of them.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use inboxd::receive::telegram::update::KINDS;
use inboxd::view::view;
use serde::Deserialize;
use serde_json::Value;

/// Every event type that UnifyPort documents.
pub(crate) const UNIFYPORT: [&str; 18] = [
    "message.received",
    "message.updated",
    "message.deleted",
    "message.read",
    "message.reaction",
    "message.delivered",
    "conversation.updated",
    "conversation.deleted",
    "conversation.cleared",
    "conversation.history",
    "group.updated",
    "group.join_request",
    "account.status.updated",
    "account.started",
    "account.history.synced",
    "account.auth.required",
    "account.auth.succeeded",
    "account.auth.failed",
];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    about: String,
    #[serde(rename = "type")]
    event_type: String,
    body: Value,
    message: Value,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum File {
    One(Case),
    Several(Vec<Case>),
}

fn folder(channel: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/golden")).join(channel)
}

/// The kinds that have a file.
fn kinds(channel: &str) -> BTreeSet<String> {
    let files = fs::read_dir(folder(channel)).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    names.map(|name| name.strip_suffix(".json").expect("a JSON file").to_owned()).collect()
}

fn cases(channel: &str, kind: &str) -> Vec<Case> {
    let path = folder(channel).join(format!("{kind}.json"));
    let text = fs::read_to_string(&path).unwrap();
    match serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    {
        File::One(case) => vec![case],
        File::Several(cases) => cases,
    }
}

fn owned(kinds: &[&str]) -> BTreeSet<String> {
    kinds.iter().map(|kind| kind.to_string()).collect()
}

#[test]
fn every_documented_kind_has_a_file_and_no_other() {
    assert_eq!(kinds("telegram"), owned(&KINDS));
    assert_eq!(kinds("unifyport"), owned(&UNIFYPORT));
}

#[test]
fn every_view_is_the_one_that_was_reasoned_out() {
    let mut faults = Vec::new();
    for channel in ["telegram", "unifyport"] {
        for kind in kinds(channel) {
            let cases = cases(channel, &kind);
            assert!(!cases.is_empty(), "{channel}.{kind}");
            for case in cases {
                assert_eq!(case.event_type, format!("{channel}.{kind}"));
                let made = view(&case.event_type, case.body.to_string().as_bytes());
                let made = serde_json::to_value(made).unwrap();
                if made != case.message {
                    faults.push(format!(
                        "{channel}.{kind}, {}:\n  made     {made}\n  expected {}",
                        case.about, case.message
                    ));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
