//! What workers get from the store itself, without HTTP: claims and acks by 1, 8 and 64 workers at a
//! time in batches of up to 1, 10 and 100, from an inbox that holds nothing else and from one with
//! 1,000,000 finished events behind. A claim costs the same on both, or something reads what is done.
//!
//! `cargo bench --bench workers` uses SQLite files in a temporary folder. With
//! `INBOXD_BENCH_URL=postgres://…` it makes databases of its own on that server, whose user may do
//! that, and drops them at the end. `INBOXD_BENCH_FINISHED` makes another number of finished events.
//!
//! A backlog of new events is made before each stretch and lasts for all of it; a stretch whose
//! backlog ends early is cut there and marked. Claims and acks are as many, so one rate tells both.

mod common;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use common::{BODY, Bench, at};
use inboxd::consumer::ConsumerState;
use inboxd::store::Store;
use inboxd::work::ClaimRequest;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tempfile::TempDir;

const SECONDS: u64 = 4;
const FINISHED: usize = 1_000_000;
/// The finished ones' bodies: claims and acks do not read them, and they take long to make.
const SMALL: usize = 64;
/// In one commit, when it is not measured.
const MANY: usize = 500;
/// Batch, and a backlog that lasts.
const STRETCHES: [(usize, usize); 3] = [(1, 20_000), (10, 60_000), (100, 150_000)];

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let place = Place::new()?;
    let finished: usize =
        std::env::var("INBOXD_BENCH_FINISHED").map_or(Ok(FINISHED), |text| text.parse())?;
    let full = Bench::open(&place.make("full").await?).await?;
    let begun = Instant::now();
    finish(&full, finished).await?;
    place.settle("full").await?;
    println!("{finished} events received and finished in {:.0?}", begun.elapsed());
    println!(
        "  store    behind  batch workers   claims/s   events/s  claim p50     p99  ack p50     p99   \
         load"
    );
    for (max, backlog) in STRETCHES {
        for workers in [1, 8, 64] {
            let name = format!("empty_{max}_{workers}");
            let empty = Bench::open(&place.make(&name).await?).await?;
            for bench in [&empty, &full] {
                refill(bench, backlog).await?;
                let before = state(bench).await?;
                let stretch = work(&bench.store, workers, max).await?;
                print(place.store(), before.done, workers, max, stretch);
            }
            empty.store.close().await;
            place.remove(&name).await?;
        }
    }
    let mut reads = Vec::new();
    for _ in 0..50 {
        let begun = Instant::now();
        full.store.consumer_states(None).await?;
        reads.push(begun.elapsed());
    }
    reads.sort_unstable();
    let state = state(&full).await?;
    println!(
        "how the consumer stands, {} done and {} ready: p50 {:.2} ms, p99 {:.2} ms",
        state.done,
        state.ready,
        at(&reads, 0.5),
        at(&reads, 0.99)
    );
    let faults = full.store.audit().await?;
    anyhow::ensure!(faults.is_empty(), "{faults:?}");
    full.store.close().await;
    place.remove("full").await
}

/// Where the databases are made.
struct Place {
    folder: TempDir,
    server: Option<String>,
}

impl Place {
    fn new() -> anyhow::Result<Place> {
        Ok(Place { folder: tempfile::tempdir()?, server: std::env::var("INBOXD_BENCH_URL").ok() })
    }

    fn store(&self) -> &'static str {
        if self.server.is_some() { "postgres" } else { "sqlite" }
    }

    fn database(name: &str) -> String {
        format!("inboxd_bench_{}_{name}", std::process::id())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A new, empty database; gives its URL.
    async fn make(&self, name: &str) -> anyhow::Result<String> {
        let Some(server) = &self.server else {
            std::fs::create_dir(self.file(name))?;
            return Ok(format!("sqlite:{}", self.file(name).join("inbox.db").display()));
        };
        let database = Place::database(name);
        self.execute(server, format!("CREATE DATABASE {database}")).await?;
        let mut url = url::Url::parse(server)?;
        url.set_path(&database);
        Ok(url.into())
    }

    async fn remove(&self, name: &str) -> anyhow::Result<()> {
        let Some(server) = &self.server else {
            return Ok(std::fs::remove_dir_all(self.file(name))?);
        };
        self.execute(server, format!("DROP DATABASE {}", Place::database(name))).await
    }

    /// Does what PostgreSQL would do by itself after some minutes.
    async fn settle(&self, name: &str) -> anyhow::Result<()> {
        let Some(server) = &self.server else { return Ok(()) };
        let mut url = url::Url::parse(server)?;
        url.set_path(&Place::database(name));
        self.execute(url.as_str(), "VACUUM ANALYZE".to_owned()).await
    }

    async fn execute(&self, url: &str, sql: String) -> anyhow::Result<()> {
        let mut connection = PgConnection::connect(url).await?;
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await?;
        Ok(connection.close().await?)
    }
}

