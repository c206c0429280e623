//! The pollers of now: one task a bot, replaced when its configuration changes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

use super::pace::Pace;
use super::poller::{Bot, run};
use crate::clock::Clock;
use crate::config::Telegram;
use crate::inbox::{Inbox, StoreError};
use crate::shutdown::Shutdown;
use crate::source::SourceKind;

/// All pollers.
pub struct Pollers {
    shutdown: Shutdown,
    clock: Clock,
    pace: Pace,
    running: Mutex<HashMap<String, (Telegram, CancellationToken)>>,
}

impl Pollers {
    /// None yet. They end when `shutdown` is soft.
    #[must_use]
    pub fn new(shutdown: Shutdown, clock: Clock, pace: Pace) -> Pollers {
        Pollers { shutdown, clock, pace, running: Mutex::default() }
    }

    /// From now on these are the bots: those that are new or changed get a new poller, which waits
    /// for the old one's lease; those that are gone stop.
    ///
    /// # Errors
    /// The store does not take a bot's name; then all are as before.
    pub async fn replace(&self, bots: &[Telegram], inbox: &Arc<Inbox>) -> Result<(), StoreError> {
        let mut sources = Vec::with_capacity(bots.len());
        for bot in bots {
            sources.push(inbox.register_source(SourceKind::Telegram, &bot.name).await?);
        }
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|_, (config, stop)| {
            let stays = bots.contains(config);
            if !stays {
                stop.cancel();
            }
            stays
        });
        for (config, source) in bots.iter().zip(sources) {
            if running.contains_key(&config.name) {
                continue;
            }
            let stop = self.shutdown.child();
            running.insert(config.name.clone(), (config.clone(), stop.clone()));
            let bot = Bot {
                config: config.clone(),
                source,
                inbox: inbox.clone(),
                clock: self.clock.clone(),
                pace: self.pace,
                holder: holder(),
            };
            let shutdown = self.shutdown.clone();
            self.shutdown.spawn_supervised("a poller", async move {
                run(bot, stop).await?;
                // One that was replaced ends while the process goes on.
                shutdown.soft().await;
                Ok(())
            });
        }
        Ok(())
    }
}

/// Host and process, for people who look who polls a bot.
fn holder() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = if host.trim().is_empty() { "host" } else { host.trim() };
    format!("{host}:{}", std::process::id())
}
