//! UnifyPort deliveries, signed as their sender signs them, or spoiled by a test.

use std::net::SocketAddr;

use inboxd::clock::{Clock, Time};
use inboxd::receive::unifyport::signature::sign;
use serde_json::json;

use super::http::{Connection, Response, head, post};

/// The secret of the endpoint `main` in the tests.
pub(crate) const SECRET: &str = "the tests' own signing secret";

/// One delivery, ready to be sent any number of times.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Delivery {
    /// Of now, to the endpoint `main`, signed with [`SECRET`], without an event id in its headers.
    pub(crate) fn new(body: impl Into<Vec<u8>>) -> Delivery {
        Delivery::signed(SECRET, &now().to_string(), body)
    }

    /// The same, of whatever the timestamp says, signed with this secret.
    pub(crate) fn signed(secret: &str, timestamp: &str, body: impl Into<Vec<u8>>) -> Delivery {
        let body = body.into();
        let signature = sign(secret.as_bytes(), timestamp.as_bytes(), &body);
        let delivery = Delivery {
            path: "/webhooks/unifyport/main".to_owned(),
            headers: vec![("Content-Type".to_owned(), "application/json".to_owned())],
            body,
        };
        delivery.with("X-Device-Timestamp", timestamp).with("X-Device-Signature", &signature)
    }

    /// The message that `message` makes, with its id in the header, as UnifyPort sends it.
    pub(crate) fn message(id: &str) -> Delivery {
        Delivery::new(message(id)).with("X-Device-Event-Id", id)
    }

    /// To another path.
    pub(crate) fn to(mut self, path: &str) -> Delivery {
        self.path = path.to_owned();
        self
    }

    /// With one more header.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Delivery {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Without any header of this name.
    pub(crate) fn without(mut self, name: &str) -> Delivery {
        self.headers.retain(|(is, _)| is != name);
        self
    }

    /// Sends it on a connection of its own.
    pub(crate) async fn send(&self, address: SocketAddr) -> Response {
        post(address, &self.path, &self.headers(), &self.body).await
    }

    /// The status, if the gateway is there and answers.
    pub(crate) async fn attempt(&self, address: SocketAddr) -> Option<u16> {
        let mut connection = Connection::try_open(address).await.ok()?;
        let answer = connection.request("POST", &self.path, &self.headers(), &self.body).await;
        answer.map(|answer| answer.status)
    }

    /// The head of the request, for a test that sends it in pieces.
    pub(crate) fn head(&self) -> Vec<u8> {
        head("POST", &self.path, &self.headers(), self.body.len()).into_bytes()
    }

    /// The whole request.
    pub(crate) fn request(&self) -> Vec<u8> {
        [self.head(), self.body.clone()].concat()
    }

    fn headers(&self) -> Vec<(&str, &str)> {
        self.headers.iter().map(|(name, value)| (&**name, &**value)).collect()
    }
}

/// The time, as a sender knows it.
pub(crate) fn now() -> Time {
    Clock::wall().now()
}

/// The body of a `message.received`, in a conversation that all with this first letter share.
pub(crate) fn message(id: &str) -> Vec<u8> {
    let conversation = &id[..1];
    let body = json!({
        "id": id,
        "type": "message.received",
        "provider": "whatsapp",
        "account_id": "acc_8c21d0",
        "occurred_at": "2026-06-08T12:34:56Z",
        "data": {
            "conversation": { "id": conversation, "type": "user" },
            "sender": { "id": conversation },
            "message": { "id": format!("wamid.{id}"), "type": "text", "text": "привет 👋" },
        },
    });
    body.to_string().into_bytes()
}
