//! Tokens and paths: which bot a request is for, and what a bad token is answered.
//!
//! Source: `HttpConnection.cpp`, `ClientManager.cpp` of `tdlib/telegram-bot-api`.

use super::answer::Reply;

/// A bot on one of Telegram's two data centres.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BotKey {
    /// The number before the token's colon.
    pub id: i64,
    /// Whether it lives in the test data centre (`/bot<token>/test/METHOD`).
    pub test_dc: bool,
}

impl From<i64> for BotKey {
    fn from(id: i64) -> Self {
        Self { id, test_dc: false }
    }
}

/// The parts of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// As it stands in the path.
    pub token: String,
    /// Whether `/test` follows it.
    pub test_dc: bool,
    /// In lower case; empty if the path has none.
    pub method: String,
}

impl Route {
    /// Reads `/bot<token>[/test]/METHOD`; `None` is answered 404 `Not Found`.
    pub fn read(path: &str) -> Option<Self> {
        let path = percent_encoding::percent_decode_str(path).decode_utf8_lossy();
        let (token, rest) = path.strip_prefix("/bot")?.split_once('/')?;
        let test = rest.strip_prefix("test/");
        Some(Self {
            token: token.to_owned(),
            test_dc: test.is_some(),
            method: test.unwrap_or(rest).to_ascii_lowercase(),
        })
    }
}

/// The bot id in a token that is well formed enough for the server to look at it.
pub fn bot_id(token: &str) -> Option<i64> {
    let (id, _) = token.split_once(':')?;
    if token.starts_with('0') || token.len() > 80 {
        return None;
    }
    id.parse().ok().filter(|id| (1..1 << 54).contains(id))
}

/// A well-formed token for a bot, good for tests and demonstrations.
pub fn example(id: i64) -> String {
    format!("{id}:AAexample-token_of-bot-{id:0>14}")
}

/// The answer to a token that belongs to no bot. `cloud_front` is what stands before the cloud's
/// servers and answers a malformed token with 404.
pub(super) fn rejection(token: &str, cloud_front: bool) -> Reply {
    let secret = token.split_once(':').map_or("", |(_, secret)| secret);
    let base64url = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let well_formed = secret.len() >= 24 && secret.bytes().all(base64url);
    match bot_id(token) {
        Some(_) if well_formed => Reply::error(401, "Unauthorized"),
        _ if cloud_front => Reply::error(404, "Not Found"),
        Some(_) => Reply::error(401, "Unauthorized"),
        None => Reply::error(401, "Unauthorized: invalid token specified"),
    }
}
