use super::super::view;
use serde_json::{Value, json};

fn shown(kind: &str, content: &Value) -> Value {
    let update = json!({"update_id": 8100, kind: content});
    let view = view(&format!("telegram.{kind}"), update.to_string().as_bytes());
    serde_json::to_value(view).unwrap()
}

fn text_of(content: &Value) -> Value {
    shown("message", content)["text"].clone()
}

#[test]
fn a_message_is_complete() {
    let view = shown(
        "message",
        &json!({
            "message_id": 42, "date": 1_796_029_200,
            "from": {"id": 7, "first_name": "Ann", "last_name": "Lee", "username": "ann"},
            "chat": {"id": -1001234, "type": "supergroup", "title": "Team"},
            "reply_to_message": {"message_id": 40},
            "caption": "Look",
            "photo": [{"file_id": "small", "file_size": 1}, {"file_id": "big", "file_size": 9}]}),
    );
    assert_eq!(
        view,
        json!({
            "kind": "message",
            "conversation": {"id": "-1001234", "type": "supergroup", "title": "Team"},
            "sender": {"id": "7", "name": "Ann Lee", "username": "ann"},
            "message_id": "42",
            "text": "Look",
            "attachments": [
                {"kind": "image", "name": null, "mime": null, "size": 9, "ref": "big"}],
            "reply_to": "40",
            "direction": "inbound",
            "sent_at": "2026-11-30T09:00:00Z"})
    );
}

#[test]
fn every_kind_has_a_view() {
    for (kind, shown_kind) in [
        ("message", "message"),
        ("edited_message", "edit"),
        ("channel_post", "message"),
        ("edited_channel_post", "edit"),
        ("business_connection", "account"),
        ("business_message", "message"),
        ("edited_business_message", "edit"),
        ("deleted_business_messages", "delete"),
        ("guest_message", "message"),
        ("message_reaction", "reaction"),
        ("message_reaction_count", "reaction"),
        ("inline_query", "other"),
        ("chosen_inline_result", "other"),
        ("callback_query", "callback"),
        ("shipping_query", "other"),
        ("pre_checkout_query", "other"),
        ("purchased_paid_media", "other"),
        ("poll", "other"),
        ("poll_answer", "other"),
        ("my_chat_member", "membership"),
        ("chat_member", "membership"),
        ("chat_join_request", "membership"),
        ("chat_boost", "other"),
        ("removed_chat_boost", "other"),
        ("managed_bot", "account"),
        ("subscription", "other"),
        ("stopped_message_generation", "other"),
        ("from_the_future", "other"),
    ] {
        assert_eq!(shown(kind, &json!({}))["kind"], shown_kind, "{kind}");
        assert_eq!(shown(kind, &json!(null))["kind"], shown_kind, "{kind}");
    }
}

#[test]
fn a_chat_that_writes_is_the_sender() {
    let view = shown(
        "message",
        &json!({"from": {"id": 1_087_968_824}, "sender_chat": {"id": -5, "title": "Staff"}}),
    );
    assert_eq!(view["sender"], json!({"id": "-5", "name": "Staff", "username": null}));
    let view = shown("message_reaction", &json!({"user": {"id": 1}, "actor_chat": {"id": -5}}));
    assert_eq!(view["sender"]["id"], "-5");
    let view = shown("poll_answer", &json!({"user": {"id": 1}, "voter_chat": {"id": -6}}));
    assert_eq!(view["sender"]["id"], "-6");
}

#[test]
fn an_edit_keeps_the_time_it_was_sent() {
    let view = shown("edited_message", &json!({"date": 1_796_029_200, "edit_date": 1}));
    assert_eq!(view["sent_at"], "2026-11-30T09:00:00Z");
}

#[test]
fn a_business_account_s_own_messages_are_outbound() {
    let message = |from| json!({"chat": {"id": 7, "type": "private"}, "from": {"id": from}});
    assert_eq!(shown("business_message", &message(7))["direction"], "inbound");
    assert_eq!(shown("business_message", &message(8))["direction"], "outbound");
    assert_eq!(shown("message", &message(8))["direction"], "inbound");
}

#[test]
fn a_callback_has_no_time_of_its_own() {
    let view = shown(
        "callback_query",
        &json!({"id": "q", "from": {"id": 7}, "data": "yes",
            "message": {"message_id": 3, "date": 0, "chat": {"id": 9}}}),
    );
    assert_eq!(view["conversation"]["id"], "9");
    assert_eq!((&view["message_id"], &view["text"]), (&json!("3"), &json!("yes")));
    assert_eq!(view["sent_at"], Value::Null);
    let inline =
        shown("callback_query", &json!({"inline_message_id": "i", "game_short_name": "g"}));
    assert_eq!((&inline["message_id"], &inline["text"]), (&json!("i"), &json!("g")));
    assert_eq!(inline["conversation"], Value::Null);
}

