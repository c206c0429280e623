//! What one Telegram update says about itself: its id, its kind, its chat, its time.
//!
//! Read without building a document, so that an update of any depth and with any bytes in its
//! strings gives up as much as an ordinary one. The kinds, and where each carries its chat and its
//! time: Bot API 10.3, "Update" and the types it refers to.

use std::borrow::Cow;

use crate::json;

/// The kind of an update that carries none.
pub const NO_KIND: &str = "(none)";

/// Every kind of update in Bot API 10.3. Others are accepted all the same.
pub use crate::config::UPDATE_KINDS as KINDS;

/// The ids that the Bot API server gives to updates.
const UPDATE_IDS: std::ops::RangeInclusive<i64> = 0..=1_999_999_999;
/// The longest name that is taken for a kind, in bytes.
const MAX_KIND: usize = 100;
/// The seconds that are taken for a date: from 1970, because Telegram writes 0 for "unknown", to
/// the end of the year 9998, because later ones cannot be written as RFC 3339 in every zone.
const DATES: std::ops::RangeInclusive<i64> = 1..=253_370_764_799;

/// What could be read of an update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdateFacts {
    /// `update_id`, if it is one that the server can have given: 0 to 1,999,999,999.
    pub update_id: Option<i64>,
    /// The member that is not `update_id`: one of [`KINDS`], any other name as it stands, or
    /// [`NO_KIND`].
    pub kind: String,
    /// The chat it belongs to; negative for groups and channels.
    pub chat_id: Option<i64>,
    /// Of what belongs to a business account: the connection, because the chat's id alone may also
    /// be that of a chat of the bot.
    pub business_connection_id: Option<String>,
    /// When it happened, in microseconds since the Unix epoch, if it says so.
    pub time_us: Option<i64>,
    /// What is odd about it; empty for an ordinary update.
    pub anomalies: Vec<Anomaly>,
}

/// Something no update should have. It is stored all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anomaly {
    /// It is not one whole JSON object.
    NotAnObject,
    /// `update_id` is missing, not an integer, or out of range.
    UnusableId,
    /// There is no member but `update_id`.
    NoKind,
    /// There are several members that could be the kind. The first known one counts, else the first.
    SeveralKinds,
    /// A member's name is empty, longer than 100 bytes, not UTF-8, or has control characters.
    UnusableKind,
}

/// Reads an update.
#[must_use]
pub fn read(update: &[u8]) -> UpdateFacts {
    let mut facts = UpdateFacts {
        update_id: None,
        kind: NO_KIND.to_owned(),
        chat_id: None,
        business_connection_id: None,
        time_us: None,
        anomalies: Vec::new(),
    };
    let mut id = None;
    let mut kind: Option<String> = None;
    let mut several = false;
    let mut unusable = false;
    let whole = json::each_member(update, |key, value| {
        if *key == *b"update_id" {
            id = update.get(value);
            return;
        }
        let Some(name) = usable_name(key) else {
            unusable = true;
            return;
        };
        if kind.as_ref().is_some_and(|kind| *kind != name) {
            several = true;
        }
        if kind.as_deref().is_none_or(|kind| !is_known(kind) && is_known(&name)) {
            kind = Some(name);
        }
    });
    if whole.is_none() {
        facts.anomalies.push(Anomaly::NotAnObject);
        return facts;
    }
    facts.update_id = id.and_then(json::integer).filter(|id| UPDATE_IDS.contains(id));
    facts.anomalies.extend(
        [
            (facts.update_id.is_none(), Anomaly::UnusableId),
            (kind.is_none(), Anomaly::NoKind),
            (several, Anomaly::SeveralKinds),
            (unusable, Anomaly::UnusableKind),
        ]
        .into_iter()
        .filter_map(|(odd, anomaly)| odd.then_some(anomaly)),
    );
    if let Some(kind) = kind {
        if let Some(content) = json::at_path(update, &[&kind]) {
            derive(&kind, content, &mut facts);
        }
        facts.kind = kind;
    }
    facts
}

fn is_known(kind: &str) -> bool {
    KINDS.contains(&kind)
}

fn usable_name(key: Cow<'_, [u8]>) -> Option<String> {
    let name = String::from_utf8(key.into_owned()).ok()?;
    let usable = (1..=MAX_KIND).contains(&name.len()) && !name.contains(char::is_control);
    usable.then_some(name)
}

/// Fills in chat, business connection and time from where this kind carries them.
fn derive(kind: &str, content: &[u8], facts: &mut UpdateFacts) {
    // A callback belongs to the chat of the message whose button was pressed. That message's date
    // is not the time of the press, and 0 if the message is out of reach.
    let (holder, dates): (&[&str], &[&[&str]]) = match kind {
        "message"
        | "channel_post"
        | "business_message"
        | "guest_message"
        | "message_reaction"
        | "message_reaction_count"
        | "my_chat_member"
        | "chat_member"
        | "chat_join_request" => (&[], &[&["date"]]),
        "edited_message" | "edited_channel_post" | "edited_business_message" => {
            (&[], &[&["edit_date"], &["date"]])
        }
        "deleted_business_messages" | "stopped_message_generation" => (&[], &[]),
        "callback_query" => (&["message"], &[]),
        "chat_boost" => (&[], &[&["boost", "add_date"]]),
        "removed_chat_boost" => (&[], &[&["remove_date"]]),
        "business_connection" => {
            facts.time_us = date(content, &["date"]);
            return;
        }
        _ => return,
    };
    facts.time_us = dates.iter().find_map(|path| date(content, path));
    let Some(holder) = json::at_path(content, holder) else { return };
    facts.chat_id = json::at_path(holder, &["chat", "id"]).and_then(json::integer);
    facts.business_connection_id =
        json::top_level_string(holder, "business_connection_id").and_then(usable_name);
}

