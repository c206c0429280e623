//! What is read of a delivery or an update at receipt, against a reading with `serde_json`.

use crate::json_reference::{documents, mutated, nearly_json, objects};
use inboxd::receive::telegram::update::{self, KINDS, NO_KIND};
use inboxd::receive::unifyport::{envelope, timestamp};
use proptest::prelude::*;
use serde_json::Value;

const ENVELOPE: &[&str] = &[
    "type",
    "provider",
    "account_id",
    "occurred_at",
    "data",
    "conversation",
    "id",
    "chat_id",
    "conversation_id",
];
const UPDATE: &[&str] = &[
    "update_id",
    "message",
    "edited_message",
    "callback_query",
    "chat_boost",
    "removed_chat_boost",
    "business_message",
    "chat",
    "id",
    "date",
    "edit_date",
    "boost",
    "add_date",
    "remove_date",
    "business_connection_id",
    "poll",
    "novelty",
];

fn text(value: &Value, max: usize) -> Option<String> {
    let text = value.as_str()?;
    let fits = !text.is_empty() && text.len() <= max && !text.chars().any(char::is_control);
    fits.then(|| text.to_owned())
}

fn id(value: &Value) -> Option<String> {
    value.as_i64().map(|id| id.to_string()).or_else(|| text(value, 255))
}

fn slow_envelope(body: &Value) -> envelope::Envelope {
    let data = &body["data"];
    envelope::Envelope {
        event_type: text(&body["type"], 128),
        provider: text(&body["provider"], 128),
        account_id: text(&body["account_id"], 255),
        occurred_at_us: body["occurred_at"]
            .as_str()
            .and_then(|time| timestamp::parse(time.as_bytes()).ok()),
        conversation_id: id(&data["conversation"]["id"])
            .or_else(|| id(&data["chat_id"]))
            .or_else(|| id(&data["conversation_id"])),
    }
}

/// Chat, business connection and time of an update of this kind.
fn slow_facts(kind: &str, content: &Value) -> (Option<i64>, Option<String>, Option<i64>) {
    let holder = match kind {
        "callback_query" => &content["message"],
        "message" | "edited_message" | "business_message" | "chat_boost" | "removed_chat_boost" => {
            content
        }
        _ => &Value::Null,
    };
    let date = |value: &Value| {
        value
            .as_i64()
            .filter(|date| *date > 0 && *date < 253_370_764_800)
            .map(|date| date * 1_000_000)
    };
    let time = match kind {
        "message" | "business_message" => date(&content["date"]),
        "edited_message" => date(&content["edit_date"]).or_else(|| date(&content["date"])),
        "chat_boost" => date(&content["boost"]["add_date"]),
        "removed_chat_boost" => date(&content["remove_date"]),
        _ => None,
    };
    (holder["chat"]["id"].as_i64(), text(&holder["business_connection_id"], 100), time)
}

proptest! {
    #[test]
    fn the_envelope_agrees_with_a_slow_reading(body in objects(documents(ENVELOPE), ENVELOPE)) {
        prop_assert_eq!(envelope::read(body.to_string().as_bytes()), slow_envelope(&body));
    }

    #[test]
    fn an_update_agrees_with_a_slow_reading(update in objects(documents(UPDATE), UPDATE)) {
        let facts = update::read(update.to_string().as_bytes());
        let id = update["update_id"].as_i64().filter(|id| (0..2_000_000_000).contains(id));
        prop_assert_eq!(facts.update_id, id);
        // `serde_json` sorts the members it writes, so document order is the order of the map.
        let kinds: Vec<&str> = update
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .filter(|key| *key != "update_id")
            .filter(|key| text(&Value::from(*key), 100).is_some())
            .collect();
        let kind = kinds
            .iter()
            .find(|kind| KINDS.contains(kind))
            .or(kinds.first())
            .copied()
            .unwrap_or(NO_KIND);
        prop_assert_eq!(&facts.kind, kind);
        prop_assert_eq!(
            facts.anomalies.contains(&update::Anomaly::SeveralKinds),
            kinds.len() > 1
        );
        prop_assert_eq!(
            (facts.chat_id, facts.business_connection_id, facts.time_us),
            slow_facts(kind, &update[kind])
        );
    }

    #[test]
    fn nothing_is_a_panic(
        bytes: Vec<u8>,
        nearly in nearly_json(),
        body in mutated(objects(documents(ENVELOPE), ENVELOPE).prop_map(|v| v.to_string().into())),
        update in mutated(objects(documents(UPDATE), UPDATE).prop_map(|v| v.to_string().into())),
    ) {
        for text in [bytes, nearly, body, update] {
            let read = envelope::read(&text);
            let facts = update::read(&text);
            prop_assert!(facts.update_id.is_none_or(|id| (0..2_000_000_000).contains(&id)));
            prop_assert!(!facts.kind.is_empty());
            prop_assert!(read.event_type.is_none_or(|t| !t.is_empty() && t.len() <= 128));
        }
    }
}
