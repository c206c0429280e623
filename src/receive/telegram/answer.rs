//! What an answer of the Bot API means for whoever polls.
//!
//! Texts and codes: the official server's source (`tdlib/telegram-bot-api` 10.0) and the shape of
//! answers in the Bot API documentation, "Making requests".

use std::time::Duration;

use serde::Deserialize;

/// An answer, or the lack of one, that brings nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// No answer of the server: what went wrong on the way.
    Network(&'static str),
    /// An answer that is not the Bot API's, such as a proxy's page: its HTTP status.
    Foreign(u16),
    /// The Bot API's, but not of a form that it documents: how not.
    Odd(&'static str),
    /// 5xx: the server itself is ill.
    Server(u16),
    /// 429: asked to wait, so long if it says.
    TooMany(Option<Duration>),
    /// 409: a later `getUpdates` of somebody else ended ours.
    OtherPoller,
    /// 409: a webhook is set.
    Webhook,
    /// 401: the token is revoked, or wrong, or the server has logged the bot out.
    Unauthorized,
    /// 403.
    Forbidden,
    /// 404: no bot with such a token.
    NotFound,
    /// 421: this server does not serve this bot.
    Misdirected,
    /// 400 `Logged out`.
    LoggedOut,
    /// Any other refusal: its code.
    Refused(i64),
}

impl Trouble {
    /// Whether the connection may have to do with it, so that no other should be kept either.
    pub(super) fn is_of_the_line(&self) -> bool {
        matches!(self, Trouble::Network(_) | Trouble::Foreign(_) | Trouble::Odd(_))
    }
}

/// The longest wait that is taken at its word.
const LONGEST_RETRY: u64 = 3600;

#[derive(Deserialize)]
struct Envelope {
    #[serde(default)]
    ok: Option<bool>,
    #[serde(default)]
    error_code: Option<i64>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    parameters: Option<Parameters>,
}

#[derive(Deserialize)]
struct Parameters {
    #[serde(default)]
    retry_after: Option<serde_json::Value>,
}

/// The body of a good answer, or what is the matter. Good is HTTP 200 with `"ok": true`; whether
/// its `result` is what was asked for is for the caller to find out.
pub(super) fn sort(
    status: u16,
    retry_after: Option<u64>,
    body: Vec<u8>,
) -> Result<Vec<u8>, Trouble> {
    let text = String::from_utf8_lossy(&body);
    let envelope = serde_json::from_str::<Envelope>(&text).ok();
    let Some(Envelope { ok: Some(ok), error_code, description, parameters }) = envelope else {
        return Err(Trouble::Foreign(status));
    };
    if status == 200 && ok {
        return Ok(body);
    }
    if ok {
        return Err(Trouble::Server(status));
    }
    let description = description.unwrap_or_default();
    Err(match error_code.unwrap_or(i64::from(status)) {
        409 if description.contains("webhook") || description.contains("setWebhook") => {
            Trouble::Webhook
        }
        409 => Trouble::OtherPoller,
        400 if description.contains("Logged out") => Trouble::LoggedOut,
        401 => Trouble::Unauthorized,
        403 => Trouble::Forbidden,
        404 => Trouble::NotFound,
        421 => Trouble::Misdirected,
        429 => {
            let named = parameters.and_then(|parameters| seconds(&parameters.retry_after?));
            let told = named.or(retry_after).or_else(|| told(&description));
            let sane = told.filter(|seconds| (1..=LONGEST_RETRY).contains(seconds));
            Trouble::TooMany(sane.map(Duration::from_secs))
        }
        code @ 500..=599 => Trouble::Server(u16::try_from(code).unwrap_or(500)),
        code => Trouble::Refused(code),
    })
}

fn seconds(value: &serde_json::Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// The number in `Too Many Requests: retry after 5`.
fn told(description: &str) -> Option<u64> {
    description.rsplit_once("retry after ")?.1.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trouble(status: u16, body: &str) -> Trouble {
        sort(status, None, body.as_bytes().to_vec()).unwrap_err()
    }

    #[test]
    fn conflicts_are_told_apart() {
        let conflict = |text| {
            trouble(
                409,
                &format!(r#"{{"ok":false,"error_code":409,"description":"Conflict: {text}"}}"#),
            )
        };
        let other = "terminated by other getUpdates request; make sure that only one bot instance is running";
        assert_eq!(conflict(other), Trouble::OtherPoller);
        let webhook = "can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first";
        assert_eq!(conflict(webhook), Trouble::Webhook);
        assert_eq!(conflict("terminated by setWebhook request"), Trouble::Webhook);
    }

    #[test]
    fn a_page_that_is_not_the_bot_apis_is_never_a_bad_token() {
        for body in ["<html>404</html>", "", "[]", r#"{"ok":null}"#, r#"{"error":"x"}"#] {
            for status in [200, 302, 401, 404, 502] {
                assert_eq!(trouble(status, body), Trouble::Foreign(status));
            }
        }
        assert_eq!(
            trouble(404, r#"{"ok":false,"error_code":404,"description":"Not Found"}"#),
            Trouble::NotFound
        );
        assert_eq!(
            trouble(200, r#"{"ok":false,"error_code":401,"description":"Unauthorized"}"#),
            Trouble::Unauthorized
        );
        assert_eq!(trouble(500, r#"{"ok":true,"result":[]}"#), Trouble::Server(500));
    }

    #[test]
    fn the_wait_is_taken_from_wherever_it_stands_if_it_is_sane() {
        let wait = |header, parameters: &str, text: &str| {
            let body =
                format!(r#"{{"ok":false,"error_code":429,"description":"{text}"{parameters}}}"#);
            match sort(429, header, body.into_bytes()).unwrap_err() {
                Trouble::TooMany(wait) => wait.map(|wait| wait.as_secs()),
                other => panic!("{other:?}"),
            }
        };
        let named = |value: &str| format!(r#","parameters":{{"retry_after":{value}}}"#);
        let text = "Too Many Requests: retry after 7";
        assert_eq!(wait(Some(9), &named("5"), text), Some(5));
        assert_eq!(wait(None, &named("\"5\""), ""), Some(5));
        assert_eq!(wait(Some(9), "", text), Some(9));
        assert_eq!(wait(None, "", text), Some(7));
        for odd in ["0", "-1", "3601", "1e3", "null"] {
            assert_eq!(wait(None, &named(odd), ""), None, "{odd}");
        }
    }
}
