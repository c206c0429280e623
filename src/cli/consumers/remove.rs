//! `inboxd consumers remove`.

use anyhow::Context as _;

use crate::cli::output::print;
use crate::config::{Config, Consumer};
use crate::consumer::ConsumerState;
use crate::store::Store;

/// Pieces of work in one transaction: few enough that a gateway on the same store hardly waits.
const PIECES: usize = 500;

/// Removes the consumer if that is really wanted and lasts.
pub(super) async fn remove(
    store: &dyn Store,
    config: &Config,
    name: &str,
    yes: bool,
) -> anyhow::Result<()> {
    let state = super::find(store, name).await?;
    refuse_configured(config, name)?;
    let work = work(&state);
    anyhow::ensure!(
        yes,
        "nothing is removed: with {name} would go {work}; say --yes to remove it all the same, or \
         `inboxd consumers pause {name}` to let it rest"
    );
    let removed = super::repeat(async || Ok(!store.remove_consumer(name, PIECES).await?)).await;
    removed.with_context(|| {
        format!("{name} is paused but not removed to the end, since the store failed; try again")
    })?;
    print(format!("{name} is removed, and with it {work}; the events stay in the inbox\n")).await
}

/// The work that nobody will do.
fn work(state: &ConsumerState) -> String {
    format!("{} unfinished and {} dead pieces of its work", state.unfinished(), state.dead)
}

/// The next start or SIGHUP of `serve` would bring it back.
fn refuse_configured(config: &Config, name: &str) -> anyhow::Result<()> {
    if !config.consumers.iter().any(|consumer| consumer.name == name) {
        return Ok(());
    }
    if config.consumers == [Consumer::new("default")] {
        anyhow::bail!(
            "the configuration has the consumer {name}, as it has whenever it names no other: write a \
             [[consumer]] table of another name, let a running `serve` know by SIGHUP or a restart, \
             then remove this one"
        );
    }
    anyhow::bail!(
        "the configuration still names {name}: take its [[consumer]] table out, let a running \
         `serve` know by SIGHUP or a restart, then remove it"
    )
}
