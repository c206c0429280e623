//! `inboxd dead`: work that no attempt finished.

use std::num::NonZeroUsize;
use std::sync::Arc;

use anyhow::Context as _;
use clap::Subcommand;

use super::consumer::named_or_only;
use super::context::Context;
use super::events::show::Page;
use super::events::{EventId, find};
use super::output::print;
use super::requeue::{Requeue, requeue};
use super::table::{Column, Table};
use super::text::json_line;
use super::time::short;
use crate::clock::Time;
use crate::deliver::dead_letter;
use crate::event::{Attempt, Event, EventDetail};
use crate::store::Store;
use crate::work::{DeadLetter, DeadQuery};

/// At most so many dead letters are in memory at a time.
const PAGE: usize = 500;
/// At most so many bytes of their bodies, but always one.
const PAGE_BYTES: usize = 16 << 20;

#[derive(Debug, Subcommand)]
pub(super) enum Dead {
    /// List the dead letters of a consumer, oldest first.
    #[command(after_help = "Example: inboxd dead list --limit 10")]
    List {
        /// Whose; can be left out where there is only one consumer.
        #[arg(long, value_name = "NAME")]
        consumer: Option<String>,
        /// At most so many.
        #[arg(long, value_name = "N", default_value = "50")]
        limit: NonZeroUsize,
        /// Print one JSON object a line: event and message, the attempts, and since when it is dead.
        #[arg(long)]
        json: bool,
    },
    /// Show one dead letter: what went wrong at each attempt, and the event.
    #[command(after_help = "Example: inboxd dead show 42")]
    Show {
        /// The event's id, or its number in the first column of `dead list`.
        id: EventId,
        /// Whose; can be left out where there is only one consumer.
        #[arg(long, value_name = "NAME")]
        consumer: Option<String>,
        /// Print it as one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Make dead work due again, with all its attempts before it.
    ///
    /// It stands behind all work that waits.
    #[command(after_help = "Example: inboxd dead requeue 42 43")]
    Requeue(Requeue),
}

/// Runs one of these commands.
pub(super) async fn dead(command: Dead, context: &Context) -> anyhow::Result<()> {
    let config = context.config_to_look()?;
    match command {
        Dead::List { consumer, limit, json } => {
            let work = async |store: Arc<dyn Store>| {
                let consumer = named_or_only(&*store, consumer).await?;
                list(&*store, &consumer, limit.get(), json).await
            };
            context.with_store(&config, work).await
        }
        Dead::Show { id, consumer, json } => {
            let work = async |store: Arc<dyn Store>| {
                let consumer = named_or_only(&*store, consumer).await?;
                print(shown(&find(&*store, id).await?, &consumer, json)?).await
            };
            context.with_store(&config, work).await
        }
        Dead::Requeue(command) => requeue(command, context).await,
    }
}

async fn list(store: &dyn Store, consumer: &str, limit: usize, json: bool) -> anyhow::Result<()> {
    let mut table = Table::new([
        Column::number("NO"),
        Column::text("DIED (UTC)", 14),
        Column::text("CHANNEL", 9),
        Column::number("ATTEMPTS"),
        Column::text("LAST ERROR", usize::MAX),
    ]);
    let (mut after, mut left) = (None, limit);
    loop {
        let query = DeadQuery { after, limit: left.min(PAGE), max_bytes: PAGE_BYTES };
        let page = store.dead(consumer, query).await?;
        if json {
            for letter in &page.letters {
                print(line(&letter.event, &letter.attempts, letter.died_at)?).await?;
            }
        } else if page.letters.is_empty() && after.is_none() {
            return print(format!("{consumer} has no dead letter\n")).await;
        } else {
            print(table.rows(&page.letters.iter().map(row).collect::<Vec<_>>())).await?;
        }
        left -= page.letters.len().min(left);
        after = page.letters.last().map(|letter| letter.place);
        if !page.more || left == 0 || after.is_none() {
            return Ok(());
        }
    }
}

fn row(letter: &DeadLetter) -> [String; 5] {
    let last = letter.attempts.last();
    [
        letter.event.sequence.to_string(),
        short(letter.died_at),
        letter.event.attributes.channel.clone(),
        last.map_or_else(|| "-".to_owned(), |last| last.attempt.to_string()),
        last.map_or_else(|| "-".to_owned(), |last| last.error.clone()),
    ]
}

/// A dead letter as the API answers it, on one line.
fn line(event: &Event, attempts: &[Attempt], died_at: Time) -> anyhow::Result<String> {
    let json = serde_json::to_string(&dead_letter(event, attempts, died_at));
    Ok(json_line(&json.context("the dead letter cannot be written as JSON")?) + "\n")
}

fn shown(detail: &EventDetail, consumer: &str, json: bool) -> anyhow::Result<String> {
    let number = detail.event.sequence;
    let work = detail.work.iter().find(|work| work.consumer == consumer);
    let work = work.with_context(|| format!("the event {number} is no work of {consumer}"))?;
    let died_at = work.finished_at.filter(|_| work.state == "dead").with_context(|| {
        format!(
            "the event {number} is not dead for {consumer} but {}; `inboxd events show {number}` \
             tells more",
            work.state
        )
    })?;
    if json {
        return line(&detail.event, &work.attempts, died_at);
    }
    let mut page = Page::default();
    page.row("consumer", consumer);
    page.row("died", &died_at.to_string());
    page.attempts(&work.attempts);
    page.event(detail);
    page.body(&detail.event);
    Ok(page.0)
}