/// Receives and finishes so many events.
async fn finish(bench: &Bench, events: usize) -> anyhow::Result<()> {
    let mut received = 0;
    while received < events {
        for _ in 0..20 {
            let batch = bench.batch(MANY.min(events - received), SMALL);
            received += batch.events.len();
            bench.store.append(batch).await?;
        }
        loop {
            let claimed = bench.store.claim("default", request(1000)).await?;
            if claimed.is_empty() {
                break;
            }
            bench.store.ack("default", claimed.iter().map(|one| one.receipt).collect()).await?;
        }
    }
    Ok(())
}

async fn refill(bench: &Bench, backlog: usize) -> anyhow::Result<()> {
    let ready = usize::try_from(state(bench).await?.ready)?;
    for _ in 0..backlog.saturating_sub(ready).div_ceil(MANY) {
        bench.store.append(bench.batch(MANY, BODY)).await?;
    }
    Ok(())
}

async fn state(bench: &Bench) -> anyhow::Result<ConsumerState> {
    let states = bench.store.consumer_states(Some("default")).await?;
    states.into_iter().next().ok_or_else(|| anyhow::anyhow!("the consumer is gone"))
}

fn request(max: usize) -> ClaimRequest {
    ClaimRequest { max, max_bytes: 32 << 20, lease: None }
}

#[derive(Default)]
struct Stretch {
    took: Duration,
    events: usize,
    claims: Vec<Duration>,
    acks: Vec<Duration>,
    dry: bool,
}

/// Lets workers claim and ack at the same time, until time or work ends.
async fn work(store: &Arc<dyn Store>, workers: usize, max: usize) -> anyhow::Result<Stretch> {
    let begun = Instant::now();
    let dry = Arc::new(AtomicBool::new(false));
    let workers: Vec<_> = (0..workers)
        .map(|_| tokio::spawn(one_worker(store.clone(), max, begun, dry.clone())))
        .collect();
    let mut all = Stretch::default();
    for worker in workers {
        let one = worker.await??;
        all.events += one.events;
        all.claims.extend(one.claims);
        all.acks.extend(one.acks);
    }
    all.took = begun.elapsed();
    all.dry = dry.load(Relaxed);
    all.claims.sort_unstable();
    all.acks.sort_unstable();
    Ok(all)
}

async fn one_worker(
    store: Arc<dyn Store>,
    max: usize,
    begun: Instant,
    dry: Arc<AtomicBool>,
) -> anyhow::Result<Stretch> {
    let mut own = Stretch::default();
    while begun.elapsed() < Duration::from_secs(SECONDS) && !dry.load(Relaxed) {
        let claim = Instant::now();
        let claimed = store.claim("default", request(max)).await?;
        if claimed.is_empty() {
            dry.store(true, Relaxed);
            break;
        }
        own.claims.push(claim.elapsed());
        let receipts = claimed.iter().map(|one| one.receipt).collect();
        let ack = Instant::now();
        let done = store.ack("default", receipts).await?;
        own.acks.push(ack.elapsed());
        anyhow::ensure!(done.iter().all(|done| *done), "a lease ran out");
        own.events += claimed.len();
    }
    Ok(own)
}

fn print(store: &str, behind: i64, workers: usize, max: usize, stretch: Stretch) {
    let Stretch { took, events, claims, acks, dry } = stretch;
    let a_second = |count: usize| count as f64 / took.as_secs_f64();
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!(
        "{store:>8} {behind:>9} {max:>6} {workers:>7} {:>10.0} {:>10.0} {:>10.2} {:>7.2} {:>8.2} {:>7.2} {:>6}{}",
        a_second(claims.len()),
        a_second(events),
        at(&claims, 0.5),
        at(&claims, 0.99),
        at(&acks, 0.5),
        at(&acks, 0.99),
        load.split(' ').next().unwrap_or("-"),
        if dry { format!("  cut at {took:.1?}") } else { String::new() }
    );
}
