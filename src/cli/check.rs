//! `inboxd check`.

use super::output::print;
use super::telegram::ask;
use crate::config::Config;
use crate::source::Source;
use crate::store::StoreError;

/// Looks at what the configuration names. That the configuration itself has no fault is known by
/// its having been loaded.
pub(super) async fn check(config: &Config) -> anyhow::Result<()> {
    let (bots, endpoints) = (config.telegram.len(), config.unifyport.len());
    let count = |number: usize, one: &str| match number {
        1 => format!("1 {one}"),
        number => format!("{number} {one}s"),
    };
    let (bots, endpoints) = (count(bots, "bot"), count(endpoints, "UnifyPort endpoint"));
    print(format!("configuration  ok: {bots}, {endpoints}\n")).await?;
    if config.telegram.is_empty() && config.unifyport.is_empty() {
        let note = "note: there is nothing to receive, so `serve` will refuse to start";
        print(format!("configuration  {note}\n")).await?;
    }
    let looked = store(config).await;
    for line in looked.notes.iter().chain(&looked.faults) {
        print(format!("store          {line}\n")).await?;
    }
    let mut faults = looked.faults.len();
    for bot in &config.telegram {
        let status = ask(bot, &looked.sources).await?;
        let fault = status.fault();
        faults += usize::from(fault.is_some());
        let line = fault.map_or_else(|| status.well(), |fault| format!("{}: {fault}", bot.name));
        print(format!("telegram       {line}\n")).await?;
    }
    match faults {
        0 => Ok(()),
        1 => anyhow::bail!("a fault was found"),
        _ => anyhow::bail!("{faults} faults were found"),
    }
}

/// What a look at the store has shown.
#[derive(Default)]
struct Looked {
    /// Worth knowing, and no fault.
    notes: Vec<String>,
    faults: Vec<String>,
    sources: Vec<Source>,
}

async fn store(config: &Config) -> Looked {
    let url = config.store.url.display();
    let store = match crate::open(config, false).await {
        Ok(store) => store,
        Err(error) if matches!(error.downcast_ref(), Some(StoreError::Unprepared(_))) => {
            let notes = vec![format!("note: {}", error.root_cause())];
            return Looked { notes, ..Looked::default() };
        }
        Err(error) => return Looked { faults: vec![format!("{error:#}")], ..Looked::default() },
    };
    let looked = async {
        let (notes, faults) = (store.notes().await?, store.audit().await?);
        Ok::<_, StoreError>(Looked { notes, faults, sources: store.sources().await? })
    };
    let looked = looked.await;
    store.close().await;
    match looked {
        Ok(Looked { notes, faults, sources }) => {
            let well = faults.is_empty().then(|| format!("ok: {url}"));
            let notes = notes.into_iter().map(|note| format!("note: {note}")).chain(well);
            Looked { notes: notes.collect(), faults, sources }
        }
        Err(error) => {
            let faults = vec![format!("{url} cannot be read: {error}")];
            Looked { faults, ..Looked::default() }
        }
    }
}
