//! Whatever is done in whatever order, the stores do what the model does.

use std::cell::RefCell;
use std::time::Duration;

use inboxd::event::{Appended, NewEvent, Sequence};
use inboxd::work::{ClaimRequest, Consumer, Filter, Nack, Nacked, Ordering, Receipt};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};

use super::fixture::{Fixture, consumer};
use super::model::{Item, Model, Outcome, Reader, State};
use super::sample::{Vary, sample};

const READERS: [Reader; 2] = [
    Reader { name: "ordered", ordered: true, max_attempts: 2, rare_only: false },
    Reader { name: "loose", ordered: false, max_attempts: 3, rare_only: true },
];

/// Leases and waits are multiples of this, so that the time that the test itself takes never
/// decides.
const UNIT: Duration = Duration::from_secs(10_000);
/// What passes between two steps on a clock that stands still else: on one that runs, no two
/// steps have the same time.
const TICK: Duration = Duration::from_millis(1);

#[derive(Clone, Debug)]
enum Step {
    Append(Vec<Item>),
    Claim {
        reader: usize,
        max: usize,
        lease: u32,
    },
    /// Receipts by how long ago they were given.
    Ack {
        recent: Vec<usize>,
        reader: Option<usize>,
        made_up: bool,
    },
    Nack {
        recent: Vec<usize>,
        delay: u32,
        dead: bool,
    },
    Extend {
        recent: Vec<usize>,
        lease: u32,
    },
    Pass(u32),
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let item = (0..30u8, prop::option::weighted(0.3, 0..12u8), 0..4u8)
        .prop_map(|(header, signed, body)| Item { header, signed, body: body.saturating_sub(2) });
    let step = prop_oneof![
        6 => vec(item, 1..6).prop_map(Step::Append),
        8 => (0..READERS.len(), 0..7usize, 1..4u32)
            .prop_map(|(reader, max, lease)| Step::Claim { reader, max, lease }),
        6 => (vec(0..12usize, 0..5), prop::option::weighted(0.1, 0..READERS.len()), any::<bool>())
            .prop_map(|(recent, reader, made_up)| Step::Ack { recent, reader, made_up }),
        4 => (vec(0..12usize, 0..5), 0..3u32, prop::bool::weighted(0.1))
            .prop_map(|(recent, delay, dead)| Step::Nack { recent, delay, dead }),
        2 => (vec(0..12usize, 0..5), 1..4u32)
            .prop_map(|(recent, lease)| Step::Extend { recent, lease }),
        4 => (1..4u32).prop_map(Step::Pass),
        1 => Just(Step::Reopen),
    ];
    vec(step, 1..60)
}

/// The store beside its model, and what ties the one to the other.
struct Pair<'a> {
    fixture: &'a mut Fixture,
    model: Model,
    /// The sequence of each of the model's events.
    sequences: Vec<Sequence>,
    /// Every receipt given: reader, event, claim.
    receipts: Vec<(Receipt, usize, usize, usize)>,
}

