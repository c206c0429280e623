//! Views of whatever comes: never a panic, and always with the same members.

use crate::json_reference::{documents, mutated, nearly_json, objects};
use inboxd::receive::telegram::update::KINDS;
use inboxd::view::{deleted, view};
use proptest::prelude::*;

const MEMBERS: [&str; 9] = [
    "kind",
    "conversation",
    "sender",
    "message_id",
    "text",
    "attachments",
    "reply_to",
    "direction",
    "sent_at",
];
const KEYS: &[&str] = &[
    "message",
    "callback_query",
    "message_reaction",
    "data",
    "conversation",
    "sender",
    "from",
    "id",
    "chat",
    "text",
    "caption",
    "photo",
    "file_id",
    "attachments",
    "url",
    "size",
    "sent_at",
    "date",
    "rich_message",
    "blocks",
    "cells",
    "items",
    "reply_to",
    "event",
    "reaction",
    "occurred_at",
    "message_ids",
    "ids",
    "new_reaction",
    "location",
    "latitude",
    "longitude",
    "credit",
];

fn types() -> impl Strategy<Value = String> {
    let telegram = prop::sample::select(&KINDS[..]).prop_map(|kind| format!("telegram.{kind}"));
    let unifyport = prop::sample::select(
        &[
            "message.received",
            "message.updated",
            "message.read",
            "message.reaction",
            "conversation.history",
            "group.join_request",
            "account.auth.required",
            "unknown",
        ][..],
    )
    .prop_map(|kind| format!("unifyport.{kind}"));
    prop_oneof![telegram, unifyport, any::<String>()]
}

proptest! {
    #[test]
    fn every_object_has_a_whole_view(
        event_type in types(),
        body in objects(documents(KEYS), KEYS),
    ) {
        let view = view(&event_type, body.to_string().as_bytes());
        let ours = event_type.starts_with("telegram.") || event_type.starts_with("unifyport.");
        prop_assert_eq!(view.is_some(), ours);
        if let Some(view) = view {
            let written = serde_json::to_value(view).unwrap();
            let members = written.as_object().unwrap();
            prop_assert_eq!(members.len(), MEMBERS.len());
            for member in MEMBERS {
                prop_assert!(members.contains_key(member), "{}", member);
            }
            prop_assert!(members["kind"].is_string() && members["attachments"].is_array());
        }
    }

    #[test]
    fn no_body_is_a_panic(
        event_type in types(),
        bytes: Vec<u8>,
        nearly in nearly_json(),
        changed in mutated(objects(documents(KEYS), KEYS).prop_map(|v| v.to_string().into())),
    ) {
        for body in [bytes, nearly, changed] {
            let _ = view(&event_type, &body);
            let _ = deleted(&event_type, &body);
        }
    }
}

#[test]
fn a_time_that_readers_of_rfc_3339_would_refuse_is_none() {
    for (sent_at, shown) in [
        ("2026-06-08T15:34:56+03:00", Some("2026-06-08T12:34:56Z")),
        ("-000001-06-08T12:34:56Z", None),
        ("+002026-06-08T12:34:56Z", None),
        ("yesterday", None),
    ] {
        let message = serde_json::json!({ "id": "1", "type": "text", "sent_at": sent_at });
        let body = serde_json::json!({ "data": { "message": message } }).to_string();
        let view = view("unifyport.message.received", body.as_bytes()).unwrap();
        assert_eq!(view.sent_at.as_deref(), shown, "{sent_at}");
    }
}
