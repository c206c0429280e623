//! How attempts end other than well: nack, extend, and what became dead.

use std::time::Duration;

use super::{Inbox, StoreError};
use crate::work::{DeadPage, DeadQuery, Nack, Nacked, Receipt};

impl Inbox {
    /// Lets the claims of these receipts hold from now on for `lease`, or for the consumer's own;
    /// tells of each whether it still held its work.
    pub async fn extend(
        &self,
        consumer: &str,
        receipts: Vec<Receipt>,
        lease: Option<Duration>,
    ) -> Result<Vec<bool>, StoreError> {
        let _turn = self.turn().await;
        self.store.extend(consumer, receipts, lease).await
    }

    /// Gives up what these receipts hold; tells of each what became of it.
    pub async fn nack(
        &self,
        consumer: &str,
        receipts: Vec<Receipt>,
        nack: Nack,
    ) -> Result<Vec<Nacked>, StoreError> {
        let turn = self.turn().await;
        let nacked = self.store.nack(consumer, receipts, nack).await?;
        drop(turn);
        if nacked.iter().any(|one| *one != Nacked::Stale) {
            self.wake.perhaps(consumer);
        }
        Ok(nacked)
    }

    /// Reads a page of a consumer's dead letters.
    pub async fn dead(&self, consumer: &str, query: DeadQuery) -> Result<DeadPage, StoreError> {
        self.store.dead(consumer, query).await
    }
}