fn date(content: &[u8], path: &[&str]) -> Option<i64> {
    let seconds = json::integer(json::at_path(content, path)?)?;
    DATES.contains(&seconds).then(|| seconds.checked_mul(1_000_000)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATE: i64 = 1_796_029_200;
    const TIME: Option<i64> = Some(DATE * 1_000_000);

    fn facts(kind: &str, content: &str) -> UpdateFacts {
        read(format!("{{\"update_id\":8100,\n\"{kind}\":{content}}}").as_bytes())
    }

    #[test]
    fn every_kind_says_where_its_chat_and_time_are() {
        let chat = r#""chat":{"id":-1001234}"#;
        let date = format!(r#""date":{DATE}"#);
        let message = format!("{{{chat},{date}}}");
        let edit = format!(r#"{{{chat},"date":5,"edit_date":{DATE}}}"#);
        let query = format!(r#"{{"from":{{"id":1}},{date},{chat}}}"#);
        let callback = format!(r#"{{"from":{{"id":1}},"message":{message}}}"#);
        let boost = format!(r#"{{{chat},"boost":{{"add_date":{DATE}}}}}"#);
        let removed = format!(r#"{{{chat},"remove_date":{DATE}}}"#);
        for kind in KINDS {
            let (content, has_chat, has_time) = match kind {
                "edited_message" | "edited_channel_post" | "edited_business_message" => {
                    (&edit, true, true)
                }
                "deleted_business_messages" | "stopped_message_generation" => {
                    (&message, true, false)
                }
                "business_connection" => (&message, false, true),
                "callback_query" => (&callback, true, false),
                "chat_boost" => (&boost, true, true),
                "removed_chat_boost" => (&removed, true, true),
                "inline_query"
                | "chosen_inline_result"
                | "shipping_query"
                | "pre_checkout_query"
                | "purchased_paid_media"
                | "poll"
                | "poll_answer"
                | "managed_bot"
                | "subscription" => (&query, false, false),
                _ => (&message, true, true),
            };
            let facts = facts(kind, content);
            assert_eq!(facts.update_id, Some(8100), "{kind}");
            assert_eq!(facts.kind, kind);
            assert_eq!(facts.chat_id, has_chat.then_some(-1_001_234), "{kind}");
            assert_eq!(facts.time_us, if has_time { TIME } else { None }, "{kind}");
            assert_eq!(facts.anomalies, [], "{kind}");
        }
    }

    #[test]
    fn a_business_message_names_its_connection() {
        let message = r#"{"business_connection_id":"bc","chat":{"id":1},"date":0}"#;
        for kind in ["business_message", "deleted_business_messages"] {
            let facts = facts(kind, message);
            assert_eq!(facts.business_connection_id.as_deref(), Some("bc"));
            assert_eq!(facts.time_us, None, "0 is not a date");
        }
        let callback = facts("callback_query", &format!("{{\"message\":{message}}}"));
        assert_eq!(callback.business_connection_id.as_deref(), Some("bc"));
    }

    #[test]
    fn an_unedited_date_stands_in() {
        let content = format!(r#"{{"chat":{{"id":1}},"date":{DATE}}}"#);
        assert_eq!(facts("edited_message", &content).time_us, TIME);
    }

    #[test]
    fn odd_kinds_are_told() {
        let kind_of = |update: &str| {
            let facts = read(update.as_bytes());
            (facts.kind, facts.anomalies)
        };
        assert_eq!(kind_of(r#"{"update_id":1}"#), (NO_KIND.into(), vec![Anomaly::NoKind]));
        assert_eq!(kind_of(r#"{"update_id":1,"new_kind":{}}"#), ("new_kind".into(), vec![]));
        assert_eq!(
            kind_of(r#"{"update_id":1,"new":{},"poll":{},"message":{}}"#),
            ("poll".into(), vec![Anomaly::SeveralKinds])
        );
        assert_eq!(
            kind_of(r#"{"update_id":1,"new":{},"newer":{}}"#),
            ("new".into(), vec![Anomaly::SeveralKinds])
        );
        assert_eq!(
            kind_of(r#"{"update_id":1,"a\u0000b":{}}"#),
            (NO_KIND.into(), vec![Anomaly::NoKind, Anomaly::UnusableKind])
        );
        assert_eq!(kind_of("7"), (NO_KIND.into(), vec![Anomaly::NotAnObject]));
    }

    #[test]
    fn ids_out_of_range_are_unusable() {
        for (id, usable) in [
            ("0", true),
            ("1999999999", true),
            ("2000000000", false),
            ("-1", false),
            ("\"1\"", false),
            ("1.0", false),
            ("1e3", false),
            ("null", false),
            ("99999999999999999999", false),
        ] {
            let facts = read(format!(r#"{{"update_id":{id},"poll":{{}}}}"#).as_bytes());
            assert_eq!(facts.update_id.is_some(), usable, "{id}");
            assert_eq!(facts.anomalies.contains(&Anomaly::UnusableId), !usable, "{id}");
        }
    }

    #[test]
    fn depth_and_odd_bytes_do_not_matter() {
        let deep = format!("{}{}", "[".repeat(50_000), "]".repeat(50_000));
        let mut update = br#"{"update_id":3,"callback_query":{"data":""#.to_vec();
        update.extend_from_slice(b"a\xff\xfe\\u0000\\ud800z\",\"deep\":");
        update.extend_from_slice(deep.as_bytes());
        update.extend_from_slice(br#","message":{"chat":{"id":9}}}}"#);
        let facts = read(&update);
        assert_eq!((facts.update_id, facts.chat_id), (Some(3), Some(9)));
        assert_eq!(facts.kind, "callback_query");
        assert_eq!(facts.anomalies, []);
    }
}
