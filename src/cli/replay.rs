//! `inboxd replay`: finished work that is to be done again.

use anyhow::Context as _;
use clap::Args;

use super::consumer::named_or_only;
use super::context::{Context, Usage};
use super::events::{EventId, Filter, id};
use super::output::print;
use crate::inbox;
use crate::replay::Selection;

#[derive(Debug, Args)]
pub(super) struct Replay {
    #[command(flatten)]
    filter: Filter,
    /// Only of these events: an id, or a number as `events list` shows it; may be repeated.
    #[arg(long = "id", value_name = "ID")]
    ids: Vec<EventId>,
    /// All events.
    #[arg(long, conflicts_with_all = ["ids", "Filter"])]
    all: bool,
    /// Whose work; need not be said where there is only one consumer.
    #[arg(long, value_name = "NAME")]
    consumer: Option<String>,
    /// Print the count as one JSON object.
    #[arg(long)]
    json: bool,
}

/// Makes done and dead work due again.
pub(super) async fn replay(command: Replay, context: &Context) -> anyhow::Result<()> {
    let Replay { filter, ids, all, consumer, json } = command;
    let ids = (!ids.is_empty()).then_some(ids);
    let chosen = filter.selection();
    if ids.is_none() && !all && chosen == Selection::default() {
        let usage = "say which events by --id or by a filter such as --since, or say --all";
        return Err(Usage(usage.to_owned()).into());
    }
    again(context, consumer, ids, chosen, json.then_some("replayed")).await
}

/// Makes due again what `selection` means, of these events if any are named, and says how much that
/// was: to a person, or in JSON under the name `json`.
pub(super) async fn again(
    context: &Context,
    consumer: Option<String>,
    events: Option<Vec<EventId>>,
    mut selection: Selection,
    json: Option<&str>,
) -> anyhow::Result<()> {
    let config = context.config_to_look()?;
    context
        .with_store(&config, async |store| {
            let consumer = named_or_only(&*store, consumer).await?;
            if let Some(events) = events {
                let mut ids = Vec::new();
                for event in events {
                    ids.push(id(&*store, event).await?);
                }
                selection.ids = Some(ids);
            }
            let mut count = 0;
            let done = inbox::replay(&*store, &consumer, selection, |made| {
                count += made.count;
                Ok(())
            });
            done.await.with_context(|| {
                format!(
                    "only {} due again for consumer {consumer}, since the store failed; run this \
                     again for the rest",
                    events_are(count)
                )
            })?;
            print(match json {
                Some(name) => format!("{}\n", serde_json::json!({ name: count })),
                None => format!("{} due again for consumer {consumer}\n", events_are(count)),
            })
            .await
        })
        .await
}

fn events_are(count: usize) -> String {
    if count == 1 { "1 event is".to_owned() } else { format!("{count} events are") }
}
