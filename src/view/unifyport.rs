//! Views of UnifyPort events.
//!
//! Field names: UnifyPort's published reference "Webhook delivery and event semantics" and its demo
//! receiver. It gives no complete sample of attachments and answers, so those are read under every
//! usual name.

use serde_json::Value;

use super::{Attachment, Conversation, Direction, Kind, Message, Sender, first, id, text, time};

/// Makes the view of an event of this UnifyPort type, such as `message.received`.
pub(super) fn view(event_type: &str, body: &Value) -> Message {
    let data = &body["data"];
    let message = &data["message"];
    let kind = kind(event_type);
    let mut view = Message {
        conversation: conversation(data),
        sender: first(data, &["sender", "requester", "actor", "sender_id"], sender),
        message_id: message_id(kind, data),
        ..Message::of_kind(kind)
    };
    match kind {
        Kind::Message | Kind::Edit => {
            view.text = text(&message["text"]);
            view.attachments = attachments(&message["attachments"]);
            view.reply_to = first(message, &["reply_to", "reply_to_message_id"], reply_to);
            view.direction = direction(&message["direction"]);
            view.sent_at = time(&message["sent_at"]);
        }
        Kind::Reaction => {
            // Empty means that it was taken back, so it is kept.
            let reaction = &data["event"]["reaction"];
            view.text = reaction.as_str().or_else(|| reaction["emoji"].as_str()).map(str::to_owned);
            view.direction = direction(&message["direction"]);
        }
        Kind::Read => view.sent_at = happened(data, "read_at"),
        Kind::Delivered => view.sent_at = happened(data, "delivered_at"),
        // What an account event carries may be a sign-in code, so nothing of it is repeated.
        _ => {}
    }
    if view.sent_at.is_none() && !matches!(kind, Kind::Message | Kind::Edit) {
        view.sent_at = time(&body["occurred_at"]);
    }
    view
}

/// The messages that an event of this type deletes.
pub(super) fn deleted(event_type: &str, body: &Value) -> Vec<String> {
    let message = &body["data"]["message"];
    let several = message["ids"].as_array().into_iter().flatten();
    let ids = std::iter::once(&message["id"]).chain(several).filter_map(id);
    ids.filter(|_| event_type == "message.deleted").collect()
}

fn kind(event_type: &str) -> Kind {
    match event_type {
        "message.received" => Kind::Message,
        "message.updated" => Kind::Edit,
        "message.deleted" => Kind::Delete,
        "message.read" => Kind::Read,
        "message.reaction" => Kind::Reaction,
        "message.delivered" => Kind::Delivered,
        "conversation.updated"
        | "conversation.deleted"
        | "conversation.cleared"
        | "conversation.history"
        | "group.updated" => Kind::Conversation,
        "group.join_request" => Kind::Membership,
        "account.status.updated"
        | "account.started"
        | "account.history.synced"
        | "account.auth.required"
        | "account.auth.succeeded"
        | "account.auth.failed" => Kind::Account,
        _ => Kind::Other,
    }
}

fn conversation(data: &Value) -> Option<Conversation> {
    let conversation = &data["conversation"];
    Some(Conversation {
        id: id(&conversation["id"]).or_else(|| first(data, &["chat_id", "conversation_id"], id))?,
        r#type: text(&conversation["type"]),
        title: text(&conversation["title"]),
    })
}

/// A sender is an object; one first-party page has its bare id instead.
fn sender(value: &Value) -> Option<Sender> {
    Some(Sender {
        id: id(value).or_else(|| id(&value["id"]))?,
        name: text(&value["name"]),
        username: text(&value["username"]),
    })
}

fn message_id(kind: Kind, data: &Value) -> Option<String> {
    let message = &data["message"];
    let keys: &[&str] = match kind {
        Kind::Reaction => &["target_message_id", "id"],
        // A Telegram edit may name the message here.
        Kind::Edit => &["id", "edit_message_id"],
        _ => &["id"],
    };
    first(message, keys, id)
        .or_else(|| (kind == Kind::Edit).then(|| id(&data["edit_message_id"])).flatten())
        // Receipts may name several messages; one of several would mislead.
        .or_else(|| match message["ids"].as_array()?.as_slice() {
            [only] => id(only),
            _ => None,
        })
}

fn attachments(value: &Value) -> Vec<Attachment> {
    let Some(attachments) = value.as_array() else { return Vec::new() };
    attachments.iter().filter(|attachment| attachment.is_object()).map(attachment).collect()
}

/// Big media come without a URL: then the attachment is still shown, with what else it says.
fn attachment(value: &Value) -> Attachment {
    let either =
        |keys: &[&str]| first(value, keys, text).or_else(|| first(&value["metadata"], keys, text));
    let sizes = ["size", "file_size", "size_bytes"];
    Attachment {
        kind: either(&["type", "kind"]).unwrap_or_else(|| "unknown".to_owned()),
        name: either(&["name", "file_name", "filename"]),
        mime: either(&["mime", "mime_type", "content_type"]),
        size: first(value, &sizes, Value::as_u64)
            .or_else(|| first(&value["metadata"], &sizes, Value::as_u64)),
        r#ref: either(&["url", "file_url"]),
    }
}

/// The message answered, not `reply_token`, which is the handle for answering this one.
fn reply_to(value: &Value) -> Option<String> {
    id(value).or_else(|| first(value, &["message_id", "id"], id))
}

fn direction(value: &Value) -> Option<Direction> {
    match value.as_str()? {
        "inbound" => Some(Direction::Inbound),
        "outbound" => Some(Direction::Outbound),
        _ => None,
    }
}

fn happened(data: &Value, key: &str) -> Option<String> {
    [data, &data["message"], &data["event"]].into_iter().find_map(|holder| time(&holder[key]))
}

