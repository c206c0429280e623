//! The upkeep of consumers: those that begin with what the inbox holds are filled to the end, whoever
//! began it, and those that nobody claims from are warned of.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::Inbox;
use crate::clock::{Clock, Time};
use crate::consumer::UNCLAIMED;
use crate::shutdown::Shutdown;
use crate::store::{Result, Store};
use crate::telemetry::Lasting;

/// Between two looks.
const LOOK: Duration = Duration::from_secs(60);
/// Between two tries of a store that fails.
const RETRY: Duration = Duration::from_secs(1);
/// Events in one transaction: few enough that no receipt waits long for it.
const EVENTS: usize = 500;
/// Between two warnings of one consumer.
const WARNED_EVERY: Duration = Duration::from_secs(24 * 3600);

impl Inbox {
    /// Starts the task that keeps consumers in order until the inbox's shutdown is soft.
    pub fn keep_consumers(&self, clock: Clock) {
        let task = run(self.store.clone(), clock, self.shutdown.clone());
        self.shutdown.spawn_supervised("the upkeep of consumers", task);
    }
}

async fn run(store: Arc<dyn Store>, clock: Clock, shutdown: Shutdown) -> anyhow::Result<()> {
    let failing = Lasting::new();
    let mut warned = HashMap::new();
    while !shutdown.is_soft() {
        let pause = match look(store.as_ref(), &clock, &mut warned).await {
            Ok((more, warnings)) => {
                failing.end("consumers are looked after again");
                warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
                if more { Duration::ZERO } else { LOOK }
            }
            Err(error) => {
                failing.begin(format_args!(
                    "consumers cannot be looked after, so one that was just added may wait for its \
                     first events: {error}"
                ));
                RETRY
            }
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = shutdown.soft() => {}
        }
    }
    Ok(())
}

/// Fills a part, and once nothing is left to fill looks for consumers that nobody claims from:
/// whether there is more to fill, and warnings.
async fn look(
    store: &dyn Store,
    clock: &Clock,
    warned: &mut HashMap<String, Time>,
) -> Result<(bool, Vec<String>)> {
    if store.fill_consumers(EVENTS).await? {
        return Ok((true, Vec::new()));
    }
    let now = clock.now();
    warned.retain(|_, last| now.since(*last) < WARNED_EVERY);
    let mut warnings = Vec::new();
    for name in store.unclaimed(UNCLAIMED).await? {
        if warned.contains_key(&name) {
            continue;
        }
        let states = store.consumer_states(Some(&name)).await?;
        warnings.extend(states.iter().filter_map(|state| state.warning()));
        warned.insert(name, now);
    }
    Ok((false, warnings))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consumer::Start;
    use crate::event::{Attributes, Flags, Identity, NewEvent};
    use crate::source::SourceKind;
    use crate::store::{Batch, Options, open};
    use crate::work::{ClaimRequest, Consumer, Filter, Ordering};

    const HOUR: Duration = Duration::from_secs(3600);

    fn consumer(name: &str) -> Consumer {
        Consumer {
            name: name.to_owned(),
            ordering: Ordering::Conversation,
            lease: HOUR,
            max_attempts: 20,
            backoff_first: HOUR,
            backoff_max: HOUR,
            filter: Filter::default(),
        }
    }

    /// A store on that clock with so many events.
    async fn inbox(folder: &tempfile::TempDir, clock: &Clock, events: usize) -> Arc<dyn Store> {
        let url = format!("sqlite:{}", folder.path().join("inboxd.db").display());
        let clock = clock.clone();
        let options = Options { migrate: true, allow_unsafe_durability: false, clock };
        let store = open(&url, options).await.unwrap();
        store.put_consumers(vec![consumer("crm")]).await.unwrap();
        let source = store.register_source(SourceKind::UnifyPort, "main").await.unwrap();
        let event = |n: usize| NewEvent {
            id: uuid::Uuid::now_v7(),
            source,
            identity: Identity { key: n.to_be_bytes().to_vec(), alias: None },
            received_at: Time::default(),
            attributes: Attributes {
                event_type: "t".to_owned(),
                channel: "c".to_owned(),
                account: "a".to_owned(),
                external_id: "e".to_owned(),
                origin: "/o".to_owned(),
                subject: None,
                time: None,
            },
            flags: Flags::default(),
            secret: None,
            body_hash: [0; 32],
            body: bytes::Bytes::from_static(b"{}"),
            headers: None,
        };
        let batch = Batch { events: (0..events).map(event).collect(), checkpoint: None };
        store.append(Arc::new(batch)).await.unwrap();
        store
    }

    #[tokio::test]
    async fn a_consumer_that_nobody_claims_from_is_warned_of_once_a_day() {
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::manual(Time::parse("2026-11-30T12:00:00Z").unwrap());
        let store = inbox(&folder, &clock, 2).await;
        let mut warned = HashMap::new();
        let mut look = async || look(store.as_ref(), &clock, &mut warned).await.unwrap().1;
        assert_eq!(look().await.len(), 0);
        clock.advance(HOUR);
        let warnings = look().await;
        assert!(warnings[0].starts_with("2 events wait for the consumer crm"), "{warnings:?}");
        clock.advance(23 * HOUR);
        assert_eq!(look().await.len(), 0, "told today");
        clock.advance(HOUR);
        assert_eq!(look().await.len(), 1);
        clock.advance(24 * HOUR);
        store.note_claim("crm").await.unwrap();
        assert_eq!(look().await.len(), 0, "somebody claims");
        clock.advance(HOUR);
        store.pause_consumer("crm", true).await.unwrap();
        assert_eq!(look().await.len(), 0, "it rests");
        store.pause_consumer("crm", false).await.unwrap();
        assert_eq!(look().await.len(), 1);
        store.close().await;
    }

    #[tokio::test]
    async fn what_somebody_began_to_fill_is_filled_to_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::wall();
        let events = 2 * EVENTS + 1;
        let store = inbox(&folder, &clock, events).await;
        store.add_consumer(consumer("new"), Start::Beginning).await.unwrap();
        store.fill_consumers(1).await.unwrap();
        let shutdown = Shutdown::new();
        let task = tokio::spawn(run(store.clone(), clock, shutdown.clone()));
        let filled = async {
            while store.consumer_states(Some("new")).await.unwrap()[0].filling {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), filled).await.unwrap();
        let request = ClaimRequest { max: events + 1, max_bytes: usize::MAX, lease: None };
        assert_eq!(store.claim("new", request).await.unwrap().len(), events);
        shutdown.trigger_soft();
        task.await.unwrap().unwrap();
        store.close().await;
    }
}
