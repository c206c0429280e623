//! What a command works with: the configuration, and the store that it names.

use std::path::PathBuf;
use std::sync::Arc;

use crate::config::{Config, Env};
use crate::store::Store;

/// Where the configuration of this run comes from.
#[derive(Debug)]
pub(super) struct Context {
    /// The config file, if there is one.
    pub(super) file: Option<PathBuf>,
    /// The environment.
    pub(super) env: Env,
}

impl Context {
    /// The configuration; all its faults are the error, one a line.
    pub(super) fn config(&self) -> anyhow::Result<Config> {
        Ok(Config::load(self.file.as_deref(), &self.env)?)
    }

    /// Works on the store itself, so whether `serve` runs or not makes no difference.
    pub(super) async fn with_store<T>(
        &self,
        config: &Config,
        work: impl AsyncFnOnce(Arc<dyn Store>) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let store = crate::open(config, false).await?;
        let outcome = work(store.clone()).await;
        store.close().await;
        outcome
    }
}

/// A wrong use of the command line: exit code 2, as for what clap refuses.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Usage(pub(super) String);
