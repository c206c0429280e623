//! Quarantine beside the commit path: what was refused is kept if there is room, and nobody waits.
//!
//! Under a flood only a sample is kept. The two kinds have queues of their own, so that forgeries
//! cannot push out what is authentic.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::queue::{self, Queue, Waiting};
use crate::shutdown::Shutdown;
use crate::source::{QuarantineKind, QuarantineLimits, Refused};
use crate::store::Store;
use crate::telemetry::Lasting;

/// Deliveries that may wait to be kept, and their bytes.
const STALE: (usize, usize) = (1024, 64 << 20);
const UNVERIFIED: (usize, usize) = (64, 32 << 20);
/// Deliveries kept in one transaction.
const GROUP: usize = 64;

/// The ends that take refused deliveries in.
#[derive(Debug)]
pub(super) struct Refusals {
    stale: Queue<Refused>,
    unverified: Queue<Refused>,
}

/// The other ends.
pub(super) struct Waits {
    stale: mpsc::Receiver<Waiting<Refused>>,
    unverified: mpsc::Receiver<Waiting<Refused>>,
}

/// Both queues.
pub(super) fn queues() -> (Refusals, Waits) {
    let (stale, stale_waits) = queue::bounded(STALE.0, STALE.1);
    let (unverified, unverified_waits) = queue::bounded(UNVERIFIED.0, UNVERIFIED.1);
    let waits = Waits { stale: stale_waits, unverified: unverified_waits };
    (Refusals { stale, unverified }, waits)
}

impl Refusals {
    /// Keeps `refused` if there is room; tells whether there was.
    pub(super) fn push(&self, refused: Refused) -> bool {
        let bytes = refused.body.len() + refused.headers.len();
        let queue = match refused.kind {
            QuarantineKind::Stale => &self.stale,
            QuarantineKind::Unverified => &self.unverified,
        };
        queue.push(refused, bytes).is_ok()
    }
}

/// Writes what waits, the authentic first, until `shutdown` is soft and nothing waits any more.
pub(super) async fn run(
    store: Arc<dyn Store>,
    mut waits: Waits,
    limits: QuarantineLimits,
    shutdown: Shutdown,
) -> anyhow::Result<()> {
    let failing = Lasting::new();
    loop {
        let first = tokio::select! {
            biased;
            first = waits.stale.recv() => first,
            first = waits.unverified.recv() => first,
            () = shutdown.hard() => return Ok(()),
        };
        let Some(first) = first else { return Ok(()) };
        let mut refused = vec![first.item];
        while refused.len() < GROUP
            && let Ok(next) = waits.stale.try_recv().or_else(|_| waits.unverified.try_recv())
        {
            refused.push(next.item);
        }
        match store.quarantine(refused, limits).await {
            Ok(()) => failing.end("refused deliveries are kept in quarantine again"),
            Err(error) => failing
                .begin(format_args!("refused deliveries are not kept in quarantine: {error}")),
        }
    }
}
