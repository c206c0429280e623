//! `inboxd migrate`.

use crate::config::Config;

/// Opens the store with migrations, and says where it is.
pub(super) async fn migrate(config: &Config) -> anyhow::Result<()> {
    let store = crate::open(config, true).await?;
    store.close().await;
    println!("the schema of {} is up to date", config.store.url.display());
    Ok(())
}
