//! Updates to push.

use std::borrow::Cow;
use std::fmt::Write as _;

use bytes::Bytes;
use serde_json::{Value, json};

use super::kind;
use super::rules::Seconds;

/// An update without its id, as the server freezes it when it is queued.
#[derive(Clone, Debug)]
pub struct Update {
    kind: Cow<'static, str>,
    member: Bytes,
    lifetime: Option<Seconds>,
}

/// The date in samples, Unix seconds (2026-09-21).
pub const DATE: i64 = 1_790_000_000;

impl Update {
    /// `"kind":{…}` with everything beyond ASCII escaped, as the server does.
    pub fn new(kind: impl Into<Cow<'static, str>>, body: &Value) -> Self {
        let kind = kind.into();
        let member = format!("{}:{}", Value::from(&*kind), ascii_json(&body.to_string()));
        Self { kind, member: member.into(), lifetime: None }
    }

    /// Any bytes in the place of `"kind":{…}`; `kind` is what `allowed_updates` is asked about.
    pub fn raw(kind: impl Into<Cow<'static, str>>, member: impl Into<Bytes>) -> Self {
        Self { kind: kind.into(), member: member.into(), lifetime: None }
    }

    /// A text message in a private chat, sent at [`DATE`].
    pub fn text(chat_id: i64, message_id: i64, text: &str) -> Self {
        Self::text_at(chat_id, message_id, DATE, text)
    }

    /// A text message in a private chat, sent at `date` (Unix seconds).
    pub fn text_at(chat_id: i64, message_id: i64, date: i64, text: &str) -> Self {
        Self::new("message", &message(chat_id, message_id, date, json!({ "text": text })))
    }

    /// The same, but it expires after `lifetime` instead of its kind's; at 0 it is refused.
    pub fn living(self, lifetime: Seconds) -> Self {
        Self { lifetime: Some(lifetime), ..self }
    }

    /// Its kind.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// `"kind":{…}`.
    pub fn member(&self) -> &Bytes {
        &self.member
    }

    /// How long it waits in the queue.
    pub fn lifetime(&self) -> Seconds {
        self.lifetime.unwrap_or_else(|| kind::lifetime(&self.kind))
    }
}

/// A message from a user in a private chat, with more members.
pub(super) fn message(chat_id: i64, message_id: i64, date: i64, more: Value) -> Value {
    let mut message = json!({
        "message_id": message_id, "from": user(chat_id), "date": date,
        "chat": { "id": chat_id, "first_name": "Ada", "username": "ada", "type": "private" },
    });
    if let (Value::Object(message), Value::Object(more)) = (&mut message, more) {
        message.extend(more);
    }
    message
}

/// A user.
pub(super) fn user(id: i64) -> Value {
    json!({ "id": id, "is_bot": false, "first_name": "Ada", "username": "ada", "language_code": "en" })
}

/// JSON text with `\uXXXX` for everything beyond ASCII, which stands in strings only.
fn ascii_json(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for character in json.chars() {
        if character.is_ascii() {
            escaped.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            // Writing to a String cannot fail.
            let _ = write!(escaped, "\\u{unit:04x}");
        }
    }
    escaped
}
