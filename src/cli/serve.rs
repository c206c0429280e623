//! `inboxd serve`.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::config::{Config, Env};
use crate::shutdown::Shutdown;
use crate::{Listeners, run};

/// Runs the gateway until a signal ends it.
pub(super) async fn serve(config: Config, file: Option<PathBuf>, env: Env) -> anyhow::Result<()> {
    if config.telegram.is_empty() && config.unifyport.is_empty() {
        anyhow::bail!(
            "there is nothing to receive: set INBOXD_TELEGRAM_TOKEN or INBOXD_UNIFYPORT_SECRET, or \
             write a [[telegram]] or [[unifyport]] table into the config file \
             (inboxd.example.toml shows both)"
        );
    }
    let shutdown = Shutdown::new();
    shutdown.listen_for_signals()?;
    let listeners = Listeners::bind(&config.server).await?;
    let (sender, receiver) = watch::channel(Arc::new(config));
    let mut hangup = signal(SignalKind::hangup())?;
    let reload = async {
        loop {
            hangup.recv().await;
            match Config::load(file.as_deref(), &env) {
                Ok(config) => drop(sender.send(Arc::new(config))),
                Err(faults) => {
                    tracing::error!(
                        "SIGHUP: the configuration has faults, nothing is changed: {faults}"
                    );
                }
            }
        }
    };
    tokio::select! {
        outcome = run(receiver, listeners, shutdown.clone()) => outcome,
        () = shutdown.hard() => anyhow::bail!("stopped at once, before the drain was done"),
        () = reload => Ok(()),
    }
}
