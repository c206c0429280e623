//! A delivery as UnifyPort would send it.

use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::{Headers, Input};
use crate::cli::context::Usage;
use crate::cli::text::json_line;
use crate::clock::{Clock, Time};
use crate::event::new_id;
use crate::json::top_level_string;
use crate::receive::unifyport::signature::sign;

/// Header names of UnifyPort's published reference "Webhook delivery and event semantics".
const EVENT_ID: &str = "X-Device-Event-Id";
pub(super) const TIMESTAMP: &str = "X-Device-Timestamp";
pub(super) const SIGNATURE: &str = "X-Device-Signature";

/// A signed body.
#[derive(Debug)]
pub(super) struct Delivery {
    pub(super) body: Vec<u8>,
    /// Names and values in the order in which they are printed.
    headers: [(&'static str, HeaderValue); 4],
}

impl Delivery {
    /// Signs `body` under `secret`.
    pub(super) fn new(body: Vec<u8>, given: Headers, secret: &[u8]) -> anyhow::Result<Delivery> {
        let now = Clock::wall().now();
        let timestamp = given.timestamp.unwrap_or_else(|| whole_seconds(now));
        let event_id = match given.event_id {
            Some(id) => value("--event-id", &id)?,
            None => own_id(&body)?.map_or_else(|| fresh_id(now), Ok)?,
        };
        let signature = sign(secret, timestamp.as_bytes(), &body);
        let headers = [
            ("Content-Type", HeaderValue::from_static("application/json")),
            (EVENT_ID, event_id),
            (TIMESTAMP, value("--timestamp", &timestamp)?),
            (SIGNATURE, HeaderValue::from_str(&signature)?),
        ];
        Ok(Delivery { body, headers })
    }

    /// The headers for HTTP.
    pub(super) fn header_map(&self) -> HeaderMap {
        let pairs = self.headers.iter();
        let named = |(name, value): &(&str, HeaderValue)| {
            Some((HeaderName::from_bytes(name.as_bytes()).ok()?, value.clone()))
        };
        pairs.filter_map(named).collect()
    }

    /// The headers for a person or `curl -H @`, or as JSON.
    pub(super) fn shown(&self, json: bool) -> anyhow::Result<Vec<u8>> {
        if json {
            let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
            let pairs = self.headers.iter().map(|(name, value)| (*name, text(value).into()));
            let object: serde_json::Map<String, serde_json::Value> =
                pairs.map(|(name, value)| (name.to_owned(), value)).collect();
            return Ok((json_line(&serde_json::to_string(&object)?) + "\n").into_bytes());
        }
        let lines = self.headers.iter().map(|(name, value)| {
            [name.as_bytes(), b": ".as_slice(), value.as_bytes(), b"\n"].concat()
        });
        Ok(lines.collect::<Vec<_>>().concat())
    }
}

/// The exact bytes of the file, or of standard input.
pub(super) fn body(input: &Input) -> anyhow::Result<Vec<u8>> {
    let file = input.file.as_deref().filter(|file| *file != Path::new("-"));
    let Some(file) = file else {
        let mut body = Vec::new();
        std::io::stdin().read_to_end(&mut body).context("standard input cannot be read")?;
        return Ok(body);
    };
    std::fs::read(file).with_context(|| {
        format!("the body {} cannot be read; correct the path or the file", file.display())
    })
}

/// As UnifyPort writes it.
fn whole_seconds(now: Time) -> String {
    Time::from_micros(now.micros() - now.micros().rem_euclid(1_000_000)).to_string()
}

fn fresh_id(now: Time) -> anyhow::Result<HeaderValue> {
    Ok(HeaderValue::from_str(&format!("evt_{}", new_id(now).simple()))?)
}

/// The id that the body carries, if any. The body may be a stranger's, so what is printed of it is
/// plain ASCII.
fn own_id(body: &[u8]) -> anyhow::Result<Option<HeaderValue>> {
    let Some(id) = top_level_string(body, "id").filter(|id| !id.trim_ascii().is_empty()) else {
        return Ok(None);
    };
    match HeaderValue::from_bytes(&id) {
        Ok(id) if id.to_str().is_ok() => Ok(Some(id)),
        _ => anyhow::bail!(
            "the body's own id is not plain ASCII; name the {EVENT_ID} to send with --event-id"
        ),
    }
}

fn value(argument: &str, text: &str) -> Result<HeaderValue, Usage> {
    HeaderValue::from_bytes(text.as_bytes()).map_err(|_| {
        Usage(format!("the text of {argument} cannot stand in a header; it has control characters"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(body: &str, event_id: Option<&str>) -> anyhow::Result<HeaderMap> {
        let event_id = event_id.map(str::to_owned);
        let given = Headers { timestamp: None, event_id };
        Ok(Delivery::new(body.as_bytes().to_vec(), given, b"s")?.header_map())
    }

    #[test]
    fn the_event_id_is_the_given_one_the_bodys_own_or_fresh() {
        let id = |body, given| {
            headers(body, given).map(|headers| headers[EVENT_ID].to_str().unwrap().to_owned())
        };
        assert_eq!(id(r#"{"id":"evt_1"}"#, Some("evt_2")).unwrap(), "evt_2");
        assert_eq!(id(r#"{"id":"evt_1"}"#, None).unwrap(), "evt_1");
        for body in ["", "[]", r#"{"id":7}"#, r#"{"id":" "}"#] {
            let (one, other) = (id(body, None).unwrap(), id(body, None).unwrap());
            assert!(one.starts_with("evt_") && one != other, "{body}");
        }
        for body in [r#"{"id":"é"}"#, r#"{"id":"a\nb"}"#, r#"{"id":"\u009b"}"#] {
            assert!(id(body, None).unwrap_err().to_string().contains("--event-id"), "{body}");
        }
        assert!(id("", Some("a\nb")).unwrap_err().is::<Usage>());
    }

    #[test]
    fn the_time_is_of_whole_seconds() {
        let time = Time::parse("2026-06-08T12:34:56.999999Z").unwrap();
        assert_eq!(whole_seconds(time), "2026-06-08T12:34:56Z");
    }
}
