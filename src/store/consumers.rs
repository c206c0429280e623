//! Consumers as operators see them and change them.

use std::time::Duration;

use async_trait::async_trait;

use super::Result;
use crate::consumer::{ConsumerState, Start};
use crate::work::Consumer;

/// Consumers as operators see them and change them.
#[async_trait]
pub trait Consumers {
    /// Creates these consumers, each from now on, or brings their settings up to date; removes
    /// none.
    async fn put_consumers(&self, consumers: Vec<Consumer>) -> Result<()>;

    /// All consumers, by name.
    async fn consumers(&self) -> Result<Vec<Consumer>>;

    /// How all consumers stand, by name, or the one of this name, if there is one. Costs as much as
    /// there is unfinished and dead work.
    async fn consumer_states(&self, name: Option<&str>) -> Result<Vec<ConsumerState>>;

    /// Creates a consumer; changes nothing and tells false if there is one of that name. What comes
    /// from now on is its work at once; what `start` wants of the events that are there becomes so by
    /// [`Consumers::fill_consumers`], and until it has, claims are empty: they would overtake the
    /// older events of a conversation.
    async fn add_consumer(&self, consumer: Consumer, start: Start) -> Result<bool>;

    /// Looks at the next `limit` events for a consumer that is being filled, and tells whether
    /// there are more to look at, for it or another. Whoever is interrupted, or does this at the same
    /// time as others, leaves nothing out and makes nothing twice.
    async fn fill_consumers(&self, limit: usize) -> Result<bool>;

    /// Lets a consumer rest, or ends that: its claims are empty, work is still made, and what is
    /// leased can still be finished. `UnknownConsumer` if there is none of that name.
    async fn pause_consumer(&self, name: &str, paused: bool) -> Result<()>;

    /// Pauses a consumer and removes `limit` pieces of its work with what belongs to them; tells
    /// whether that was the end of it, and then the consumer is gone too. `UnknownConsumer` if there
    /// is none of that name.
    async fn remove_consumer(&self, name: &str, limit: usize) -> Result<bool>;

    /// A worker asks for this consumer's work now.
    async fn note_claim(&self, name: &str) -> Result<()>;

    /// The consumers that have unfinished work, do not rest, and have been claimed from for the
    /// last time, or added, at least `idle` ago.
    async fn unclaimed(&self, idle: Duration) -> Result<Vec<String>>;
}
