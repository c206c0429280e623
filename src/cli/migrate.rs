//! `inboxd migrate`.

use super::output::print;
use crate::config::Config;

/// Opens the store with migrations, and says where it is.
pub(super) async fn migrate(config: &Config) -> anyhow::Result<()> {
    let store = crate::open(config, true).await?;
    store.close().await;
    print(format!("the schema of {} is up to date\n", config.store.url.display())).await
}
