//! What the store itself does, without HTTP: receipts in groups, then claims and acks.
//!
//! `cargo bench --bench store` uses a SQLite file in a temporary folder; with
//! `INBOXD_BENCH_URL=postgres://…` (an empty database) that.

mod common;

use std::time::{Duration, Instant};

use common::{BODY, Bench, at};
use inboxd::work::ClaimRequest;

const SECONDS: u64 = 4;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let url = std::env::var("INBOXD_BENCH_URL")
        .unwrap_or_else(|_| format!("sqlite:{}", folder.path().join("inbox.db").display()));
    let bench = Bench::open(&url).await?;
    let store = &bench.store;
    for group in [1, 64, 256] {
        let end = Instant::now() + Duration::from_secs(SECONDS);
        let mut commits = Vec::new();
        while Instant::now() < end {
            let batch = bench.batch(group, BODY);
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
    Ok(())
}

fn report(what: &str, mut waits: Vec<Duration>, each: usize) {
    waits.sort_unstable();
    let sum: Duration = waits.iter().sum();
    println!(
        "{what:<28} {:>8.0} a second   p50 {:>7.2} ms   p99 {:>7.2} ms",
        (waits.len() * each) as f64 / sum.as_secs_f64(),
        at(&waits, 0.5),
        at(&waits, 0.99)
    );
}
