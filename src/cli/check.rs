//! `inboxd check`.

use super::output::print;
use crate::config::Config;
use crate::store::StoreError;

/// Looks at what the configuration names. That the configuration itself has no fault is known by
/// its having been loaded.
pub(super) async fn check(config: &Config) -> anyhow::Result<()> {
    let (bots, endpoints) = (config.telegram.len(), config.unifyport.len());
    print(format!("configuration  ok: {bots} bots, {endpoints} UnifyPort endpoints\n")).await?;
    let (notes, faults) = store(config).await;
    for line in notes.iter().chain(&faults) {
        print(format!("store          {line}\n")).await?;
    }
    if faults.is_empty() {
        return Ok(());
    }
    anyhow::bail!("{} found", if faults.len() == 1 { "a fault was" } else { "faults were" })
}

/// What is worth knowing of the store, and its faults.
async fn store(config: &Config) -> (Vec<String>, Vec<String>) {
    let url = config.store.url.display();
    let store = match crate::open(config, false).await {
        Ok(store) => store,
        Err(error) if matches!(error.downcast_ref(), Some(StoreError::Unprepared(_))) => {
            return (vec![format!("note: {}", error.root_cause())], vec![]);
        }
        Err(error) => return (vec![], vec![format!("{error:#}")]),
    };
    let looked = async { Ok::<_, StoreError>((store.notes().await?, store.audit().await?)) };
    let looked = looked.await;
    store.close().await;
    match looked {
        Ok((notes, faults)) => {
            let well = faults.is_empty().then(|| format!("ok: {url}"));
            let notes = notes.into_iter().map(|note| format!("note: {note}"));
            (notes.chain(well).collect(), faults)
        }
        Err(error) => (vec![], vec![format!("{url} cannot be read: {error}")]),
    }
}
