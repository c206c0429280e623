//! A UnifyPort that signs what it sends, and that can send it again, replay it or forge it.
//!
//! Source: UnifyPort's published reference "Webhook delivery and event semantics".

use std::time::Duration;

use bytes::Bytes;
use reqwest::{Client, redirect};
use serde_json::json;

use crate::clock::Time;
use crate::receive::unifyport::signature::sign;

/// Longer than any answer of a gateway takes.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A delivery as it goes over the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// `X-Device-Event-Id`.
    pub event_id: String,
    /// `X-Device-Timestamp`.
    pub timestamp: String,
    /// `X-Device-Signature`.
    pub signature: String,
    /// The exact bytes.
    pub body: Bytes,
}

impl Delivery {
    /// Signs `body` under `secret`, as sent at `now`.
    pub fn signed(event_id: &str, body: impl Into<Bytes>, now: Time, secret: &[u8]) -> Delivery {
        let (body, timestamp) = (body.into(), now.to_string());
        let signature = sign(secret, timestamp.as_bytes(), &body);
        Delivery { event_id: event_id.to_owned(), timestamp, signature, body }
    }

    /// The same signed bytes under another event id, which the signature does not cover.
    #[must_use]
    pub fn under(&self, event_id: &str) -> Delivery {
        Delivery { event_id: event_id.to_owned(), ..self.clone() }
    }
}

/// A text message that somebody sent to an account.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a> {
    /// The event's own id.
    pub id: &'a str,
    /// The channel, such as `whatsapp`.
    pub provider: &'a str,
    /// The sender's id, which is the conversation's too.
    pub sender_id: &'a str,
    /// The sender's name.
    pub sender: &'a str,
    /// What it says.
    pub text: &'a str,
}

impl Text<'_> {
    /// The body of its delivery.
    pub fn body(&self, now: Time) -> Bytes {
        let Text { id, provider, sender_id, sender, text } = self;
        let now = now.to_string();
        let body = json!({
            "id": id, "type": "message.received", "provider": provider,
            "account_id": format!("acc_{provider}"), "occurred_at": now,
            "data": {
                "conversation": { "id": sender_id, "type": "user", "title": sender },
                "sender": { "id": sender_id, "type": "user", "name": sender },
                "message": {
                    "id": format!("m_{id}"), "type": "text", "text": text,
                    "direction": "inbound", "sent_at": now,
                },
            },
        });
        body.to_string().into()
    }
}

/// Posts deliveries to one endpoint after another.
#[derive(Clone, Debug)]
pub struct Sender(Client);

impl Sender {
    /// One that follows no redirect and uses no proxy.
    ///
    /// # Errors
    /// No HTTP client can be made.
    pub fn new() -> reqwest::Result<Sender> {
        let client = Client::builder().redirect(redirect::Policy::none()).referer(false);
        Ok(Sender(client.no_proxy().timeout(TIMEOUT).build()?))
    }

    /// Posts `delivery`; the answer's status.
    ///
    /// # Errors
    /// There was no answer.
    pub async fn post(&self, url: &str, delivery: &Delivery) -> reqwest::Result<u16> {
        let request = self
            .0
            .post(url)
            .header("Content-Type", "application/json")
            .header("X-Device-Event-Id", &delivery.event_id)
            .header("X-Device-Timestamp", &delivery.timestamp)
            .header("X-Device-Signature", &delivery.signature)
            .body(delivery.body.clone());
        Ok(request.send().await.map_err(reqwest::Error::without_url)?.status().as_u16())
    }
}
