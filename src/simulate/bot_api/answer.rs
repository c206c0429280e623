//! What the server answers: results, errors and batches of updates, byte for byte.
//!
//! Source: `HttpConnection.cpp`, `Query.h`, `Client.cpp` of `tdlib/telegram-bot-api`.

use bytes::{BufMut, Bytes, BytesMut};

/// Another `getUpdates` took the place of this one.
pub const TERMINATED_BY_POLL: &str = "Conflict: terminated by other getUpdates request; \
    make sure that only one bot instance is running";
/// A webhook is set.
pub const WEBHOOK_ACTIVE: &str = "Conflict: can't use getUpdates method while webhook is active; \
    use deleteWebhook to delete the webhook first";
/// A webhook was set while this request was held.
pub const TERMINATED_BY_WEBHOOK: &str = "Conflict: terminated by setWebhook request";

/// The answer to one request.
#[derive(Clone, Debug)]
pub enum Reply {
    /// 200 with these updates: id and member (`"kind":{…}`).
    Updates(Vec<(i32, Bytes)>),
    /// Anything else.
    Plain(Plain),
}

/// A status with a body.
#[derive(Clone, Debug, Default)]
pub struct Plain {
    /// HTTP status.
    pub status: u16,
    /// The whole body.
    pub body: Bytes,
    /// Value of the header `Retry-After`.
    pub retry_after: Option<String>,
    /// Value of the header `Location`.
    pub location: Option<String>,
    /// `Content-Type`; empty is `application/json`.
    pub content_type: &'static str,
    /// Whether the connection is closed afterwards.
    pub close: bool,
}

impl Reply {
    /// 200 with `result`, which is JSON.
    pub fn ok(result: &str) -> Self {
        Self::json(200, format!(r#"{{"ok":true,"result":{result}}}"#))
    }

    /// 200 with the result `true` and a description.
    pub fn done(description: &str) -> Self {
        Self::json(200, format!(r#"{{"ok":true,"result":true,"description":"{description}"}}"#))
    }

    /// An error as the server words it; `description` needs no JSON escape.
    pub fn error(code: u16, description: &str) -> Self {
        let body = format!(r#"{{"ok":false,"error_code":{code},"description":"{description}"}}"#);
        Self::json(code, body)
    }

    /// 429, with the seconds to wait in the text, the parameters and the header.
    pub fn too_many(seconds: u64) -> Self {
        Self::Plain(Plain {
            status: 429,
            body: format!(
                r#"{{"ok":false,"error_code":429,"description":"Too Many Requests: retry after {seconds}","parameters":{{"retry_after":{seconds}}}}}"#
            )
            .into(),
            retry_after: Some(seconds.to_string()),
            ..Plain::default()
        })
    }

    /// A status with any text as a JSON body.
    pub fn json(status: u16, body: impl Into<Bytes>) -> Self {
        Self::Plain(Plain { status, body: body.into(), ..Plain::default() })
    }

    /// A verb that is neither GET nor POST: no body, and the connection is closed.
    pub fn not_implemented() -> Self {
        Self::Plain(Plain { status: 501, close: true, ..Plain::default() })
    }

    /// HTTP status.
    pub fn status(&self) -> u16 {
        match self {
            Self::Updates(_) => 200,
            Self::Plain(plain) => plain.status,
        }
    }

    /// How many updates it brings.
    pub fn update_count(&self) -> usize {
        match self {
            Self::Updates(updates) => updates.len(),
            Self::Plain(_) => 0,
        }
    }

    /// The body as it is without any fault.
    pub fn body(&self) -> Bytes {
        match self {
            Self::Updates(updates) => batch(updates.iter().map(|(id, member)| wire(*id, member))),
            Self::Plain(plain) => plain.body.clone(),
        }
    }
}

/// One update as it goes over the wire.
pub fn wire(id: i32, member: &[u8]) -> Bytes {
    wire_as(&format!("\"update_id\":{id},\n"), member)
}

/// An update whose `update_id` member is replaced by any text. One whose own member is blank has
/// nothing but the id.
pub(super) fn wire_as(id_member: &str, member: &[u8]) -> Bytes {
    let blank = member.trim_ascii().is_empty();
    let id_member = if blank { id_member.trim_end_matches(",\n") } else { id_member };
    let mut bytes = BytesMut::with_capacity(2 + id_member.len() + member.len());
    bytes.put_u8(b'{');
    bytes.put_slice(id_member.as_bytes());
    bytes.put_slice(member);
    bytes.put_u8(b'}');
    bytes.freeze()
}

/// The body that holds `updates`.
pub(super) fn batch(updates: impl Iterator<Item = Bytes>) -> Bytes {
    let mut body = BytesMut::new();
    body.put_slice(br#"{"ok":true,"result":["#);
    for (nth, update) in updates.enumerate() {
        if nth > 0 {
            body.put_u8(b',');
        }
        body.put_slice(&update);
    }
    body.put_slice(b"]}");
    body.freeze()
}
