//! Whatever is done in whatever order, the stores do what the model does.

mod compare;
mod effects;
mod pair;
mod receipts;
mod replays;
mod retention;
mod steps;

use std::cell::RefCell;
use std::time::Duration;

use inboxd::work::{Consumer, Filter, Ordering};
use proptest::test_runner::{Config, RngSeed, TestRunner};

use super::fixture::{Fixture, consumer};
use super::model::Reader;
use pair::Pair;
use steps::{Turn, turns};

/// Leases and waits are multiples of this, so that the time that the test itself takes never
/// decides.
const UNIT: Duration = Duration::from_secs(10_000);
/// What passes between two steps on a clock that stands still else: on one that runs, no two
/// steps have the same time.
const TICK: Duration = Duration::from_millis(1);

const READERS: [Reader; 3] = [
    Reader {
        name: "ordered",
        ordered: true,
        max_attempts: 2,
        rare_only: false,
        lease: units(2),
        backoff: units(1),
    },
    Reader {
        name: "loose",
        ordered: false,
        max_attempts: 3,
        rare_only: true,
        lease: units(1),
        backoff: units(2),
    },
    // More attempts than are remembered.
    Reader {
        name: "patient",
        ordered: true,
        max_attempts: 13,
        rare_only: true,
        lease: units(3),
        backoff: units(1),
    },
];

/// So many units in the model's time, which is microseconds.
const fn units(count: u32) -> i64 {
    UNIT.as_micros() as i64 * count as i64
}

async fn run(fixture: &mut Fixture, turns: &[Turn]) {
    for table in
        ["attempts", "effects", "work", "lanes", "variants", "identities", "bodies", "events"]
    {
        fixture.raw.execute(&format!("DELETE FROM {table}")).await;
    }
    fixture.raw.execute("UPDATE consumers SET paused = 0, work_count = 0").await;
    let mut pair = Pair::new(fixture).await;
    for turn in turns {
        pair.turn(turn).await;
        pair.compare().await;
    }
    pair.work_off().await;
    pair.compare_all().await;
    pair.try_all_receipts().await;
    pair.try_all_tokens().await;
    pair.compare_all().await;
    pair.clear_away().await;
    pair.compare_all().await;
    pair.close().await;
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|value| value.parse().expect("a whole number"))
}

/// `INBOXD_PROPTEST_CASES` and `INBOXD_PROPTEST_SEED` say how many cases and which.
fn check(fixture: impl Future<Output = Fixture>, cases: u32) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let fixture = runtime.block_on(async {
        let fixture = fixture.await;
        fixture.raw.execute("DELETE FROM consumers").await;
        fixture.store.put_consumers(READERS.map(settings).to_vec()).await.unwrap();
        fixture
    });
    let seed = number("INBOXD_PROPTEST_SEED").unwrap_or_else(rand::random);
    println!("INBOXD_PROPTEST_SEED={seed} repeats this");
    let config = Config {
        cases: number("INBOXD_PROPTEST_CASES").map_or(cases, |cases| cases as u32),
        rng_seed: RngSeed::Fixed(seed),
        max_shrink_iters: 300,
        failure_persistence: None,
        ..Config::default()
    };
    let fixture = RefCell::new(fixture);
    let outcome = TestRunner::new(config).run(&turns(), |turns| {
        runtime.block_on(run(&mut fixture.borrow_mut(), &turns));
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    runtime.block_on(fixture.into_inner().finish());
}

fn settings(reader: Reader) -> Consumer {
    let types = if reader.rare_only { vec!["rare".to_owned()] } else { Vec::new() };
    let backoff = Duration::from_micros(reader.backoff as u64);
    Consumer {
        ordering: if reader.ordered { Ordering::Conversation } else { Ordering::None },
        lease: Duration::from_micros(reader.lease as u64),
        max_attempts: reader.max_attempts,
        // The same, so that nothing is left to chance.
        backoff_first: backoff,
        backoff_max: backoff,
        filter: Filter { types, ..Filter::default() },
        ..consumer(reader.name)
    }
}

#[test]
fn sqlite_does_what_the_model_does() {
    check(Fixture::sqlite(), 20);
}

#[test]
fn postgres_does_what_the_model_does() {
    check(Fixture::postgres(), 6);
}
