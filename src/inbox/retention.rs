//! Removing what is finished and old, a little at a time and beside everything else.

use std::time::Duration;

use tokio::time::Instant;

use super::Inbox;
use crate::store::{Removal, Result, Store};
use crate::telemetry::Lasting;

/// How long events stay.
#[derive(Clone, Copy, Debug)]
pub struct Ages {
    /// Finished events older than this are removed.
    pub retention: Duration,
    /// How long after that they are still known, so that a duplicate is seen as one.
    pub identity_retention: Duration,
}

/// Between two passes, unless events stay for so short a time that it would be felt.
const PAUSE: Duration = Duration::from_secs(600);
/// Before the first one: a start has other things to do.
const FIRST: Duration = Duration::from_secs(60);
/// Looked at, or forgotten, in one transaction, which receipts wait for: some ten milliseconds.
const EVENTS: usize = 200;
/// Bodies removed in one transaction: large ones take as long as many.
const BYTES: usize = 4 << 20;

impl Inbox {
    /// Starts the task that removes what is finished and old. It ends when the process drains.
    pub fn remove_when_old(&self, ages: Ages) {
        let (store, shutdown) = (self.store.clone(), self.shutdown.clone());
        self.shutdown.spawn_supervised("the retention", async move {
            tokio::select! {
                () = run(store.as_ref(), ages) => {}
                () = shutdown.soft() => {}
            }
            Ok(())
        });
    }
}

async fn run(store: &dyn Store, ages: Ages) {
    let pause = (ages.retention / 10).clamp(Duration::from_secs(1), PAUSE);
    let failing = Lasting::new();
    tokio::time::sleep(pause.min(FIRST)).await;
    loop {
        match pass(store, ages).await {
            Ok(()) => failing.end("old events are removed again"),
            Err(error) => failing.begin(format_args!("old events cannot be removed: {error}")),
        }
        tokio::time::sleep(pause).await;
    }
}

/// Once over all that is old.
async fn pass(store: &dyn Store, ages: Ages) -> Result<()> {
    let (mut events, mut identities) = (0, 0);
    let outcome = sweep(store, ages, &mut events, &mut identities).await;
    if events + identities > 0 {
        tracing::info!(events, identities, "removed what is finished and old");
    }
    outcome
}

/// One transaction after the other, counting what each removed.
async fn sweep(
    store: &dyn Store,
    ages: Ages,
    events: &mut u64,
    identities: &mut u64,
) -> Result<()> {
    let mut next = Some(0);
    while let Some(after) = next {
        let removal = Removal {
            older_than: ages.retention,
            identities_for: ages.identity_retention,
            after,
            limit: EVENTS,
            max_bytes: BYTES,
        };
        let removed = unhurried(store.remove_finished(removal)).await?;
        *events += removed.events;
        next = removed.next;
    }
    loop {
        let forgotten = unhurried(store.forget_identities(EVENTS)).await?;
        *identities += forgotten;
        if forgotten < EVENTS as u64 {
            return Ok(());
        }
    }
}

/// Does it, and then rests for as long, so that it takes half of the store's time at the most.
async fn unhurried<T>(work: impl Future<Output = T>) -> T {
    let begun = Instant::now();
    let done = work.await;
    tokio::time::sleep(begun.elapsed()).await;
    done
}
