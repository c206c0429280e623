//! What the benchmarks of the store share.

use std::sync::Arc;
use std::time::Duration;

use inboxd::clock::Clock;
use inboxd::event::{Attributes, Flags, Identity, NewEvent, SourceId, new_id};
use inboxd::source::SourceKind;
use inboxd::store::{Batch, Options, Store, open};
use inboxd::work::{Consumer, Filter, Ordering};

/// Bytes of a body.
pub(crate) const BODY: usize = 2048;

/// An inbox with one receiver and one consumer, `default`, which keeps order.
pub(crate) struct Bench {
    pub(crate) store: Arc<dyn Store>,
    clock: Clock,
    source: SourceId,
}

impl Bench {
    /// Opens what `url` names, which holds nothing yet.
    pub(crate) async fn open(url: &str) -> anyhow::Result<Bench> {
        let clock = Clock::wall();
        let options =
            Options { migrate: true, allow_unsafe_durability: false, clock: clock.clone() };
        let store = open(url, options).await?;
        let source = store.register_source(SourceKind::UnifyPort, "main").await?;
        store.put_consumers(vec![consumer()]).await?;
        Ok(Bench { store, clock, source })
    }

    /// So many new events to append.
    pub(crate) fn batch(&self, events: usize, body: usize) -> Arc<Batch> {
        let events = (0..events).map(|_| event(self.source, &self.clock, body)).collect();
        Arc::new(Batch { events, checkpoint: None })
    }
}

/// What this share of the waits, which are sorted, did not exceed; in milliseconds.
pub(crate) fn at(waits: &[Duration], share: f64) -> f64 {
    let place = ((waits.len() as f64 * share) as usize).min(waits.len().saturating_sub(1));
    waits.get(place).copied().unwrap_or_default().as_secs_f64() * 1000.0
}

fn consumer() -> Consumer {
    Consumer {
        name: "default".to_owned(),
        ordering: Ordering::Conversation,
        lease: Duration::from_secs(60),
        max_attempts: 20,
        backoff_first: Duration::from_secs(1),
        backoff_max: Duration::from_secs(900),
        filter: Filter::default(),
    }
}

/// A message of one of 10,000 conversations.
fn event(source: SourceId, clock: &Clock, body: usize) -> NewEvent {
    let at = clock.now();
    let key: [u8; 16] = rand::random();
    let conversation = rand::random_range(0..10_000);
    NewEvent {
        id: new_id(at),
        source,
        identity: Identity { key: [&b"i"[..], &key].concat(), alias: None },
        received_at: at,
        attributes: Attributes {
            event_type: "unifyport.message.received".to_owned(),
            channel: "whatsapp".to_owned(),
            account: "acc_8c21d0".to_owned(),
            external_id: hex::encode(key),
            origin: "/unifyport/main/acc_8c21d0".to_owned(),
            subject: Some(format!("unifyport/main/acc_8c21d0/conversation/{conversation}")),
            time: Some(at),
        },
        flags: Flags::default(),
        secret: Some(0),
        body_hash: rand::random(),
        body: vec![b'x'; body].into(),
        headers: Some(r#"{"x-device-timestamp":"2026-06-08T12:34:56Z"}"#.to_owned()),
    }
}