#[cfg(test)]
mod tests {
    use super::super::view;
    use serde_json::{Value, json};

    fn shown(event_type: &str, data: Value) -> Value {
        let body = json!({"id": "evt_1", "type": event_type, "provider": "whatsapp",
            "account_id": "acc", "occurred_at": "2026-06-08T12:34:56Z", "data": data});
        let view = view(&format!("unifyport.{event_type}"), body.to_string().as_bytes());
        serde_json::to_value(view).unwrap()
    }

    #[test]
    fn a_received_message_is_complete() {
        let view = shown(
            "message.received",
            json!({
                "conversation": {"id": "8613912345678", "type": "user", "title": "Jordan Lee"},
                "sender": {"id": 77, "type": "user", "name": "Jordan Lee", "username": "jl"},
                "message": {"id": "wamid.HBgM", "type": "image", "text": "Look 🌊",
                    "direction": "inbound", "sent_at": "2026-06-08T15:34:55+03:00",
                    "reply_token": "rt_secret", "reply_to": {"message_id": "wamid.A"},
                    "attachments": [
                        {"type": "image", "url": "https://files.example/1?sig=x",
                         "mime_type": "image/png", "file_name": "a.png", "size": 12},
                        {"type": "video", "metadata": {"is_big_file": true, "file_size": 9}},
                        "odd"]},
                "event": {"kind": "message_received"}}),
        );
        assert_eq!(
            view,
            json!({
                "kind": "message",
                "conversation": {"id": "8613912345678", "type": "user", "title": "Jordan Lee"},
                "sender": {"id": "77", "name": "Jordan Lee", "username": "jl"},
                "message_id": "wamid.HBgM",
                "text": "Look 🌊",
                "attachments": [
                    {"kind": "image", "name": "a.png", "mime": "image/png", "size": 12,
                     "ref": "https://files.example/1?sig=x"},
                    {"kind": "video", "name": null, "mime": null, "size": 9, "ref": null}],
                "reply_to": "wamid.A",
                "direction": "inbound",
                "sent_at": "2026-06-08T12:34:55Z"})
        );
    }

    #[test]
    fn every_documented_type_has_its_kind() {
        for (event_type, kind) in [
            ("message.received", "message"),
            ("message.updated", "edit"),
            ("message.deleted", "delete"),
            ("message.read", "read"),
            ("message.reaction", "reaction"),
            ("message.delivered", "delivered"),
            ("conversation.updated", "conversation"),
            ("conversation.deleted", "conversation"),
            ("conversation.cleared", "conversation"),
            ("conversation.history", "conversation"),
            ("group.updated", "conversation"),
            ("group.join_request", "membership"),
            ("account.status.updated", "account"),
            ("account.started", "account"),
            ("account.history.synced", "account"),
            ("account.auth.required", "account"),
            ("account.auth.succeeded", "account"),
            ("account.auth.failed", "account"),
            ("message.sent", "other"),
            ("unknown", "other"),
        ] {
            let view = shown(event_type, json!({"chat_id": 5, "sender": "s"}));
            assert_eq!(view["kind"], kind);
            assert_eq!(view["conversation"]["id"], "5");
            assert_eq!(view["sender"]["id"], "s");
            assert_eq!(view["attachments"], json!([]));
        }
    }

    #[test]
    fn receipts_and_reactions_name_their_message() {
        let view = shown(
            "message.reaction",
            json!({
            "message": {"id": "r", "target_message_id": "m"}, "event": {"reaction": ""}}),
        );
        assert_eq!((&view["message_id"], &view["text"]), (&json!("m"), &json!("")));
        let view = shown(
            "message.read",
            json!({
            "message": {"ids": ["m"]}, "read_at": "2026-06-08T12:00:00Z"}),
        );
        assert_eq!(view["message_id"], "m");
        assert_eq!(view["sent_at"], "2026-06-08T12:00:00Z");
        let view = shown("message.delivered", json!({"message": {"ids": ["m", "n"]}}));
        assert_eq!(
            (&view["message_id"], &view["sent_at"]),
            (&json!(null), &json!("2026-06-08T12:34:56Z"))
        );
        let view = shown(
            "message.updated",
            json!({
            "edit_message_id": 8, "message": {"text": "new"}}),
        );
        assert_eq!((&view["message_id"], &view["text"]), (&json!("8"), &json!("new")));
        let view = shown("message.deleted", json!({"message": {"id": "m"}}));
        assert_eq!(view["message_id"], "m");
    }

    #[test]
    fn a_join_request_names_who_asks() {
        let view = shown("group.join_request", json!({"requester": {"id": "u", "name": "U"}}));
        assert_eq!(view["sender"]["name"], "U");
    }

    #[test]
    fn sign_in_codes_are_not_repeated() {
        let view = shown(
            "account.auth.required",
            json!({
            "auth_status": "required", "auth_payload": {"pin": "1234", "qr_code": "QR"}}),
        );
        assert!(!view.to_string().contains("1234") && !view.to_string().contains("QR"));
    }

    #[test]
    fn odd_bodies_give_what_they_can() {
        let body = b"{\"data\":{\"message\":{\"text\":\"a\xffb\\ud83d!\"}}}";
        let made = view("unifyport.message.received", body).unwrap();
        assert_eq!(made.text.as_deref(), Some("a\u{fffd}b\u{fffd}!"));
        for body in [&b""[..], b"[]", b"nonsense", "[".repeat(200).as_bytes()] {
            assert_eq!(view("unifyport.message.received", body), None);
        }
        assert_eq!(view("pigeon.message", b"{}"), None);
        assert_eq!(view("", b"{}"), None);
    }
}
