//! `inboxd dead`: work that was given up after its last attempt.

use clap::Subcommand;

use super::context::Context;
use super::requeue::{Requeue, requeue};

#[derive(Debug, Subcommand)]
pub(super) enum Dead {
    /// Make dead work due again, with all its attempts before it.
    ///
    /// It stands behind all work that waits.
    #[command(after_help = "Example: inboxd dead requeue 42 43")]
    Requeue(Requeue),
}

/// Runs one of these commands.
pub(super) async fn dead(command: Dead, context: &Context) -> anyhow::Result<()> {
    match command {
        Dead::Requeue(command) => requeue(command, context).await,
    }
}
