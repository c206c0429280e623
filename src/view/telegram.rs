//! Views of Telegram updates: Bot API 10.3, "Update" and the types it refers to.

mod media;
mod rich;

use serde_json::Value;

use super::{Conversation, Direction, Kind, Message, Sender, first, id, text, time};

/// Makes the view of an update of this kind, such as `message`.
pub(super) fn view(kind: &str, update: &Value) -> Message {
    let content = &update[kind];
    match kind {
        "message" | "channel_post" | "business_message" | "guest_message" => {
            message(Kind::Message, kind, content)
        }
        "edited_message" | "edited_channel_post" | "edited_business_message" => {
            message(Kind::Edit, kind, content)
        }
        "callback_query" => callback(content),
        _ => other(kind, content),
    }
}

fn message(kind: Kind, update_kind: &str, message: &Value) -> Message {
    let mut attachments = media::attachments(message);
    let rich_text = rich::flatten(&message["rich_message"]["blocks"], &mut attachments);
    Message {
        conversation: conversation(&message["chat"]),
        // `from` is a stand-in where a chat wrote: the anonymous administrator, the linked channel.
        sender: first(message, &["sender_chat", "from"], sender),
        message_id: message_id(&message["message_id"]),
        text: first(message, &["text", "caption"], text)
            .or(rich_text)
            .or_else(|| text(&message["poll"]["question"]))
            .or_else(|| text(&message["checklist"]["title"]))
            .or_else(|| text(&message["web_app_data"]["data"])),
        attachments,
        reply_to: message_id(&message["reply_to_message"]["message_id"]),
        direction: Some(direction(update_kind, message)),
        // The date of an edit is the event's own time.
        sent_at: time(&message["date"]),
        ..Message::of_kind(kind)
    }
}

/// Only through a business account does a bot see messages that the account itself sent: in its
/// private chats, everything not from the other side, whose id is that of the chat.
fn direction(update_kind: &str, message: &Value) -> Direction {
    let business = matches!(update_kind, "business_message" | "edited_business_message");
    let private = message["chat"]["type"] == "private";
    let from = &message["from"]["id"];
    if business && private && !from.is_null() && *from != message["chat"]["id"] {
        Direction::Outbound
    } else {
        Direction::Inbound
    }
}

/// `sent_at` stays empty, because the only date in a callback is that of the message pressed.
fn callback(query: &Value) -> Message {
    let pressed = &query["message"];
    Message {
        conversation: conversation(&pressed["chat"]),
        sender: sender(&query["from"]),
        message_id: message_id(&pressed["message_id"]).or_else(|| id(&query["inline_message_id"])),
        text: first(query, &["data", "game_short_name"], text),
        direction: Some(Direction::Inbound),
        ..Message::of_kind(Kind::Callback)
    }
}

/// The kinds that are not messages, and those that do not exist yet. They share the names of their
/// fields so far that one reading serves them all; what differs is where each keeps its text.
fn other(kind: &str, content: &Value) -> Message {
    let (view_kind, text) = match kind {
        "deleted_business_messages" => (Kind::Delete, None),
        "message_reaction" => (Kind::Reaction, reaction(&content["new_reaction"])),
        "message_reaction_count" => (Kind::Reaction, None),
        "my_chat_member" | "chat_member" => (Kind::Membership, None),
        "chat_join_request" => (Kind::Membership, text(&content["bio"])),
        "business_connection" | "managed_bot" => (Kind::Account, None),
        "inline_query" | "chosen_inline_result" => (Kind::Other, text(&content["query"])),
        "shipping_query" | "pre_checkout_query" => (Kind::Other, text(&content["invoice_payload"])),
        "purchased_paid_media" => (Kind::Other, text(&content["paid_media_payload"])),
        "poll" => (Kind::Other, text(&content["question"])),
        "subscription" => (Kind::Other, first(content, &["state", "invoice_payload"], text)),
        _ => (Kind::Other, None),
    };
    let only_deleted = match content["message_ids"].as_array().map(Vec::as_slice) {
        Some([only]) => message_id(only),
        _ => None,
    };
    Message {
        conversation: conversation(&content["chat"]),
        // A chat that acts comes with a stand-in for its user.
        sender: first(content, &["actor_chat", "voter_chat", "from", "user"], sender)
            .or_else(|| first(content, &["boost"], |boost| sender(&boost["source"]["user"])))
            .or_else(|| sender(&content["source"]["user"])),
        message_id: message_id(&content["message_id"]).or(only_deleted),
        text,
        sent_at: first(content, &["date", "remove_date"], time)
            .or_else(|| time(&content["boost"]["add_date"])),
        ..Message::of_kind(view_kind)
    }
}

/// The emoji now chosen, without those that only have an id; empty if there are none at all.
fn reaction(chosen: &Value) -> Option<String> {
    Some(chosen.as_array()?.iter().filter_map(|reaction| reaction["emoji"].as_str()).collect())
}

fn conversation(chat: &Value) -> Option<Conversation> {
    Some(Conversation {
        id: id(&chat["id"])?,
        r#type: text(&chat["type"]),
        title: text(&chat["title"]).or_else(|| full_name(chat)),
    })
}

/// A user, or a chat in a user's place.
fn sender(value: &Value) -> Option<Sender> {
    Some(Sender {
        id: id(&value["id"])?,
        name: text(&value["title"]).or_else(|| full_name(value)),
        username: text(&value["username"]),
    })
}

fn full_name(person: &Value) -> Option<String> {
    let names = ["first_name", "last_name"].map(|key| person[key].as_str().unwrap_or_default());
    text(&Value::String(names.join(" ").trim().to_owned()))
}

/// 0 stands for a message that has no id of its own (ephemeral or scheduled).
fn message_id(value: &Value) -> Option<String> {
    id(value).filter(|id| id != "0")
}

#[cfg(test)]
mod tests;
