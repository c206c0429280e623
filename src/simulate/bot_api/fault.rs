//! Faults: what is done to a request that a selector strikes.

use bytes::Bytes;

use super::answer::{self, Plain, Reply};
use super::barrier::Arrival;
use super::change::Change;
use super::rules::Seconds;

/// What is done to a request.
#[derive(Clone, Debug)]
pub enum Action {
    /// Something happens to the connection.
    Net(Net),
    /// The answer is replaced by one that the server would not give.
    Http(Http),
    /// The server answers with an error of its own.
    Api(Api),
    /// The ids in a batch are not as they should be.
    Ids(Ids),
    /// The queue changes just before the request is looked at.
    Queue(Change),
    /// The request is processed, and this answer, from an `Http` or `Api` action, hides the
    /// outcome.
    AfterProcessing(Box<Action>),
    /// The request stops at a point until a test lets it go on.
    Stop(Arrival),
}

/// Faults of the connection.
#[derive(Clone, Copy, Debug)]
pub enum Net {
    /// Reset before the request is looked at.
    Reset,
    /// Closed before the request is looked at.
    Close,
    /// The request is processed, and the connection reset after this many bytes of the answer's
    /// head …
    ResetInHead(usize),
    /// … or of its body.
    ResetInBody(usize),
    /// Nothing is looked at and nothing is ever answered.
    Blackhole,
    /// The request is processed, and nothing follows after this many bytes of the body.
    StallInBody(usize),
    /// The request is processed, and answered this much later.
    Late(Seconds),
    /// The answer is written in pieces of so many bytes with so much time before each.
    Slow(usize, Seconds),
    /// The request is processed once more behind the next one, with nobody to answer, as by a
    /// proxy that repeats it: a poll that is held then gets a 409 of its client's own making.
    Twice,
    /// The request is processed only after the next one has been.
    Overtaken,
    /// The connection is reset and nothing listens for so long.
    Down(Seconds),
}

/// Answers that come from something else than the server, or damaged.
#[derive(Clone, Debug)]
pub enum Http {
    /// nginx's HTML page for a status.
    Html(u16),
    /// 404 with some other site's HTML.
    ForeignNotFound,
    /// Any status with any JSON body.
    Json(u16, Bytes),
    /// 200 without a body.
    Empty,
    /// The batch cut in half; `true` with a Content-Length that fits what is left.
    Truncated(bool),
    /// The true answer with chunked encoding, which a client has to read.
    Chunked,
    /// The true answer compressed, though nobody asked for that.
    Gzip,
    /// The true answer after a byte order mark.
    ByteOrderMark,
    /// 302 to this URL.
    Redirect(String),
    /// 200 with a JSON answer of this many bytes.
    Huge(usize),
}

impl Http {
    /// 200 with `ok: false`.
    pub fn ok_false() -> Self {
        Self::Json(200, Bytes::from_static(br#"{"ok":false,"description":"odd"}"#))
    }

    /// 500 with `ok: true`.
    pub fn error_ok_true() -> Self {
        Self::Json(500, Bytes::from_static(br#"{"ok":true,"result":[]}"#))
    }

    /// 200 with an empty batch at once, however long the poll was to last.
    pub fn instantly_empty() -> Self {
        Self::Json(200, Bytes::from_static(br#"{"ok":true,"result":[]}"#))
    }

    /// 200 without `result`.
    pub fn no_result() -> Self {
        Self::Json(200, Bytes::from_static(br#"{"ok":true}"#))
    }

    /// 200 with this JSON as `result`, such as `{}`, `null` or `"x"`.
    pub fn result(json: &str) -> Self {
        Self::Json(200, format!(r#"{{"ok":true,"result":{json}}}"#).into())
    }
}

/// Errors of the server itself.
#[derive(Clone, Debug)]
pub enum Api {
    /// A status and a description.
    Error(u16, &'static str),
    /// 409 with the server's own delays, and one of the three texts of [`answer`].
    Conflict(&'static str),
    /// 429; each part may be absent or odd.
    TooMany {
        /// JSON of `parameters.retry_after`, such as `5`, `-1` or `"5"`.
        parameter: Option<&'static str>,
        /// The header `Retry-After`.
        header: Option<&'static str>,
        /// The description.
        description: &'static str,
    },
}

impl Api {
    /// 401 as for a revoked token.
    pub const UNAUTHORIZED: Self = Self::Error(401, "Unauthorized");
    /// 404 as for a malformed token, or for a while after a bot has moved.
    pub const NOT_FOUND: Self = Self::Error(404, "Not Found");
    /// 421 as for a bot that the server does not serve.
    pub const MISDIRECTED: Self =
        Self::Error(421, "Misdirected Request: unallowed token specified");
    /// 400 after `logOut`.
    pub const LOGGED_OUT: Self = Self::Error(400, "Logged out");
    /// 500 while the server restarts.
    pub const RESTARTING: Self = Self::Error(500, "Internal Server Error: restart");

    /// The answer, if it does not depend on the bot's state.
    pub(super) fn reply(&self) -> Option<Reply> {
        match self {
            Self::Error(code, description) => Some(Reply::error(*code, description)),
            Self::Conflict(_) => None,
            Self::TooMany { parameter, header, description } => {
                let parameters = parameter
                    .map(|value| format!(r#","parameters":{{"retry_after":{value}}}"#))
                    .unwrap_or_default();
                let body = format!(
                    r#"{{"ok":false,"error_code":429,"description":"{description}"{parameters}}}"#
                );
                Some(Reply::Plain(Plain {
                    status: 429,
                    body: body.into(),
                    retry_after: header.map(str::to_owned),
                    ..Plain::default()
                }))
            }
        }
    }
}

/// What is wrong with the ids of a batch.
#[derive(Clone, Copy, Debug)]
pub enum Ids {
    /// The first update has none.
    Missing,
    /// The first update's id is this JSON, such as `"7"`, `1.5`, `-1`, `0` or `2147483648`.
    Json(&'static str),
    /// The first update comes twice.
    Duplicate,
    /// The last comes first.
    Descending,
}

impl Ids {
    /// The updates of a batch as they go out: id in the queue and bytes on the wire.
    pub(super) fn apply(self, updates: &[(i32, Bytes)]) -> Vec<(i32, Bytes)> {
        let mut out: Vec<(i32, Bytes)> =
            updates.iter().map(|(id, member)| (*id, answer::wire(*id, member))).collect();
        let Some((first, (id, member))) = out.first().cloned().zip(updates.first()) else {
            return out;
        };
        match self {
            Self::Missing => out[0].1 = answer::wire_as("", member),
            Self::Json(text) => {
                out[0] = (*id, answer::wire_as(&format!("\"update_id\":{text},\n"), member));
            }
            Self::Duplicate => out.insert(1, first),
            Self::Descending => out.reverse(),
        }
        out
    }
}

impl Action {
    /// The class for the count, and a name for a person.
    pub(super) fn named(&self) -> (&'static str, String) {
        match self {
            Self::Net(fault) => ("net", format!("{fault:?}")),
            Self::Http(fault) => ("http", format!("{fault:?}").chars().take(60).collect()),
            Self::Api(fault) => ("api", format!("{fault:?}")),
            Self::Ids(fault) => ("data", format!("{fault:?}")),
            Self::Queue(change) => ("queue", change.name().to_owned()),
            Self::AfterProcessing(action) => action.named(),
            Self::Stop(arrival) => ("barrier", format!("{:?}", arrival.point())),
        }
    }
}
