//! Events as CloudEvents 1.0 in structured JSON, with the channel-neutral view beside them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::clock::Time;
use crate::event::{self, Event, EventDetail};
use crate::json::portable;
use crate::view::{Message, view};

/// An event and its view, as every answer shows them.
#[derive(Debug, Serialize)]
pub struct Item<'a> {
    event: CloudEvent<'a>,
    message: Option<Message>,
}

/// CloudEvents 1.0, structured mode; attributes that an event lacks are left out.
#[derive(Debug, Serialize)]
struct CloudEvent<'a> {
    specversion: &'static str,
    id: String,
    source: &'a str,
    #[serde(rename = "type")]
    event_type: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<Time>,
    datacontenttype: &'static str,
    channel: &'a str,
    account: &'a str,
    externalid: &'a str,
    sequence: String,
    receivedat: Time,
    #[serde(flatten)]
    data: Data,
}

/// A payload that every JSON reader takes, unchanged; any other in base64, so that one odd event
/// cannot spoil the answer that holds it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Data {
    Data(Box<RawValue>),
    DataBase64(String),
}

impl Data {
    fn of(body: &[u8]) -> Data {
        let text = portable(body).then(|| String::from_utf8(body.to_vec()).ok()).flatten();
        match text.and_then(|text| RawValue::from_string(text).ok()) {
            Some(json) => Data::Data(json),
            None => Data::DataBase64(STANDARD.encode(body)),
        }
    }
}

/// The event as answers show it.
pub fn item(event: &Event) -> Item<'_> {
    let attributes = &event.attributes;
    Item {
        event: CloudEvent {
            specversion: "1.0",
            id: event.id.to_string(),
            source: &attributes.origin,
            event_type: &attributes.event_type,
            subject: attributes.subject.as_deref(),
            time: attributes.time,
            datacontenttype: "application/json",
            channel: &attributes.channel,
            account: &attributes.account,
            externalid: &attributes.external_id,
            sequence: event.sequence.to_string(),
            receivedat: event.received_at,
            data: Data::of(&event.body),
        },
        message: view(&attributes.event_type, &event.body),
    }
}

/// What is known about one event.
#[derive(Debug, Serialize)]
pub struct Detail<'a> {
    #[serde(flatten)]
    item: Item<'a>,
    receipts: i64,
    last_received_at: Time,
    first_secret: Option<i64>,
    flags: Vec<&'static str>,
    headers: Option<&'a RawValue>,
    variants: Vec<Variant>,
    consumers: Vec<Work<'a>>,
}

#[derive(Debug, Serialize)]
struct Variant {
    received_at: Time,
    receipts: i64,
    sha256: String,
    size: usize,
}

#[derive(Debug, Serialize)]
struct Work<'a> {
    name: &'a str,
    state: &'static str,
    attempt: i64,
    due_at: Option<Time>,
    finished_at: Option<Time>,
    attempts: Vec<Attempt<'a>>,
}

#[derive(Debug, Serialize)]
struct Attempt<'a> {
    attempt: i64,
    at: Time,
    error: &'a str,
}

/// A dead letter as answers show it.
#[derive(Debug, Serialize)]
pub struct DeadLetter<'a> {
    #[serde(flatten)]
    item: Item<'a>,
    attempts: Vec<Attempt<'a>>,
    died_at: Time,
}

/// An event that is dead for a consumer since `died_at`, after these attempts.
pub fn dead_letter<'a>(
    event: &'a Event,
    tried: &'a [event::Attempt],
    died_at: Time,
) -> DeadLetter<'a> {
    DeadLetter { item: item(event), attempts: attempts(tried), died_at }
}

fn attempts(attempts: &[event::Attempt]) -> Vec<Attempt<'_>> {
    let all = attempts.iter();
    all.map(|one| Attempt { attempt: one.attempt, at: one.at, error: &one.error }).collect()
}

/// One event with what is known about it.
pub fn detail(detail: &EventDetail) -> Detail<'_> {
    let headers = detail.headers.as_deref();
    Detail {
        item: item(&detail.event),
        receipts: detail.receipts,
        last_received_at: detail.last_received_at,
        first_secret: detail.first_secret,
        flags: detail.flags.names(),
        headers: headers.and_then(|headers| serde_json::from_str(headers).ok()),
        variants: detail
            .variants
            .iter()
            .map(|variant| Variant {
                received_at: variant.received_at,
                receipts: variant.receipts,
                sha256: hex::encode(variant.body_hash),
                size: variant.body.len(),
            })
            .collect(),
        consumers: detail
            .work
            .iter()
            .map(|work| Work {
                name: &work.consumer,
                state: work.state,
                attempt: work.attempt,
                due_at: work.due_at,
                finished_at: work.finished_at,
                attempts: attempts(&work.attempts),
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use uuid::Uuid;

    use super::*;
    use crate::event::Attributes;

    fn shown(body: &'static [u8]) -> String {
        let event = Event {
            sequence: 42,
            id: Uuid::nil(),
            source: "main".to_owned(),
            received_at: Time::parse("2026-11-30T09:00:01.123Z").unwrap(),
            attributes: Attributes {
                event_type: "unifyport.unknown".to_owned(),
                channel: "unifyport".to_owned(),
                account: "-".to_owned(),
                external_id: "evt".to_owned(),
                origin: "/unifyport/main/-".to_owned(),
                subject: None,
                time: None,
            },
            body: Bytes::from_static(body),
        };
        serde_json::to_string(&item(&event)).unwrap()
    }

    #[test]
    fn data_keeps_digits_order_and_repeated_keys() {
        let text = shown(br#"{"n":1.10,"a":12345678901234567890,"n":2}"#);
        assert!(text.contains(r#""data":{"n":1.10,"a":12345678901234567890,"n":2}"#), "{text}");
        assert!(text.contains(r#""receivedat":"2026-11-30T09:00:01.123Z""#), "{text}");
        assert!(!text.contains("subject") && !text.contains("\"time\""), "{text}");
    }

    #[test]
    fn what_a_reader_would_refuse_comes_in_base64() {
        for body in [&b"\xff\xfe"[..], b"", b"not json", br#""\ud800""#, b"1e999"] {
            let text = shown(body);
            assert!(text.contains(&format!(r#""data_base64":"{}""#, STANDARD.encode(body))));
            serde_json::from_str::<serde_json::Value>(&text).unwrap();
        }
    }
}
