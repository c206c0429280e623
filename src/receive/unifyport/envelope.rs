//! What stands around the data of every UnifyPort event: its type, where it comes from, when it
//! happened, to which conversation it belongs.
//!
//! Fields: `type`, `provider`, `account_id`, `occurred_at`, and `data` with the rest, by UnifyPort's
//! published reference "Webhook delivery and event semantics". Where its pages name the
//! conversation differently, every name is read.

use super::timestamp;
use crate::json;

/// The longest event type or provider that is taken for one, in bytes.
const MAX_NAME: usize = 128;
/// The longest account or conversation id that is taken for one, in bytes. Both become part of
/// keys in the store, whose length is limited.
const MAX_ID: usize = 255;

/// The envelope of an event, as far as it could be read. These are the sender's own words: good for
/// filing an event, not for trusting it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Envelope {
    /// `type`, for instance `message.received`: 1 to 128 bytes, no control characters.
    pub event_type: Option<String>,
    /// `provider`, for instance `whatsapp`: 1 to 128 bytes, no control characters.
    pub provider: Option<String>,
    /// `account_id`: 1 to 255 bytes, no control characters.
    pub account_id: Option<String>,
    /// `occurred_at`, in microseconds since the Unix epoch.
    pub occurred_at_us: Option<i64>,
    /// The conversation's id: 1 to 255 bytes, no control characters.
    pub conversation_id: Option<String>,
}

/// Reads an envelope from a body. Whatever is missing, of another type, or unusable is `None`; of a
/// body that is not one whole JSON object everything is. Depth and odd bytes elsewhere in the body
/// do not matter.
#[must_use]
pub fn read(body: &[u8]) -> Envelope {
    let Some([event_type, provider, account_id, occurred_at, data]) =
        json::members(body, ["type", "provider", "account_id", "occurred_at", "data"])
    else {
        return Envelope::default();
    };
    Envelope {
        event_type: event_type.and_then(|value| text(value, MAX_NAME)),
        provider: provider.and_then(|value| text(value, MAX_NAME)),
        account_id: account_id.and_then(|value| text(value, MAX_ID)),
        occurred_at_us: occurred_at.and_then(time),
        conversation_id: data.and_then(conversation_id),
    }
}

/// `conversation.id`, else `chat_id` or `conversation_id`, by which other first-party pages call it.
fn conversation_id(data: &[u8]) -> Option<String> {
    let [conversation, chat_id, conversation_id] =
        json::members(data, ["conversation", "chat_id", "conversation_id"])?;
    let nested = conversation.and_then(|value| json::at_path(value, &["id"]));
    [nested, chat_id, conversation_id].into_iter().flatten().find_map(id)
}

/// An id that is a string, or an integer of any size as its digits.
fn id(value: &[u8]) -> Option<String> {
    let digits = value.strip_prefix(b"-").unwrap_or(value);
    if digits.len() <= MAX_ID && !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) {
        return String::from_utf8(value.to_vec()).ok();
    }
    text(value, MAX_ID)
}

fn text(value: &[u8], max: usize) -> Option<String> {
    let text = String::from_utf8(json::string(value)?.into_owned()).ok()?;
    let usable = (1..=max).contains(&text.len()) && !text.contains(char::is_control);
    usable.then_some(text)
}

fn time(value: &[u8]) -> Option<i64> {
    timestamp::parse(&json::string(value)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_documented_event_is_read_whole() {
        let body = br#"{"id":"evt_2f9c1a4b7e","type":"message.received","provider":"whatsapp",
            "account_id":"acc_8c21d0","occurred_at":"2026-06-08T12:34:56Z",
            "data":{"conversation":{"id":"8613912345678","type":"user"},"message":{"id":"m"}}}"#;
        assert_eq!(
            read(body),
            Envelope {
                event_type: Some("message.received".into()),
                provider: Some("whatsapp".into()),
                account_id: Some("acc_8c21d0".into()),
                occurred_at_us: Some(1_780_922_096_000_000),
                conversation_id: Some("8613912345678".into()),
            }
        );
    }

    fn conversation(data: &str) -> Option<String> {
        read(format!("{{\"data\":{data}}}").as_bytes()).conversation_id
    }

    #[test]
    fn the_conversation_has_several_names() {
        assert_eq!(conversation(r#"{"conversation":{"id":-100123}}"#).as_deref(), Some("-100123"));
        assert_eq!(conversation(r#"{"chat_id":"c"}"#).as_deref(), Some("c"));
        assert_eq!(conversation(r#"{"conversation_id":7}"#).as_deref(), Some("7"));
        assert_eq!(
            conversation(r#"{"chat_id":"c","conversation":{"id":"a"}}"#).as_deref(),
            Some("a")
        );
        assert_eq!(
            conversation(r#"{"conversation":{"id":null},"chat_id":12345678901234567890123}"#)
                .as_deref(),
            Some("12345678901234567890123")
        );
        for none in ["1", "{}", r#"{"chat_id":1.5}"#, r#"{"chat_id":""}"#, r#"{"chat_id":true}"#] {
            assert_eq!(conversation(none), None, "{none}");
        }
    }

    #[test]
    fn unusable_values_are_none() {
        let long = format!(r#"{{"type":"{}"}}"#, "x".repeat(129));
        for body in [
            "",
            "[]",
            "null",
            "\"type\"",
            r#"{"type":1}"#,
            r#"{"type":""}"#,
            r#"{"type":"a\u0000b"}"#,
            r#"{"provider":"a\nb"}"#,
            r#"{"account_id":"\u0085"}"#,
            r#"{"type":"\ud800"}"#,
            r#"{"occurred_at":1780922096}"#,
            r#"{"occurred_at":"soon"}"#,
            r#"{"type":"message.received""#,
            r#"{"type":"message.received"} x"#,
            &long,
        ] {
            assert_eq!(read(body.as_bytes()), Envelope::default(), "{body}");
        }
        assert_eq!(read(b"{\"type\":\"\xff\"}"), Envelope::default());
    }

    #[test]
    fn depth_and_odd_bytes_elsewhere_do_not_matter() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let mut body =
            format!("{{\"type\":\"message.received\",\"deep\":{deep},\"odd\":\"").into_bytes();
        body.extend_from_slice(b"\xff\xfe\"}");
        assert_eq!(read(&body).event_type.as_deref(), Some("message.received"));
    }
}
