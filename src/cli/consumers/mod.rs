//! `inboxd consumers`: the independent readers of the inbox.

mod add;
mod list;
mod remove;

use std::time::Instant;

use anyhow::Context as _;
use clap::Subcommand;

use super::context::Context;
use super::output::print;
use crate::consumer::ConsumerState;
use crate::deliver::{shown, shown_list};
use crate::store::{self, Store, StoreError};

#[derive(Debug, Subcommand)]
pub(super) enum Consumers {
    /// List all consumers: what waits, what is done, who rests, and whom nobody claims from.
    #[command(after_help = "Example: inboxd consumers list")]
    List {
        /// Print them as one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Show one consumer with its settings.
    #[command(after_help = "Example: inboxd consumers show default")]
    Show {
        /// Its name.
        name: String,
        /// Print it as one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Add a consumer, from now on or over what the inbox holds already.
    ///
    /// Until all of that is its work, it has no claims. If this is interrupted, `serve` goes on with
    /// it.
    #[command(
        after_help = "Example: inboxd consumers add audit --from beginning --channel telegram"
    )]
    Add(add::Add),
    /// Let a consumer rest: its claims are empty, and what comes in still becomes its work.
    ///
    /// What is leased can still be finished. A running `serve` follows at once.
    #[command(after_help = "Example: inboxd consumers pause crm")]
    Pause {
        /// Its name.
        name: String,
    },
    /// End a pause.
    #[command(after_help = "Example: inboxd consumers resume crm")]
    Resume {
        /// Its name.
        name: String,
    },
    /// Remove a consumer with all of its work, finished or not. Events stay in the inbox.
    ///
    /// Without --yes nothing is changed and the exit code is 1.
    #[command(after_help = "Example: inboxd consumers remove crm --yes")]
    Remove {
        /// Its name.
        name: String,
        /// Really remove it.
        #[arg(long)]
        yes: bool,
    },
}

/// Runs one of these commands.
pub(super) async fn consumers(command: Consumers, context: &Context) -> anyhow::Result<()> {
    let config = context.config_to_look()?;
    context
        .with_store(&config, async |store| match command {
            Consumers::List { json } => {
                let states = store.consumer_states(None).await?;
                if json {
                    return print(serde_json::to_string(&shown_list(states))? + "\n").await;
                }
                print(list::table(&states)).await
            }
            Consumers::Show { name, json } => {
                let state = find(&*store, &name).await?;
                if json {
                    return print(serde_json::to_string(&shown(state))? + "\n").await;
                }
                print(list::one(&state)).await
            }
            Consumers::Add(add) => add::add(&*store, &config, add).await,
            Consumers::Pause { name } => pause(&*store, &name, true).await,
            Consumers::Resume { name } => pause(&*store, &name, false).await,
            Consumers::Remove { name, yes } => remove::remove(&*store, &config, &name, yes).await,
        })
        .await
}

async fn find(store: &dyn Store, name: &str) -> anyhow::Result<ConsumerState> {
    let states = store.consumer_states(Some(name)).await?;
    states.into_iter().next().ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> anyhow::Error {
    anyhow::anyhow!(
        "the store knows no consumer {name:?}; `inboxd consumers list` shows those it knows"
    )
}

async fn pause(store: &dyn Store, name: &str, paused: bool) -> anyhow::Result<()> {
    match store.pause_consumer(name, paused).await {
        Err(StoreError::UnknownConsumer(_)) => return Err(unknown(name)),
        changed => {
            changed.with_context(|| format!("{name} is as it was, since the store failed"))?
        }
    }
    print(match paused {
        true => format!(
            "{name} rests: its claims are empty from now on, while events are received as before and \
             wait for it; what is leased can be finished; `inboxd consumers resume {name}` ends this\n"
        ),
        false => format!("{name} goes on: what waits for it can be claimed\n"),
    })
    .await
}

/// Repeats `step` for as long as it tells that there is more. It rests for as long as it worked,
/// because of two processes that write to one SQLite file without a break the one starves the other.
async fn repeat(step: impl AsyncFn() -> store::Result<bool>) -> store::Result<()> {
    loop {
        let begin = Instant::now();
        if !step().await? {
            return Ok(());
        }
        tokio::time::sleep(begin.elapsed()).await;
    }
}
