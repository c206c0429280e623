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
            message(kind_of(content), kind, content)
        }
        "edited_message" | "edited_channel_post" | "edited_business_message" => {
            message(Kind::Edit, kind, content)
        }
        "callback_query" => callback(content),
        _ => other(kind, content),
    }
}

/// Members of a message that nobody wrote: it tells who came, left, or owns the chat now.
const MEMBERSHIP: [&str; 4] =
    ["new_chat_members", "left_chat_member", "chat_owner_left", "chat_owner_changed"];
/// Members of a message that nobody wrote: it tells what became of the chat itself.
const CONVERSATION: [&str; 17] = [
    "new_chat_title",
    "new_chat_photo",
    "delete_chat_photo",
    "group_chat_created",
    "supergroup_chat_created",
    "channel_chat_created",
    "message_auto_delete_timer_changed",
    "migrate_to_chat_id",
    "migrate_from_chat_id",
    "pinned_message",
    "forum_topic_created",
    "forum_topic_edited",
    "forum_topic_closed",
    "forum_topic_reopened",
    "general_forum_topic_hidden",
    "general_forum_topic_unhidden",
    "chat_background_set",
];

/// Service messages are set apart, because whoever answers messages is not to answer those.
fn kind_of(message: &Value) -> Kind {
    let has = |members: &[&str]| members.iter().any(|member| !message[*member].is_null());
    if has(&MEMBERSHIP) {
        Kind::Membership
    } else if has(&CONVERSATION) {
        Kind::Conversation
    } else {
        Kind::Message
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
        reply_to: reply_to(&message["reply_to_message"]),
        direction: Some(direction(update_kind, message)),
        // The date of an edit is the event's own time.
        sent_at: time(&message["date"]),
        ..Message::of_kind(kind)
    }
}

/// In a topic every message that answers none carries the one that began the topic. A message of
/// another chat (`external_reply`) has no id in this one.
fn reply_to(answered: &Value) -> Option<String> {
    answered["forum_topic_created"].is_null().then(|| message_id(&answered["message_id"])).flatten()
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

/// The messages that an update of this kind deletes.
pub(super) fn deleted(kind: &str, update: &Value) -> Vec<String> {
    let ids = update[kind]["message_ids"].as_array().into_iter().flatten();
    ids.filter(|_| kind == "deleted_business_messages").filter_map(message_id).collect()
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
