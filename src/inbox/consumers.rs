//! Consumers as the private API shows them, and that somebody claims from them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{Inbox, StoreError};
use crate::consumer::ConsumerState;
use crate::work::Consumer;

/// A claim is noted in the store no more often than this, because most claims write nothing else.
const NOTED_EVERY: Duration = Duration::from_secs(60);

/// When this process last noted a claim of each consumer.
#[derive(Debug, Default)]
pub(super) struct Noted(Mutex<HashMap<String, Instant>>);

impl Noted {
    /// Whether a claim of `consumer`, which exists, is to be noted now.
    fn is_due(&self, consumer: &str, now: Instant) -> bool {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match noted.get_mut(consumer) {
            Some(last) if now.duration_since(*last) < NOTED_EVERY => false,
            Some(last) => {
                *last = now;
                true
            }
            None => {
                noted.insert(consumer.to_owned(), now);
                true
            }
        }
    }
}

impl Inbox {
    /// Creates consumers or brings their settings up to date.
    pub async fn put_consumers(&self, consumers: Vec<Consumer>) -> Result<(), StoreError> {
        self.store.put_consumers(consumers).await
    }

    /// How all consumers stand, by name.
    pub async fn consumer_states(&self) -> Result<Vec<ConsumerState>, StoreError> {
        self.store.consumer_states(None).await
    }

    /// How the consumer of this name stands.
    pub async fn consumer_state(&self, name: &str) -> Result<ConsumerState, StoreError> {
        let states = self.store.consumer_states(Some(name)).await?;
        let unknown = || StoreError::UnknownConsumer(name.to_owned());
        states.into_iter().next().ok_or_else(unknown)
    }

    /// Takes note of a claim, beside it: whether that succeeds is nothing to the claimer.
    pub(super) fn note_claim(&self, consumer: &str) {
        if self.noted.is_due(consumer, Instant::now()) {
            let (store, name) = (self.store.clone(), consumer.to_owned());
            tokio::spawn(async move {
                if let Err(error) = store.note_claim(&name).await {
                    tracing::debug!("a claim of {name} is not noted: {error}");
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_noted_once_a_minute_for_each_consumer() {
        let (noted, start) = (Noted::default(), Instant::now());
        assert_eq!(["a", "a", "b"].map(|name| noted.is_due(name, start)), [true, false, true]);
        let later = start + NOTED_EVERY;
        assert!(!noted.is_due("a", later - Duration::from_millis(1)));
        assert_eq!(["a", "a"].map(|name| noted.is_due(name, later)), [true, false]);
    }
}