impl Pair<'_> {
    fn tick(&mut self) {
        self.model.now += TICK.as_micros() as i64;
        self.fixture.clock().advance(TICK);
    }

    async fn step(&mut self, step: &Step) {
        self.tick();
        match step {
            Step::Append(items) => self.append(items).await,
            Step::Claim { reader, max, lease } => {
                self.claim(*reader, *max, *lease).await;
            }
            Step::Ack { recent, reader, made_up } => self.ack(recent, *reader, *made_up).await,
            Step::Nack { recent, delay, dead } => self.nack(recent, *delay, *dead).await,
            Step::Extend { recent, lease } => self.extend(recent, *lease).await,
            Step::Pass(units) => self.pass(*units).await,
            Step::Reopen => self.fixture.reopen().await,
        }
    }

    async fn append(&mut self, items: &[Item]) {
        let events: Vec<_> = items.iter().map(|item| event(self.fixture, item)).collect();
        let appended = self.fixture.append(&events).await;
        assert_eq!(appended.len(), items.len());
        for (item, appended) in items.iter().zip(appended) {
            let (outcome, event) = self.model.append(item);
            let (expected, sequence) = match appended {
                Appended::Stored(sequence) => (Outcome::Stored, sequence),
                Appended::Duplicate(sequence) => (Outcome::Duplicate, sequence),
                Appended::Conflict(sequence) => (Outcome::Conflict, sequence),
            };
            assert_eq!(outcome, expected);
            if outcome == Outcome::Stored {
                assert!(self.sequences.last().is_none_or(|last| *last < sequence));
                self.sequences.push(sequence);
            }
            assert_eq!(self.sequences[event], sequence);
        }
    }

    async fn claim(&mut self, reader: usize, max: usize, lease: u32) -> usize {
        let request = ClaimRequest { max, max_bytes: usize::MAX, lease: Some(UNIT * lease) };
        let claimed = self.fixture.store.claim(READERS[reader].name, request).await.unwrap();
        let lease = UNIT.as_micros() as i64 * i64::from(lease);
        let (claim, expected) = self.model.claim(reader, max, lease);
        let of_model = expected.iter().map(|(event, attempt)| (self.sequences[*event], *attempt));
        let of_store = claimed.iter().map(|one| (one.event.sequence, one.attempt));
        assert_eq!(of_store.collect::<Vec<_>>(), of_model.collect::<Vec<_>>());
        for ((event, _), delivery) in expected.into_iter().zip(&claimed) {
            let body = body(self.model.events[event].item.body);
            assert_eq!(delivery.event.body, body, "the first bytes received");
            self.receipts.push((delivery.receipt, reader, event, claim));
        }
        claimed.len()
    }

    async fn ack(&mut self, recent: &[usize], reader: Option<usize>, made_up: bool) {
        let newest = self.receipts.iter().rev();
        let given: Vec<_> = newest.copied().collect();
        let picked: Vec<_> = recent.iter().filter_map(|place| given.get(*place)).collect();
        // One request is of one consumer; under another's name the receipts are nothing.
        let reader = reader.or_else(|| picked.first().map(|picked| picked.1)).unwrap_or(0);
        let mut receipts: Vec<Receipt> = picked.iter().map(|picked| picked.0).collect();
        let mut expected: Vec<bool> = Vec::new();
        for (_, of, event, claim) in picked {
            expected.push(*of == reader && self.model.ack(reader, *event, *claim));
        }
        if let (true, Some(sequence)) = (made_up, self.sequences.first()) {
            receipts.push(Receipt { sequence: *sequence, token: [7; 16] });
            expected.push(false);
        }
        let done = self.fixture.store.ack(READERS[reader].name, receipts).await.unwrap();
        assert_eq!(done, expected);
    }

    /// Receipts by how long ago they were given, those of the first one's reader.
    fn recent(&self, recent: &[usize]) -> (usize, Vec<(Receipt, usize, usize)>) {
        let given: Vec<_> = self.receipts.iter().rev().collect();
        let picked: Vec<_> = recent.iter().filter_map(|place| given.get(*place)).collect();
        let reader = picked.first().map_or(0, |picked| picked.1);
        let own = picked.into_iter().filter(|picked| picked.1 == reader);
        (reader, own.map(|(receipt, _, event, claim)| (*receipt, *event, *claim)).collect())
    }

    async fn nack(&mut self, recent: &[usize], delay: u32, dead: bool) {
        let (reader, picked) = self.recent(recent);
        let receipts = picked.iter().map(|picked| picked.0).collect();
        let nack = Nack { delay: Some(UNIT * delay), error: None, dead };
        let nacked = self.fixture.store.nack(READERS[reader].name, receipts, nack).await.unwrap();
        let claims: Vec<_> = picked.iter().map(|picked| (picked.1, picked.2)).collect();
        let delay = UNIT.as_micros() as i64 * i64::from(delay);
        let expected = self.model.nack(reader, &claims, delay, dead);
        let expected = expected.into_iter().map(|outcome| match outcome {
            Some(true) => Nacked::Requeued,
            Some(false) => Nacked::Dead,
            None => Nacked::Stale,
        });
        assert_eq!(nacked, expected.collect::<Vec<_>>());
    }

    async fn extend(&mut self, recent: &[usize], lease: u32) {
        let (reader, picked) = self.recent(recent);
        let receipts = picked.iter().map(|picked| picked.0).collect();
        let store = &self.fixture.store;
        let held = store.extend(READERS[reader].name, receipts, Some(UNIT * lease)).await.unwrap();
        let lease = UNIT.as_micros() as i64 * i64::from(lease);
        let extend = |(_, event, claim): &(Receipt, usize, usize)| {
            self.model.extend(reader, *event, *claim, lease)
        };
        assert_eq!(held, picked.iter().map(extend).collect::<Vec<_>>());
    }

    async fn pass(&mut self, units: u32) {
        self.model.now += UNIT.as_micros() as i64 * i64::from(units);
        self.fixture.advance(UNIT * units).await;
    }

    /// The store holds what the model holds.
    async fn compare(&self) {
        let store = &self.fixture.store;
        assert_eq!(store.audit().await.unwrap(), Vec::<String>::new());
        let sql = "SELECT c.name || ' ' || w.event_seq || ' ' || w.state || ' ' || w.attempt
                   FROM work AS w JOIN consumers AS c ON c.id = w.consumer_id
                   ORDER BY w.event_seq, c.id";
        let work = self.model.work.iter().map(|work| {
            let state = match work.state {
                State::Ready => 0,
                State::Leased { .. } => 1,
                State::Done { .. } => 2,
                State::Dead => 3,
            };
            let (name, sequence) = (READERS[work.reader].name, self.sequences[work.event]);
            format!("{name} {sequence} {state} {}", work.attempt)
        });
        assert_eq!(self.fixture.raw.texts(sql).await, work.collect::<Vec<_>>());
        let sql = "SELECT e.seq || ' ' || e.receipts || ' ' ||
                       (SELECT count(*) FROM variants AS v WHERE v.event_seq = e.seq) || ' ' ||
                       coalesce((SELECT sum(v.receipts) FROM variants AS v
                                 WHERE v.event_seq = e.seq), 0)
                   FROM events AS e ORDER BY e.seq";
        let events = self.model.events.iter().zip(&self.sequences).map(|(event, sequence)| {
            let conflicts: i64 = event.variants.values().sum();
            format!("{sequence} {} {} {conflicts}", event.receipts, event.variants.len())
        });
        assert_eq!(self.fixture.raw.texts(sql).await, events.collect::<Vec<_>>());
        for (place, reader) in READERS.iter().enumerate() {
            let next = store.next_due(reader.name).await.unwrap();
            let expected = self.model.next_due(place).map(|micros| micros as u64);
            let expected = expected.map(Duration::from_micros);
            let close = match (next, expected) {
                (Some(next), Some(expected)) => {
                    next.is_zero() == expected.is_zero() && next.abs_diff(expected) < UNIT / 2
                }
                (next, expected) => next == expected,
            };
            assert!(close, "{}: {next:?}, not {expected:?}", reader.name);
        }
    }

    /// All that is unfinished is found, sooner or later.
    async fn work_off(&mut self) {
        for (reader, settings) in READERS.iter().enumerate() {
            self.pass(100).await;
            for _ in 0..self.model.work.len() + 1 {
                if self.model.next_due(reader).is_none() {
                    break;
                }
                self.tick();
                let count = self.claim(reader, 7, 1).await;
                let newest: Vec<usize> = (0..count).collect();
                self.ack(&newest, Some(reader), false).await;
            }
            assert_eq!(self.fixture.store.next_due(settings.name).await.unwrap(), None);
        }
        self.compare().await;
    }
}

