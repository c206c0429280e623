//! Which consumer a command is about.

use super::context::Usage;
use crate::store::Store;

/// The consumer of this name, which must exist; the only one there is if no name is given.
pub(super) async fn named_or_only(
    store: &dyn Store,
    name: Option<String>,
) -> anyhow::Result<String> {
    let consumers = store.consumers().await?;
    let mut names: Vec<String> = consumers.into_iter().map(|consumer| consumer.name).collect();
    anyhow::ensure!(
        !names.is_empty(),
        "the store has no consumer; `inboxd serve` makes those of the configuration"
    );
    match name {
        Some(name) if names.contains(&name) => Ok(name),
        Some(name) => {
            anyhow::bail!("there is no consumer {name:?}; there is: {}", names.join(", "))
        }
        None if names.len() == 1 => Ok(names.remove(0)),
        None => {
            let usage = format!(
                "there are several consumers; say --consumer with one of: {}",
                names.join(", ")
            );
            Err(Usage(usage).into())
        }
    }
}
