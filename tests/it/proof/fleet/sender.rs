//! What is sent, and senders that send it until it is taken, some of it once more.

use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;

use super::Fleet;
use super::line::Line;
use crate::support::delivery::{Delivery, SECRET, now};

pub(super) const SENDERS: usize = 50;
pub(super) const CONVERSATIONS: usize = 200;
/// One of so many events belongs to no conversation.
const ALONE: usize = 40;
/// Ahead of what is finished at the most, so that a gateway that dies has senders and workers.
const AHEAD: usize = 400;
/// These cannot be worked on: their worker gives them up, or dies of them.
const POISON: [(usize, Kind); 2] = [(203, Kind::Spoiled), (205, Kind::Deadly)];

/// How an event takes it to be worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Good,
    /// Every act fails, which its worker notices.
    Spoiled,
    /// Every act kills the worker.
    Deadly,
}

impl Kind {
    /// By the id that its sender gave it.
    pub(super) fn of(external_id: &str) -> Kind {
        let number = external_id.strip_prefix("evt-").and_then(|number| number.parse().ok());
        let found = POISON.iter().find(|(poison, _)| Some(*poison) == number);
        found.map_or(Kind::Good, |(_, kind)| *kind)
    }
}

/// How many of so many events are poison.
pub(super) fn poison(events: usize) -> usize {
    POISON.iter().filter(|(number, _)| *number < events).count()
}

/// The event of that number.
fn delivery(number: usize) -> Delivery {
    let id = format!("evt-{number}");
    let alone = number % ALONE == ALONE - 1;
    let (kind, data) = match alone {
        true => ("account.status.updated", json!({"status": "online"})),
        false => {
            let conversation = format!("c{}", number % CONVERSATIONS);
            let conversation = json!({"id": conversation, "type": "user"});
            let message = json!({"id": format!("m{number}"), "type": "text", "text": "hello"});
            ("message.received", json!({"conversation": conversation, "message": message}))
        }
    };
    let body = json!({"id": id, "type": kind, "provider": "whatsapp", "account_id": "acc",
        "occurred_at": "2026-06-08T12:34:56Z", "data": data});
    let body = body.to_string();
    Delivery::signed(SECRET, &now().to_string(), body).with("X-Device-Event-Id", &id)
}

/// Sends every [`SENDERS`]th event from `first` on; tells how many were sent more than once.
pub(super) async fn send(fleet: Arc<Fleet>, first: usize, seed: u64) -> usize {
    let mut random = StdRng::seed_from_u64(seed);
    let mut line = Line::public(fleet.gateways.subscribe(), random.random());
    let mut again = 0;
    for number in (first..fleet.events).step_by(SENDERS) {
        fleet.oracle.finished(number.saturating_sub(AHEAD)).await;
        let request = delivery(number).request();
        let mut sent = 0;
        loop {
            sent += 1;
            let answer = line.exchange(&request).await;
            match answer.map(|answer| answer.status) {
                Some(204) if random.random_ratio(1, 20) => {}
                Some(204) => break,
                None | Some(503) => {}
                Some(other) => {
                    fleet.oracle.fault(format!("delivery {number} was answered {other}"));
                    break;
                }
            }
        }
        again += usize::from(sent > 1);
    }
    again
}
