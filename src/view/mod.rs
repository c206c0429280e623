//! The channel-neutral view of an event: the same few fields whatever channel it came by.
//!
//! A view is made for reading, beside the stored bytes and never in their place: it leaves out what
//! it does not know, mends what is not UTF-8, and where none can be made there is none.

mod telegram;
pub mod timeline;
mod unifyport;

use serde::Serialize;
use serde_json::Value;

/// A view of one event. Every field is written, as `null` where the event does not say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Message {
    /// What happened.
    pub kind: Kind,
    /// Where it happened.
    pub conversation: Option<Conversation>,
    /// Who did it.
    pub sender: Option<Sender>,
    /// The message it is about: of a reaction, a receipt or a callback, the one reacted to, read,
    /// or pressed. Unique within the conversation at most. `null` where it is about several.
    pub message_id: Option<String>,
    /// What it says: the text or caption, a callback's data, a query, the emoji of a reaction (empty
    /// if it was taken back).
    pub text: Option<String>,
    /// Files and the like that come with it.
    pub attachments: Vec<Attachment>,
    /// The message it answers, by its id in the same conversation.
    pub reply_to: Option<String>,
    /// Whether it came to the account or from it.
    pub direction: Option<Direction>,
    /// When the message was sent; of what is not a message, when it happened. RFC 3339 in UTC.
    pub sent_at: Option<String>,
}

/// What kind of thing happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A message came, or was sent.
    Message,
    /// A message was changed; the fields hold its new content.
    Edit,
    /// Messages were deleted.
    Delete,
    /// A reaction was added, changed, or taken back.
    Reaction,
    /// Messages were read.
    Read,
    /// Messages were delivered.
    Delivered,
    /// A button was pressed.
    Callback,
    /// Somebody joined, left, asked to, or was given other rights.
    Membership,
    /// The conversation itself changed.
    Conversation,
    /// The account behind the channel changed.
    Account,
    /// Anything else.
    Other,
}

/// A chat, group or channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Conversation {
    /// The channel's id for it.
    pub id: String,
    /// The channel's word for its type, such as `private` or `group`.
    pub r#type: Option<String>,
    /// Its title, or the name of the other side.
    pub title: Option<String>,
}

/// A person, or a chat that acts as one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sender {
    /// The channel's id for it.
    pub id: String,
    /// Its display name.
    pub name: Option<String>,
    /// Its user name, without an `@`.
    pub username: Option<String>,
}

/// Something that comes with a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Attachment {
    /// `image`, `video`, `animation`, `audio`, `voice`, `document`, `sticker`, `location`,
    /// `contact`, or the channel's own word, such as `dice`.
    pub kind: String,
    /// File name, title, or a contact's name.
    pub name: Option<String>,
    /// Media type.
    pub mime: Option<String>,
    /// Size in bytes.
    pub size: Option<u64>,
    /// How to get it: Telegram's `file_id`, UnifyPort's URL (signed, so a secret for as long as it
    /// is good), `geo:` for a location, `tel:` for a contact.
    pub r#ref: Option<String>,
}

/// Which way a message went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// To the account.
    Inbound,
    /// From the account.
    Outbound,
}

impl Message {
    fn of_kind(kind: Kind) -> Self {
        Self {
            kind,
            conversation: None,
            sender: None,
            message_id: None,
            text: None,
            attachments: Vec::new(),
            reply_to: None,
            direction: None,
            sent_at: None,
        }
    }
}

/// Makes the view of an event from its type, such as `telegram.message` or
/// `unifyport.message.received`, and its body. `None` for another channel, and where the body is
/// not a JSON object or nested too deep to be read.
#[must_use]
pub fn view(event_type: &str, body: &[u8]) -> Option<Message> {
    let (channel, kind) = event_type.split_once('.')?;
    let make = match channel {
        "telegram" => telegram::view,
        "unifyport" => unifyport::view,
        _ => return None,
    };
    let document = crate::json::lossy(body)?;
    document.is_object().then(|| make(kind, &document))
}

/// The types of events that change or delete what other events said.
pub const CHANGES: [&str; 6] = [
    "telegram.edited_message",
    "telegram.edited_channel_post",
    "telegram.edited_business_message",
    "telegram.deleted_business_messages",
    "unifyport.message.updated",
    "unifyport.message.deleted",
];

/// The messages that an event deletes, by their ids in its conversation.
#[must_use]
pub fn deleted(event_type: &str, body: &[u8]) -> Vec<String> {
    let Some((channel, kind)) = event_type.split_once('.') else { return Vec::new() };
    let read = match channel {
        "telegram" => telegram::deleted,
        "unifyport" => unifyport::deleted,
        _ => return Vec::new(),
    };
    crate::json::lossy(body).map(|document| read(kind, &document)).unwrap_or_default()
}

/// An id as text, whether it is written as a string or as an integer.
fn id(value: &Value) -> Option<String> {
    match value {
        Value::String(id) if !id.is_empty() => Some(id.clone()),
        Value::Number(id) if id.is_i64() || id.is_u64() => Some(id.to_string()),
        _ => None,
    }
}

/// A string that says something; an empty one is as good as none.
fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// The first of several members that is there and can be read.
fn first<T>(value: &Value, keys: &[&str], read: impl Fn(&Value) -> Option<T>) -> Option<T> {
    keys.iter().find_map(|key| read(&value[*key]))
}

/// A time as RFC 3339 in UTC, from RFC 3339 or from Unix seconds. 0 is no time: Telegram writes it
/// where it does not know.
fn time(value: &Value) -> Option<String> {
    let time: jiff::Timestamp = match value {
        // A year with a sign is none of RFC 3339.
        Value::String(time) if time.starts_with(|first: char| first.is_ascii_digit()) => {
            time.parse().ok()?
        }
        Value::Number(seconds) => {
            jiff::Timestamp::from_second(seconds.as_i64().filter(|seconds| *seconds > 0)?).ok()?
        }
        _ => return None,
    };
    Some(time.to_string())
}
