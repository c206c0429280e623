//! The worker: claims what is due, acts on it by printing it, and acks it.

use serde_json::{Value, json};

use super::private_api::PrivateApi;
use super::say;
use crate::cli::table::{Column, Table};

const CLAIM: &str = "/v1/consumers/default/claim";
const ACK: &str = "/v1/consumers/default/ack";

/// What a worker did until nothing was due any more.
#[derive(Debug, Default)]
pub(super) struct Drained {
    /// The deliveries in the order in which it acted.
    pub(super) deliveries: Vec<Value>,
    /// How many the inbox took as done.
    pub(super) acked: usize,
}

/// Works until a claim comes back empty.
pub(super) async fn drain(api: &PrivateApi) -> anyhow::Result<Drained> {
    let columns =
        [Column::text("CHANNEL", 10), Column::text("SENDER", 16), Column::text("TEXT", usize::MAX)];
    let mut table = Table::new(columns);
    let mut drained = Drained::default();
    loop {
        let claimed = api.post(CLAIM, &json!({ "max": 100 })).await?;
        let claimed = claimed["deliveries"].as_array().cloned().unwrap_or_default();
        if claimed.is_empty() {
            return Ok(drained);
        }
        say(&table.rows(&claimed.iter().map(row).collect::<Vec<_>>())).await?;
        let receipts: Vec<&Value> = claimed.iter().map(|one| &one["receipt"]).collect();
        let acked = api.post(ACK, &json!({ "receipts": receipts })).await?;
        drained.acked += acked["done"].as_array().map_or(0, Vec::len);
        drained.deliveries.extend(claimed);
    }
}

/// Channel, sender and text.
pub(super) fn row(delivery: &Value) -> [String; 3] {
    let (event, message) = (&delivery["event"], &delivery["message"]);
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let said = text(&message["text"]).or_else(|| text(&event["type"]));
    [text(&event["channel"]), text(&message["sender"]["name"]), said].map(Option::unwrap_or_default)
}
