//! A plausible update of every kind.
//!
//! Source: the Bot API documentation, 10.3.

use serde_json::{Value, json};

use super::update::{DATE, Update, message, user};

/// A user whose private chat has the same id.
pub const USER: i64 = 5_000_000_007;
/// A supergroup.
pub const GROUP: i64 = -1_001_234_567_890;
/// A channel.
pub const CHANNEL: i64 = -1_009_876_543_210;

/// An update of `kind`, told apart from others by `n`. A kind that is not known gets a body with
/// nothing but `n`.
pub fn sample(kind: &str, n: i64) -> Update {
    let body = messages(kind, n)
        .or_else(|| events_in_chats(kind, n))
        .or_else(|| requests(kind, n))
        .unwrap_or_else(|| json!({ "n": n }));
    Update::new(kind.to_owned(), &body)
}

fn messages(kind: &str, n: i64) -> Option<Value> {
    let text = json!({ "text": format!("text {n} — ünï ✓ 🦀") });
    let edited = json!({ "text": format!("edited {n}"), "edit_date": DATE + 60 });
    let business = |mut body: Value| {
        body["business_connection_id"] = "conn-1".into();
        body
    };
    Some(match kind {
        "message" => message(USER, n, DATE, text),
        "edited_message" => message(USER, n, DATE, edited),
        "channel_post" => channel_post(n, text),
        "edited_channel_post" => channel_post(n, edited),
        "business_message" => business(message(USER, n, DATE, text)),
        "edited_business_message" => business(message(USER, n, DATE, edited)),
        "guest_message" => {
            let mut body = message(USER, n, DATE, text);
            body["guest_query_id"] = format!("guest-{n}").into();
            body
        }
        _ => return None,
    })
}

fn channel_post(n: i64, more: Value) -> Value {
    let mut post = message(CHANNEL, n, DATE, more);
    if let Value::Object(post) = &mut post {
        post.remove("from");
    }
    post["chat"] = channel();
    post["sender_chat"] = channel();
    post
}

fn events_in_chats(kind: &str, n: i64) -> Option<Value> {
    let member = |status: &str| json!({ "user": user(USER), "status": status });
    let change = json!({
        "chat": group(), "from": user(USER + 1), "date": DATE + n,
        "old_chat_member": member("left"), "new_chat_member": member("member"),
    });
    let source = json!({ "source": "premium", "user": user(USER) });
    let emoji = json!({ "type": "emoji", "emoji": "👍" });
    Some(match kind {
        "deleted_business_messages" => {
            json!({ "business_connection_id": "conn-1", "chat": private(), "message_ids": [n, n + 1] })
        }
        "message_reaction" => json!({
            "chat": group(), "message_id": n, "user": user(USER), "date": DATE,
            "old_reaction": [], "new_reaction": [emoji],
        }),
        "message_reaction_count" => json!({
            "chat": channel(), "message_id": n, "date": DATE,
            "reactions": [{ "type": emoji, "total_count": 3 }],
        }),
        "my_chat_member" | "chat_member" => change,
        "chat_join_request" => json!({
            "chat": group(), "from": user(USER), "user_chat_id": USER, "date": DATE + n,
            "bio": format!("bio {n}"),
        }),
        "chat_boost" => json!({ "chat": channel(), "boost": {
            "boost_id": format!("boost-{n}"), "add_date": DATE, "expiration_date": DATE + 86_400,
            "source": source,
        } }),
        "removed_chat_boost" => json!({
            "chat": channel(), "boost_id": format!("boost-{n}"), "remove_date": DATE,
            "source": source,
        }),
        "stopped_message_generation" => json!({ "chat": private(), "draft_id": n }),
        _ => return None,
    })
}

fn requests(kind: &str, n: i64) -> Option<Value> {
    let from = user(USER);
    let id = n.to_string();
    Some(match kind {
        "business_connection" => json!({
            "id": "conn-1", "user": from, "user_chat_id": USER, "date": DATE + n,
            "rights": {}, "is_enabled": true,
        }),
        "inline_query" => {
            json!({ "id": id, "from": from, "query": format!("query {n}"), "offset": "", "chat_type": "sender" })
        }
        "chosen_inline_result" => {
            json!({ "result_id": id, "from": from, "query": format!("query {n}") })
        }
        "callback_query" => json!({
            "id": id, "from": from, "chat_instance": "-77", "data": format!("button {n}"),
            "message": message(USER, n, DATE - 3600, json!({ "text": "choose" })),
        }),
        "shipping_query" => json!({
            "id": id, "from": from, "invoice_payload": format!("order {n}"),
            "shipping_address": { "country_code": "GB", "state": "", "city": "London",
                "street_line1": "1 Row", "street_line2": "", "post_code": "N1" },
        }),
        "pre_checkout_query" => json!({
            "id": id, "from": from, "currency": "EUR", "total_amount": 100 + n,
            "invoice_payload": format!("order {n}"),
        }),
        "purchased_paid_media" => {
            json!({ "from": from, "paid_media_payload": format!("media {n}") })
        }
        "poll" => json!({
            "id": id, "question": format!("question {n}?"), "total_voter_count": 1,
            "options": [{ "text": "yes", "voter_count": 1 }, { "text": "no", "voter_count": 0 }],
            "is_closed": false, "is_anonymous": true, "type": "regular",
            "allows_multiple_answers": false,
        }),
        "poll_answer" => json!({ "poll_id": id, "user": from, "option_ids": [0] }),
        "managed_bot" => json!({ "user": from, "bot": {
            "id": USER + 100, "is_bot": true, "first_name": "Child", "username": "child_bot",
        } }),
        "subscription" => json!({
            "user": from, "state": "active", "invoice_payload": format!("plan {n}"),
        }),
        _ => return None,
    })
}

fn private() -> Value {
    json!({ "id": USER, "first_name": "Ada", "type": "private" })
}

fn group() -> Value {
    json!({ "id": GROUP, "title": "Gruppe ✓", "type": "supergroup" })
}

fn channel() -> Value {
    json!({ "id": CHANNEL, "title": "News", "username": "news", "type": "channel" })
}
