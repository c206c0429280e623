//! What receivers feel while old events are removed: receipts one after the other, alone and beside a
//! removal of 100,000 events of 2 KiB that are finished.
//!
//! `cargo bench --bench retention` uses a SQLite file in a temporary folder; with
//! `INBOXD_BENCH_URL=postgres://…` (an empty database) that.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use common::{BODY, Bench, at};
use inboxd::store::{Removal, Store};
use inboxd::work::ClaimRequest;

const OLD: usize = 100_000;
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
    let folder = tempfile::tempdir()?;
    let url = std::env::var("INBOXD_BENCH_URL")
        .unwrap_or_else(|_| format!("sqlite:{}", folder.path().join("inbox.db").display()));
    let bench = Bench::open(&url).await?;
    let store = &bench.store;
    for _ in 0..OLD / 250 {
        store.append(bench.batch(250, BODY)).await?;
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
    report("receipts alone", receive(&bench, &alone).await?);
    let done = Arc::new(AtomicBool::new(false));
    let removing = tokio::spawn(remove(store.clone(), done.clone()));
    report("receipts beside a removal", receive(&bench, &done).await?);
    let (removed, took, batches) = removing.await??;
    report("a step of the removal", batches);
    println!("{removed} events removed in {took:?}");
    let faults = store.audit().await?;
    anyhow::ensure!(faults.is_empty(), "{faults:?}");
    store.close().await;
    Ok(())
}

/// Receipts one after the other until somebody says `done`.
async fn receive(bench: &Bench, done: &AtomicBool) -> anyhow::Result<Vec<Duration>> {
    let mut waits = Vec::new();
    while !done.load(SeqCst) {
        let batch = bench.batch(1, BODY);
        let begun = Instant::now();
        bench.store.append(batch).await?;
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

fn report(what: &str, mut waits: Vec<Duration>) {
    waits.sort_unstable();
    let (count, half, most, all) =
        (waits.len(), at(&waits, 0.5), at(&waits, 0.99), at(&waits, 1.0));
    println!(
        "{what:<28} {count:>7}   p50 {half:>7.2} ms   p99 {most:>7.2} ms   at most {all:>7.2} ms"
    );
}
