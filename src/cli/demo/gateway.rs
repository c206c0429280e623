//! The real gateway on a thread of its own, so that it can be cut off whole.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::shutdown::Shutdown;
use crate::{Listeners, run};

/// Longer than a drain with nothing to do takes.
const DRAIN: Duration = Duration::from_secs(5);

/// One run of the gateway.
#[derive(Debug)]
pub(super) struct Gateway {
    /// For webhooks.
    pub(super) public: SocketAddr,
    /// For workers and operators.
    pub(super) private: SocketAddr,
    shutdown: Shutdown,
    cut: CancellationToken,
    /// Told when nothing of it is left.
    ended: oneshot::Receiver<anyhow::Result<()>>,
}

impl Gateway {
    /// Starts it on the addresses that `config` names, or on any free ports where those are taken.
    pub(super) async fn start(config: Config) -> anyhow::Result<Gateway> {
        let (shutdown, cut) = (Shutdown::new(), CancellationToken::new());
        let (bound, addresses) = oneshot::channel();
        let (done, ended) = oneshot::channel();
        let (inner, until) = (shutdown.clone(), cut.clone());
        std::thread::Builder::new().name("gateway".to_owned()).spawn(move || {
            // Nobody listens if the demo has given up.
            let _ = done.send(live(config, bound, inner, &until));
        })?;
        match addresses.await {
            Ok((public, private)) => Ok(Gateway { public, private, shutdown, cut, ended }),
            Err(_) => {
                ended.await.context("the gateway's thread died")??;
                anyhow::bail!("the gateway did not come up")
            }
        }
    }

    /// Cuts it off where it stands: nothing is drained, told or given back. Gone on return.
    pub(super) async fn kill(mut self) -> anyhow::Result<()> {
        self.cut.cancel();
        (&mut self.ended).await.context("the gateway's thread died")?
    }

    /// Drains it.
    pub(super) async fn stop(mut self) -> anyhow::Result<()> {
        self.shutdown.trigger_soft();
        let ended = tokio::time::timeout(DRAIN, &mut self.ended).await;
        ended.context("the gateway did not end in time")?.context("the gateway's thread died")?
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.cut.cancel();
    }
}

/// Runs the gateway until it ends or is cut off.
fn live(
    config: Config,
    bound: oneshot::Sender<(SocketAddr, SocketAddr)>,
    shutdown: Shutdown,
    cut: &CancellationToken,
) -> anyhow::Result<()> {
    // One thread, so that when it is cut off no task sees another's end, as with a process.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        let public = bind(config.server.public).await?;
        let private = bind(config.server.private).await?;
        let addresses = (public.local_addr()?, private.local_addr()?);
        let listeners = Listeners { public, private };
        let (_unchanged, config) = watch::channel(Arc::new(config));
        let running = Box::pin(run(config, listeners, shutdown));
        // The listeners take connections from here on, so nobody has to wait for more.
        let _ = bound.send(addresses);
        tokio::select! {
            outcome = running => outcome,
            () = cut.cancelled() => Ok(()),
        }
    });
    // Drops every task, socket and lock.
    runtime.shutdown_timeout(Duration::from_secs(1));
    outcome
}

async fn bind(mut address: SocketAddr) -> std::io::Result<TcpListener> {
    if let Ok(listener) = TcpListener::bind(address).await {
        return Ok(listener);
    }
    address.set_port(0);
    TcpListener::bind(address).await
}
