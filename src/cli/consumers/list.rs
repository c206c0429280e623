//! Consumers for a person: all in a table, or one with its settings.

use crate::cli::table::{Column, Table};
use crate::cli::text::line;
use crate::cli::time::short;
use crate::config::units::format_duration;
use crate::consumer::ConsumerState;

/// All of them, and below what is to be known of each.
pub(super) fn table(states: &[ConsumerState]) -> String {
    let mut table = Table::new([
        Column::text("CONSUMER", 20),
        Column::text("STATE", 7),
        Column::number("READY"),
        Column::number("DELAYED"),
        Column::number("LEASED"),
        Column::number("DONE"),
        Column::number("DEAD"),
        Column::text("LAST CLAIM", usize::MAX),
    ]);
    let row = |state: &ConsumerState| {
        let number = |count: i64| count.to_string();
        [
            state.consumer.name.clone(),
            word(state).to_owned(),
            number(state.ready),
            number(state.delayed),
            number(state.leased),
            number(state.done),
            number(state.dead),
            state.last_claim_at.map_or_else(|| "-".to_owned(), short),
        ]
    };
    let mut text = table.rows(&states.iter().map(row).collect::<Vec<_>>());
    for (n, warning) in states.iter().filter_map(ConsumerState::warning).enumerate() {
        let gap = if n == 0 { "\n" } else { "" };
        text.push_str(&format!("{gap}{}\n", line(&warning)));
    }
    text
}

fn word(state: &ConsumerState) -> &'static str {
    match (state.paused, state.filling) {
        (true, _) => "paused",
        (false, true) => "filling",
        (false, false) => "-",
    }
}

/// One with its settings.
pub(super) fn one(state: &ConsumerState) -> String {
    let consumer = &state.consumer;
    let filter = [
        ("channels", &consumer.filter.channels),
        ("sources", &consumer.filter.sources),
        ("types", &consumer.filter.types),
    ];
    let filter: Vec<String> = filter
        .into_iter()
        .filter(|(_, values)| !values.is_empty())
        .map(|(what, values)| format!("{what} {}", values.join(", ")))
        .collect();
    let filter = if filter.is_empty() { "all events".to_owned() } else { filter.join("; ") };
    let oldest = state.oldest_ready.map(|oldest| format!(", the oldest for {}", seconds(oldest)));
    let wait = |duration| format_duration(duration);
    let rows = [
        ("name", consumer.name.clone()),
        ("state", word(state).to_owned()),
        ("ready", format!("{}{}", state.ready, oldest.unwrap_or_default())),
        ("delayed", state.delayed.to_string()),
        ("leased", state.leased.to_string()),
        ("done", state.done.to_string()),
        ("dead", state.dead.to_string()),
        ("ordering", consumer.ordering.name().to_owned()),
        ("lease", wait(consumer.lease)),
        ("max attempts", consumer.max_attempts.to_string()),
        ("backoff", format!("{} to {}", wait(consumer.backoff_first), wait(consumer.backoff_max))),
        ("filter", filter),
        ("added", state.created_at.to_string()),
        ("last claim", state.last_claim_at.map_or_else(|| "never".to_owned(), |at| at.to_string())),
    ];
    let mut text = String::new();
    for (what, value) in rows {
        text.push_str(&format!("{what:<13} {}\n", line(&value)));
    }
    if let Some(warning) = state.warning() {
        text.push_str(&format!("\n{}\n", line(&warning)));
    }
    text
}

/// A duration of people: without what is less than a second.
fn seconds(duration: std::time::Duration) -> String {
    format_duration(std::time::Duration::from_secs(duration.as_secs()))
}
