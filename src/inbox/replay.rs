//! Making finished work due again, a batch at a time.

use std::sync::Arc;

use super::Inbox;
use crate::replay::{Replayed, Selection};
use crate::store::{Store, StoreError};

/// Work in one transaction: so little that receipts hardly wait for it.
const BATCH: usize = 200;

/// Makes due again the finished work of `consumer` that `selection` means, and counts it. Each batch
/// is a transaction; `made` hears of it and may end the replay by an error. Where that or anything
/// else cuts it, what was counted so far is due and the rest is as it was: the same replay once more
/// brings back the rest, and touches nothing that is still unfinished.
pub async fn replay(
    store: &dyn Store,
    consumer: &str,
    selection: Selection,
    mut made: impl FnMut(&Replayed) -> Result<(), StoreError>,
) -> Result<usize, StoreError> {
    let selection = Arc::new(selection);
    let (mut count, mut place) = (0, None);
    loop {
        let done = store.replay(consumer, selection.clone(), place, BATCH).await?;
        count += done.count;
        made(&done)?;
        place = done.next;
        if place.is_none() {
            return Ok(count);
        }
    }
}

impl Inbox {
    /// Makes due again the finished work of `consumer` that `selection` means, and counts it. It goes
    /// on when nobody waits for it any more, because a proxy may not wait for as long as it takes;
    /// when the process drains it ends between two batches, with an error.
    pub async fn replay(&self, consumer: &str, selection: Selection) -> Result<usize, StoreError> {
        let (store, wake, shutdown) =
            (self.store.clone(), self.wake.clone(), self.shutdown.clone());
        let consumer = consumer.to_owned();
        let whole = tokio::spawn(async move {
            replay(&*store, &consumer, selection, |done| {
                wake.work_made(done.count);
                if done.next.is_some() && shutdown.is_soft() {
                    return Err(StoreError::Unavailable("the gateway is stopping".to_owned()));
                }
                Ok(())
            })
            .await
        });
        whole.await.map_err(|_| StoreError::Unavailable("the replay died".to_owned()))?
    }
}
