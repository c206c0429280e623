//! `inboxd dead requeue`: dead work that is to be tried again.

use clap::Args;

use super::context::{Context, Usage};
use super::events::EventId;
use super::replay::again;
use crate::replay::Selection;

#[derive(Debug, Args)]
pub(super) struct Requeue {
    /// The events: their ids, or their numbers as `events list` shows them.
    #[arg(value_name = "ID")]
    ids: Vec<EventId>,
    /// All dead work of the consumer.
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    /// Whose work; need not be said where there is only one consumer.
    #[arg(long, value_name = "NAME")]
    consumer: Option<String>,
    /// Print the count as one JSON object.
    #[arg(long)]
    json: bool,
}

/// Makes dead work due again.
pub(super) async fn requeue(command: Requeue, context: &Context) -> anyhow::Result<()> {
    let Requeue { ids, all, consumer, json } = command;
    if ids.is_empty() && !all {
        let usage = "name the events by their ids or numbers, or say --all";
        return Err(Usage(usage.to_owned()).into());
    }
    let dead = Selection { dead: true, ..Selection::default() };
    again(context, consumer, (!all).then_some(ids), dead, json.then_some("requeued")).await
}