fn body(number: u8) -> Vec<u8> {
    format!("body {number}").into_bytes()
}

fn event(fixture: &Fixture, item: &Item) -> NewEvent {
    let event = sample(fixture.main, "any").key(&item.header.to_string()).body(body(item.body));
    let event = event.of_type(if item.rare() { "rare" } else { "usual" });
    let event = match item.chat() {
        Some(chat) => event.in_chat(&chat.to_string()),
        None => event,
    };
    match item.signed {
        Some(signed) => event.alias(&signed.to_string()),
        None => event,
    }
}

async fn run(fixture: &mut Fixture, steps: &[Step]) {
    for table in ["attempts", "work", "lanes", "variants", "identities", "bodies", "events"] {
        fixture.raw.execute(&format!("DELETE FROM {table}")).await;
    }
    fixture.raw.recount_work().await;
    let (sequences, receipts) = (Vec::new(), Vec::new());
    let mut pair = Pair { fixture, model: Model::new(&READERS), sequences, receipts };
    for step in steps {
        pair.step(step).await;
        pair.compare().await;
    }
    pair.work_off().await;
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
    let outcome = TestRunner::new(config).run(&steps(), |steps| {
        runtime.block_on(run(&mut fixture.borrow_mut(), &steps));
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    runtime.block_on(fixture.into_inner().finish());
}

fn settings(reader: Reader) -> Consumer {
    let types = if reader.rare_only { vec!["rare".to_owned()] } else { Vec::new() };
    Consumer {
        ordering: if reader.ordered { Ordering::Conversation } else { Ordering::None },
        max_attempts: reader.max_attempts,
        filter: Filter { types, ..Filter::default() },
        ..consumer(reader.name)
    }
}

#[test]
fn sqlite_does_what_the_model_does() {
    check(Fixture::sqlite(), 40);
}

#[test]
fn postgres_does_what_the_model_does() {
    check(Fixture::postgres(), 25);
}
