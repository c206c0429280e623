//! A keep-alive connection to whichever gateway is up, and again to the next when that one dies.

use std::net::SocketAddr;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde_json::Value;
use tokio::sync::watch;

use crate::support::http::{Connection, Response, head};

/// Before another look for a gateway, unless one is announced.
const PAUSE: Duration = Duration::from_millis(20);
/// A client that breaks off does so within this time of its request, some before it is read.
const BREAKS_OFF_MS: u64 = 8;
const JSON: [(&str, &str); 1] = [("Content-Type", "application/json")];

/// Where a gateway listens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Addresses {
    pub(super) public: SocketAddr,
    pub(super) private: SocketAddr,
}

/// Where each gateway listens now; none while it is down.
pub(super) type Gateways = Vec<Option<Addresses>>;

/// One client's connection, if it has any at the moment.
pub(super) struct Line {
    gateways: watch::Receiver<Gateways>,
    listener: fn(&Addresses) -> SocketAddr,
    connection: Option<Connection>,
    random: StdRng,
}

/// An answer that came in the end.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) json: Value,
    /// How often it was asked: an answer that was lost is asked for again.
    pub(super) tries: u32,
}

impl Line {
    /// To the listener for deliveries.
    pub(super) fn public(gateways: watch::Receiver<Gateways>, seed: u64) -> Line {
        Line::to(gateways, |gateway| gateway.public, seed)
    }

    /// To the listener for workers.
    pub(super) fn private(gateways: watch::Receiver<Gateways>, seed: u64) -> Line {
        Line::to(gateways, |gateway| gateway.private, seed)
    }

    fn to(
        gateways: watch::Receiver<Gateways>,
        listener: fn(&Addresses) -> SocketAddr,
        seed: u64,
    ) -> Line {
        Line { gateways, listener, connection: None, random: StdRng::seed_from_u64(seed) }
    }

    /// Sends a whole request and reads the answer; none if it got lost.
    pub(super) async fn exchange(&mut self, request: &[u8]) -> Option<Response> {
        let mut connection = self.connect().await;
        // A peer that dies may have answered before.
        let _ = connection.write(request).await;
        let answer = connection.response().await?;
        self.connection = Some(connection);
        Some(answer)
    }

    /// Makes a call of the consumer; none if the answer got lost, or says that it passes.
    pub(super) async fn once(&mut self, call: &str, body: &Value) -> Option<Response> {
        let answer = self.exchange(&request(call, body)).await?;
        (answer.status < 500).then_some(answer)
    }

    /// Makes a call again and again until it is answered.
    pub(super) async fn call(&mut self, call: &str, body: &Value) -> Answer {
        let mut tries = 0;
        loop {
            tries += 1;
            if let Some(answer) = self.once(call, body).await {
                return Answer { status: answer.status, json: answer.json(), tries };
            }
        }
    }

    /// Makes a call and is gone before the answer, or before the request is whole.
    pub(super) async fn break_off(&mut self, call: &str, body: &Value) {
        let mut connection = self.connect().await;
        let request = request(call, body);
        let whole = self.random.random_ratio(3, 4);
        let sent = if whole { request.len() } else { self.random.random_range(0..request.len()) };
        let _ = connection.write(&request[..sent]).await;
        let moment = Duration::from_millis(self.random.random_range(0..BREAKS_OFF_MS));
        tokio::time::sleep(moment).await;
        if self.random.random() {
            connection.reset();
        }
    }

    /// Drops the connection, as one that dies does.
    pub(super) fn hang_up(&mut self) {
        self.connection = None;
    }

    /// The connection; now and then another one, where there are several gateways.
    async fn connect(&mut self) -> Connection {
        let several = self.gateways.borrow().len() > 1;
        let kept = self.connection.take();
        if let Some(kept) = kept
            && !(several && self.random.random_ratio(1, 4))
        {
            return kept;
        }
        loop {
            let up: Vec<SocketAddr> =
                self.gateways.borrow_and_update().iter().flatten().map(self.listener).collect();
            if let Some(address) = up.choose(&mut self.random)
                && let Ok(connection) = Connection::try_open(*address).await
            {
                return connection;
            }
            let _ = tokio::time::timeout(PAUSE, self.gateways.changed()).await;
        }
    }
}

fn request(call: &str, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    let head = head("POST", &format!("/v1/consumers/default/{call}"), &JSON, body.len());
    [head.as_bytes(), body.as_bytes()].concat()
}
