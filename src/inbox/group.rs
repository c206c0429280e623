//! Group commit: receipts that wait while a commit runs go into the next one together, and nobody
//! waits for a timer.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::queue::Waiting;
use super::wake::Wake;
use crate::event::{Appended, NewEvent};
use crate::shutdown::Shutdown;
use crate::store::{Batch, Result, Store, StoreError};
use crate::telemetry::Lasting;

/// Receipts in one commit: enough to make the sync cheap for each, few enough that the first does
/// not wait long for the last.
const ROWS: usize = 256;
/// Bytes of bodies in one commit; one larger body has a commit of its own.
const BYTES: usize = 8 << 20;

/// A receipt that waits for its commit.
#[derive(Debug)]
pub(super) struct Receipt {
    pub(super) event: NewEvent,
    /// Nobody listens if the client has gone; the commit stands all the same.
    pub(super) reply: oneshot::Sender<Result<Appended>>,
}

/// Commits what waits until `shutdown` is soft and nothing waits any more.
pub(super) async fn run(
    store: Arc<dyn Store>,
    wake: Arc<Wake>,
    mut queue: mpsc::Receiver<Waiting<Receipt>>,
    shutdown: Shutdown,
) -> anyhow::Result<()> {
    let failing = Lasting::new();
    let mut held = None;
    loop {
        let first = match held.take() {
            Some(first) => Some(first),
            None => tokio::select! {
                biased;
                first = queue.recv() => first,
                () = shutdown.hard() => return Ok(()),
            },
        };
        let Some(first) = first else { return Ok(()) };
        let mut bytes = first.bytes;
        let mut group = vec![first];
        while group.len() < ROWS
            && let Ok(next) = queue.try_recv()
        {
            bytes += next.bytes;
            if bytes > BYTES {
                held = Some(next);
                break;
            }
            group.push(next);
        }
        commit(store.as_ref(), &wake, &failing, group).await;
    }
}

/// One commit, and everybody's answer.
async fn commit(store: &dyn Store, wake: &Wake, failing: &Lasting, group: Vec<Waiting<Receipt>>) {
    let (events, replies): (Vec<_>, Vec<_>) =
        group.into_iter().map(|waiting| (waiting.item.event, waiting.item.reply)).unzip();
    let batch = Arc::new(Batch { events, checkpoint: None });
    let results = match store.append(batch.clone()).await {
        Ok(appended) => appended.into_iter().map(Ok).collect(),
        Err(StoreError::Refused(_)) if batch.events.len() > 1 => each(store, &batch).await,
        Err(error) => vec![Err(error); replies.len()],
    };
    match results.iter().find_map(|result| result.as_ref().err()) {
        Some(error) => failing
            .begin(format_args!("deliveries cannot be committed and are answered 503: {error}")),
        None => failing.end("deliveries are committed again"),
    }
    let stored = |result: &Result<Appended>| matches!(result, Ok(Appended::Stored(_)));
    wake.work_made(results.iter().filter(|result| stored(result)).count());
    for (reply, result) in replies.into_iter().zip(results) {
        let _ = reply.send(result);
    }
}

/// Each event in a commit of its own, so that one bad row harms nobody.
async fn each(store: &dyn Store, batch: &Batch) -> Vec<Result<Appended>> {
    let mut results = Vec::with_capacity(batch.events.len());
    for event in &batch.events {
        let alone = Batch { events: vec![event.clone()], checkpoint: None };
        let appended = store.append(Arc::new(alone)).await;
        results.push(appended.and_then(|appended| {
            let none = || StoreError::Unavailable("the store gave no answer".to_owned());
            appended.first().copied().ok_or_else(none)
        }));
    }
    results
}
