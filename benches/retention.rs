//! What receivers feel while old events are removed: receipts one after the other, alone and beside a
//! removal of 100,000 events of 2 KiB that are finished.
//!
//! `cargo bench --bench retention` uses a SQLite file in a temporary folder; with
//! `INBOXD_BENCH_URL=postgres://…` (an empty database) that.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use inboxd::clock::Clock;
use inboxd::event::{Attributes, Flags, Identity, NewEvent, SourceId, new_id};
use inboxd::source::SourceKind;
use inboxd::store::{Batch, Options, Removal, Store, open};
use inboxd::work::{ClaimRequest, Consumer, Filter, Ordering};

const OLD: usize = 100_000;
const BODY: usize = 2048;
/// As the gateway does it.
const REMOVAL: Removal = Removal {
    older_than: Duration::from_secs(1),
    identities_for: Duration::from_secs(7 * 86_400),
    after: 0,
    limit: 200,
    max_bytes: 4 << 20,
};

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
    for _ in 0..OLD / 250 {
        let events = (0..250).map(|_| event(source, &clock)).collect();
        store.append(Arc::new(Batch { events, checkpoint: None })).await?;
    }
    loop {
        let request = ClaimRequest { max: 1000, max_bytes: 32 << 20, lease: None };
        let claimed = store.claim("default", request).await?;
        if claimed.is_empty() {
            break;
        }
        store.ack("default", claimed.iter().map(|one| one.receipt).collect()).await?;
    }
    tokio::time::sleep(REMOVAL.older_than).await;

    let alone = Arc::new(AtomicBool::new(false));
    let stop = alone.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(4)).await;
        stop.store(true, SeqCst);
    });
    report("receipts alone", receive(store.as_ref(), source, &clock, &alone).await?);
    let done = Arc::new(AtomicBool::new(false));
    let removing = tokio::spawn(remove(store.clone(), done.clone()));
    report("receipts beside a removal", receive(store.as_ref(), source, &clock, &done).await?);
    let (removed, took, batches) = removing.await??;
    report("a step of the removal", batches);
    println!("{removed} events removed in {took:?}");
    let faults = store.audit().await?;
    anyhow::ensure!(faults.is_empty(), "{faults:?}");
    store.close().await;
    std::fs::remove_dir_all(folder)?;
    Ok(())
}

/// Receipts one after the other until somebody says `done`.
async fn receive(
    store: &dyn Store,
    source: SourceId,
    clock: &Clock,
    done: &AtomicBool,
) -> anyhow::Result<Vec<Duration>> {
    let mut waits = Vec::new();
    while !done.load(SeqCst) {
        let batch = Arc::new(Batch { events: vec![event(source, clock)], checkpoint: None });
        let begun = Instant::now();
        store.append(batch).await?;
        waits.push(begun.elapsed());
    }
    Ok(waits)
}

/// Removes what was finished at the start, resting as long as each step took.
async fn remove(
    store: Arc<dyn Store>,
    done: Arc<AtomicBool>,
) -> anyhow::Result<(u64, Duration, Vec<Duration>)> {
    let (begun, mut batches, mut removed, mut next) = (Instant::now(), Vec::new(), 0, Some(0));
    while let Some(after) = next.filter(|_| removed < OLD as u64) {
        let begun = Instant::now();
        let step = store.remove_finished(Removal { after, ..REMOVAL }).await?;
        batches.push(begun.elapsed());
        (removed, next) = (removed + step.events, step.next);
        tokio::time::sleep(begun.elapsed()).await;
    }
    done.store(true, SeqCst);
    Ok((removed, begun.elapsed(), batches))
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

fn report(what: &str, mut waits: Vec<Duration>) {
    waits.sort_unstable();
    let at = |share: f64| {
        let place = ((waits.len() as f64 * share) as usize).min(waits.len().saturating_sub(1));
        waits.get(place).copied().unwrap_or_default().as_secs_f64() * 1000.0
    };
    let (count, half, most, all) = (waits.len(), at(0.5), at(0.99), at(1.0));
    println!(
        "{what:<28} {count:>7}   p50 {half:>7.2} ms   p99 {most:>7.2} ms   at most {all:>7.2} ms"
    );
}
