//! What the store itself does, without HTTP: receipts in groups, then claims and acks.
//!
//! `cargo bench --bench store` uses a SQLite file in a temporary folder; with
//! `INBOXD_BENCH_URL=postgres://…` (an empty database) that.

use std::sync::Arc;
use std::time::{Duration, Instant};

use inboxd::clock::Clock;
use inboxd::event::{Attributes, Flags, Identity, NewEvent, SourceId, new_id};
use inboxd::source::SourceKind;
use inboxd::store::{Batch, Options, open};
use inboxd::work::{ClaimRequest, Consumer, Filter, Ordering};

const SECONDS: u64 = 4;
const BODY: usize = 2048;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let folder = std::env::temp_dir().join(format!("inboxd-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let url = std::env::var("INBOXD_BENCH_URL")
        .unwrap_or_else(|_| format!("sqlite:{}", folder.join("inbox.db").display()));
    let clock = Clock::wall();
    let options = Options { migrate: true, allow_unsafe_durability: false, clock: clock.clone() };
    let store = open(&url, options).await?;
    let source = store.register_source(SourceKind::UnifyPort, "main").await?;
    store.put_consumers(vec![consumer()]).await?;
    for group in [1, 64, 256] {
        let end = Instant::now() + Duration::from_secs(SECONDS);
        let mut commits = Vec::new();
        while Instant::now() < end {
            let events = (0..group).map(|_| event(source, &clock)).collect();
            let batch = Arc::new(Batch { events, checkpoint: None });
            let begun = Instant::now();
            store.append(batch).await?;
            commits.push(begun.elapsed());
        }
        report(&format!("receipts, {group} in a commit"), commits, group);
    }
    for max in [1, 10, 100] {
        let end = Instant::now() + Duration::from_secs(SECONDS);
        let mut rounds = Vec::new();
        while Instant::now() < end {
            let request = ClaimRequest { max, max_bytes: 32 << 20, lease: None };
            let begun = Instant::now();
            let deliveries = store.claim("default", request).await?;
            if deliveries.len() < max {
                break;
            }
            let receipts = deliveries.iter().map(|delivery| delivery.receipt).collect();
            store.ack("default", receipts).await?;
            rounds.push(begun.elapsed());
        }
        report(&format!("claim + ack of {max}"), rounds, max);
    }
    store.close().await;
    std::fs::remove_dir_all(folder)?;
    Ok(())
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
fn event(source: SourceId, clock: &Clock) -> NewEvent {
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
        body: vec![b'x'; BODY].into(),
        headers: Some(r#"{"x-device-timestamp":"2026-06-08T12:34:56Z"}"#.to_owned()),
    }
}

fn report(what: &str, mut waits: Vec<Duration>, each: usize) {
    waits.sort_unstable();
    let sum: Duration = waits.iter().sum();
    let at = |share: f64| {
        let place = ((waits.len() as f64 * share) as usize).min(waits.len().saturating_sub(1));
        waits.get(place).copied().unwrap_or_default().as_secs_f64() * 1000.0
    };
    println!(
        "{what:<28} {:>8.0} a second   p50 {:>7.2} ms   p99 {:>7.2} ms",
        (waits.len() * each) as f64 / sum.as_secs_f64(),
        at(0.5),
        at(0.99)
    );
}
