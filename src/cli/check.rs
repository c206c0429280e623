//! `inboxd check`.

use crate::config::Config;
use crate::store::StoreError;

/// Looks at what the configuration names. That the configuration itself has no fault is known by
/// its having been loaded.
pub(super) async fn check(config: &Config) -> anyhow::Result<()> {
    let (bots, endpoints) = (config.telegram.len(), config.unifyport.len());
    println!("configuration  ok: {bots} bots, {endpoints} UnifyPort endpoints");
    let faults = store(config).await;
    for fault in &faults {
        println!("store          {fault}");
    }
    if faults.is_empty() {
        return Ok(());
    }
    anyhow::bail!("{} found", if faults.len() == 1 { "a fault was" } else { "faults were" })
}

/// The faults of the store; what is no fault but worth knowing is printed.
async fn store(config: &Config) -> Vec<String> {
    let url = config.store.url.display();
    let store = match crate::open(config, false).await {
        Ok(store) => store,
        Err(error) if matches!(error.downcast_ref(), Some(StoreError::Unprepared(_))) => {
            println!("store          {error:#}");
            return Vec::new();
        }
        Err(error) => return vec![format!("{error:#}")],
    };
    let looked = async { Ok::<_, StoreError>((store.notes().await?, store.audit().await?)) };
    let looked = looked.await;
    store.close().await;
    match looked {
        Ok((notes, faults)) => {
            for note in notes {
                println!("store          note: {note}");
            }
            if faults.is_empty() {
                println!("store          ok: {url}");
            }
            faults
        }
        Err(error) => vec![format!("{url} cannot be read: {error}")],
    }
}