#[test]
fn text_is_found_where_each_message_keeps_it() {
    assert_eq!(text_of(&json!({"text": "t", "caption": "c"})), "t");
    assert_eq!(text_of(&json!({"poll": {"question": "q"}})), "q");
    assert_eq!(text_of(&json!({"checklist": {"title": "l"}})), "l");
    assert_eq!(text_of(&json!({"web_app_data": {"data": "d"}})), "d");
    assert_eq!(text_of(&json!({"dice": {"value": 3}})), Value::Null);
    for (kind, member) in [
        ("inline_query", "query"),
        ("shipping_query", "invoice_payload"),
        ("purchased_paid_media", "paid_media_payload"),
        ("poll", "question"),
        ("chat_join_request", "bio"),
        ("subscription", "state"),
    ] {
        assert_eq!(shown(kind, &json!({member: "said"}))["text"], "said", "{kind}");
    }
}

#[test]
fn a_reaction_taken_back_is_empty() {
    let reaction = |new| shown("message_reaction", &json!({"message_id": 5, "new_reaction": new}));
    let view = reaction(json!([{"type": "emoji", "emoji": "👍"}, {"type": "custom_emoji"}]));
    assert_eq!((&view["message_id"], &view["text"]), (&json!("5"), &json!("👍")));
    assert_eq!(reaction(json!([]))["text"], "");
    assert_eq!(reaction(Value::Null)["text"], Value::Null);
}

#[test]
fn boosts_and_deletions_are_read() {
    let view = shown(
        "chat_boost",
        &json!({"chat": {"id": -1},
            "boost": {"add_date": 1_796_029_200, "source": {"user": {"id": 4}}}}),
    );
    assert_eq!(
        (&view["sender"]["id"], &view["sent_at"]),
        (&json!("4"), &json!("2026-11-30T09:00:00Z"))
    );
    let view = shown("removed_chat_boost", &json!({"source": {"user": {"id": 4}}}));
    assert_eq!(view["sender"]["id"], "4");
    let deleted = |ids| shown("deleted_business_messages", &json!({"message_ids": ids}));
    assert_eq!(deleted(json!([6]))["message_id"], "6");
    assert_eq!(deleted(json!([6, 7]))["message_id"], Value::Null);
}

#[test]
fn a_message_without_an_id_of_its_own_has_none() {
    assert_eq!(shown("message", &json!({"message_id": 0}))["message_id"], Value::Null);
}

#[test]
fn attachments_come_once_each() {
    let refs = |content: Value| -> Vec<String> {
        let view = shown("message", &content);
        let attachments = view["attachments"].as_array().unwrap();
        let show =
            |a: &Value| format!("{} {}", a["kind"].as_str().unwrap(), a["ref"].as_str().unwrap());
        attachments.iter().map(show).collect()
    };
    assert_eq!(
        refs(json!({"animation": {"file_id": "a"}, "document": {"file_id": "a"}})),
        ["animation a"]
    );
    assert_eq!(refs(json!({"video_note": {"file_id": "n"}})), ["video n"]);
    assert_eq!(refs(json!({"voice": {"file_id": "v"}})), ["voice v"]);
    assert_eq!(
        refs(json!({"paid_media": {"paid_media": [
            {"type": "preview"}, {"type": "photo", "photo": [{"file_id": "p"}]},
            {"type": "video", "video": {"file_id": "v"}}]}})),
        ["image p", "video v"]
    );
    let place = json!({"latitude": 59.9, "longitude": -30.25});
    assert_eq!(
        refs(json!({"location": place, "venue": {"title": "Pier", "location": place}})),
        ["location geo:59.9,-30.25"]
    );
    assert_eq!(refs(json!({"contact": {"phone_number": "+1"}})), ["contact tel:+1"]);
}

#[test]
fn a_rich_message_is_flattened_in_reading_order() {
    let blocks = json!([
        {"type": "heading", "text": "Title", "size": 1},
        {"type": "paragraph", "text": ["Hello ", {"type": "bold", "text": ["big ", "world"]}, "!"]},
        {"type": "divider"},
        {"type": "list", "items": [
            {"label": "1.", "blocks": [{"type": "paragraph", "text": "one"}]},
            {"label": "2.", "blocks": [{"type": "paragraph", "text": "two"}]}]},
        {"type": "table", "cells": [[{"text": "a"}, {"text": {"type": "code", "text": "b"}}], [{}]],
            "caption": "figures"},
        {"type": "details", "summary": "more", "blocks": [{"type": "paragraph", "text":
            {"type": "custom_emoji", "custom_emoji_id": "5", "alternative_text": "🙂"}}]},
        {"type": "mathematical_expression", "expression": "x^2"},
        {"type": "pullquote", "text": "said", "credit": "Ann"},
        {"type": "photo", "photo": [{"file_id": "p"}], "caption": {"text": "seen", "credit": "Bo"}}
    ]);
    let view = shown("message", &json!({"rich_message": {"blocks": blocks}}));
    assert_eq!(
        view["text"],
        "Title\nHello big world!\none\ntwo\na\tb\nfigures\nmore\n🙂\nx^2\nsaid\nAnn\nseen\nBo"
    );
    assert_eq!(view["attachments"][0]["ref"], "p");
    assert_eq!(text_of(&json!({"rich_message": {"blocks": [{"type": "divider"}]}})), Value::Null);
}
