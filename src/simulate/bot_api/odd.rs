//! Updates that are legal or conceivable and that a careless client stumbles over.

use bytes::Bytes;
use serde_json::{Value, json};

use super::sample::{GROUP, USER};
use super::update::{DATE, Update, message, user};

/// Every odd update here with a name, the largest one excepted. `n` tells it from others.
pub fn all(n: i64) -> Vec<(&'static str, Update)> {
    vec![
        ("unknown kind", unknown_kind(n)),
        ("no kind", no_kind()),
        ("two kinds", two_kinds(n)),
        ("raw callback data", raw_callback_data(n)),
        ("raw invoice payload", raw_invoice_payload(n)),
        ("NUL", nul(n)),
        ("lone surrogate", lone_surrogate(n)),
        ("deep", deep(n, 200)),
        ("large ids", large_ids(n)),
        ("inaccessible message", inaccessible_message(n)),
        ("message without a number", unnumbered_message(n)),
        ("rich message", rich_message(n)),
        ("channel post without a sender", bare_channel_post(n)),
        ("null members", null_members(n)),
        ("kind that is not an object", not_an_object()),
        ("inline button", inline_callback(n)),
    ]
}

/// A kind that a later version might bring.
pub fn unknown_kind(n: i64) -> Update {
    Update::new("telepathic_message", &json!({ "thought": n }))
}

/// Nothing beside the id.
pub fn no_kind() -> Update {
    // A space, because the queue refuses an update without bytes.
    Update::raw("message", " ")
}

/// Two kinds in one update.
pub fn two_kinds(n: i64) -> Update {
    let one = Update::text(USER, n, "first of two");
    let two = super::sample::sample("poll_answer", n);
    let member = [one.member().as_ref(), b",", two.member().as_ref()].concat();
    Update::raw("message", member)
}

/// Callback data that is not UTF-8: `"a<ff><fe>\u0000z"` with the bytes raw, as a user with a
/// changed client can send it. The whole answer is then no UTF-8.
pub fn raw_callback_data(n: i64) -> Update {
    let body = json!({
        "id": n.to_string(), "from": user(USER), "chat_instance": "-77", "data": PLACE,
        "message": message(USER, n, DATE, json!({ "text": "choose" })),
    });
    with_raw("callback_query", &body, b"a\xff\xfe\\u0000z")
}

/// An invoice payload that is not UTF-8.
pub fn raw_invoice_payload(n: i64) -> Update {
    let body = json!({ "id": n.to_string(), "from": user(USER), "invoice_payload": PLACE,
        "currency": "EUR", "total_amount": 100 });
    with_raw("pre_checkout_query", &body, b"\xc3\x28\x80")
}

/// A text with U+0000, which PostgreSQL's `text` and `jsonb` refuse.
pub fn nul(n: i64) -> Update {
    Update::text(USER, n, "before\0after")
}

/// A text with half a surrogate pair.
pub fn lone_surrogate(n: i64) -> Update {
    with_raw("message", &message(USER, n, DATE, json!({ "text": PLACE })), br"half \ud83d pair")
}

/// Arrays nested `depth` deep in a member that no client knows.
pub fn deep(n: i64, depth: usize) -> Update {
    let nest = "[".repeat(depth) + &"]".repeat(depth);
    let body = message(USER, n, DATE, json!({ "text": "deep", "nest": PLACE }));
    let text = Update::new("message", &body);
    let quoted = format!("\"{PLACE}\"");
    Update::raw("message", replaced(text.member(), quoted.as_bytes(), nest.as_bytes()))
}

/// A message of exactly `size` bytes, `"message":` included; at 2^19 the largest that is queued.
pub fn sized(n: i64, size: usize) -> Update {
    let empty = Update::text(USER, n, "").member().len();
    Update::text(USER, n, &"x".repeat(size.saturating_sub(empty)))
}

/// Ids of 52 bits, as large as any.
pub fn large_ids(n: i64) -> Update {
    const LARGEST: i64 = (1 << 52) - 1;
    let mut body = message(LARGEST, n, DATE, json!({ "text": "large ids" }));
    body["chat"] = json!({ "id": -LARGEST, "title": "Large", "type": "supergroup" });
    Update::new("message", &body)
}

/// A button under a message that the bot may not see any more: its date is 0.
pub fn inaccessible_message(n: i64) -> Update {
    let chat = json!({ "id": GROUP, "title": "Group", "type": "supergroup" });
    Update::new(
        "callback_query",
        &json!({
            "id": n.to_string(), "from": user(USER), "chat_instance": "-77", "data": "late",
            "message": { "chat": chat, "message_id": n, "date": 0 },
        }),
    )
}

/// A button under a message sent by inline mode: there is no message and no chat.
pub fn inline_callback(n: i64) -> Update {
    Update::new(
        "callback_query",
        &json!({ "id": n.to_string(), "from": user(USER), "chat_instance": "-77",
            "inline_message_id": "BAAAAB", "game_short_name": "chess" }),
    )
}

/// An ephemeral message: its number is 0, like that of every other.
pub fn unnumbered_message(n: i64) -> Update {
    let more = json!({ "text": format!("ephemeral {n}"), "ephemeral_message_id": n });
    Update::new("message", &message(USER, 0, DATE, more))
}

/// A message whose content is in blocks and which has no `text`.
pub fn rich_message(n: i64) -> Update {
    let blocks = json!([
        { "type": "paragraph", "text": ["plain ", { "type": "bold", "text": format!("bold {n}") }] },
        { "type": "list", "items": [
            { "blocks": [{ "type": "paragraph", "text": "first point" }] },
            { "blocks": [{ "type": "paragraph", "text": [["nested"], " point"] }] },
        ] },
        { "type": "table", "cells": [[{ "text": "cell" }, { "text": { "type": "italic", "text": "slanted" } }]] },
        { "type": "details", "summary": "more", "blocks": [{ "type": "math", "expression": "x^2" }] },
    ]);
    Update::new("message", &message(USER, n, DATE, json!({ "rich_message": { "blocks": blocks } })))
}

/// A channel post with neither `from` nor `sender_chat`.
pub fn bare_channel_post(n: i64) -> Update {
    let chat = json!({ "id": GROUP, "title": "News", "type": "channel" });
    let post = json!({ "message_id": n, "date": DATE, "chat": chat, "text": "bare" });
    Update::new("channel_post", &post)
}

/// Members that are null where an object is expected.
pub fn null_members(n: i64) -> Update {
    let body = json!({ "message_id": n, "date": null, "chat": null, "from": null, "text": null });
    Update::new("message", &body)
}

/// A kind whose value is no object.
pub fn not_an_object() -> Update {
    Update::new("message", &json!(["not", "an", "object"]))
}

const PLACE: &str = "@place@";

fn with_raw(kind: &'static str, body: &Value, raw: &[u8]) -> Update {
    let text = Update::new(kind, body);
    Update::raw(kind, replaced(text.member(), PLACE.as_bytes(), raw))
}

fn replaced(text: &Bytes, place: &[u8], by: &[u8]) -> Vec<u8> {
    match text.windows(place.len()).position(|window| window == place) {
        Some(at) => [&text[..at], by, &text[at + place.len()..]].concat(),
        None => text.to_vec(),
    }
}
