//! The stores beside their model, and what ties the one to the other.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use inboxd::clock::Time;
use inboxd::effect::Token;
use inboxd::event::{Appended, NewEvent, Sequence};
use inboxd::store::{Batch, Store};
use inboxd::work::{ClaimRequest, Receipt};
use uuid::Uuid;

use super::super::fixture::Fixture;
use super::super::model::{Given, Item, Model, Outcome};
use super::super::sample::{Vary, sample};
use super::replays::Open;
use super::steps::{Step, Turn};
use super::{READERS, TICK, UNIT, units};

pub(super) struct Pair<'a> {
    pub(super) fixture: &'a mut Fixture,
    /// A second gateway on the same database.
    second: Arc<dyn Store>,
    /// Which of the two does it.
    gateway: usize,
    pub(super) turns: usize,
    pub(super) model: Model,
    /// Number and id of each of the model's events.
    pub(super) events: Vec<(Sequence, Uuid)>,
    /// Every receipt given.
    pub(super) receipts: Vec<(Receipt, Given)>,
    /// The token of each claim that took something.
    pub(super) claims: BTreeMap<usize, [u8; 16]>,
    /// Every token given: its reader, its key, and the model's number.
    pub(super) tokens: Vec<(Token, usize, u8, usize)>,
    /// When each effect was begun.
    pub(super) begun: BTreeMap<usize, Time>,
    pub(super) open: Option<Open>,
}

impl Pair<'_> {
    pub(super) async fn new(fixture: &mut Fixture) -> Pair<'_> {
        let second = fixture.open_again(false).await.unwrap();
        Pair {
            fixture,
            second,
            gateway: 0,
            turns: 0,
            model: Model::new(&READERS),
            events: Vec::new(),
            receipts: Vec::new(),
            claims: BTreeMap::new(),
            tokens: Vec::new(),
            begun: BTreeMap::new(),
            open: None,
        }
    }

    /// The store whose turn it is.
    pub(super) fn store(&self) -> &dyn Store {
        if self.gateway == 0 { &*self.fixture.store } else { &*self.second }
    }

    pub(super) async fn turn(&mut self, turn: &Turn) {
        self.tick();
        self.gateway = turn.gateway;
        match &turn.step {
            Step::Append(items) => self.append(items).await,
            Step::Claim { reader, max, lease } => {
                self.claim(*reader, *max, *lease).await;
            }
            Step::Ack(picks) => self.ack(self.request(picks)).await,
            Step::Work { reader, max } => self.work(*reader, *max).await,
            Step::Nack { picks, delay, dead } => {
                self.nack(self.request(picks), *delay, *dead).await;
            }
            Step::Extend { picks, lease } => self.extend(self.request(picks), *lease).await,
            Step::Churn { reader, times } => self.churn(*reader, *times).await,
            Step::Begin { key, picks } => self.begin(*key, self.request(picks)).await,
            Step::End { key, recent, result } => self.end(*key, *recent, *result).await,
            Step::Replay { reader, selection, limit, whole } => {
                self.replay(*reader, selection, *limit, *whole).await;
            }
            Step::GoOn => self.go_on().await,
            Step::Remove { older_than, limit } => self.remove(*older_than, *limit).await,
            Step::Forget(limit) => self.forget(*limit).await,
            Step::Pause { reader, paused } => self.pause(*reader, *paused).await,
            Step::Pass(units) => self.pass(*units).await,
            Step::Reopen => self.reopen().await,
        }
    }

    pub(super) fn tick(&mut self) {
        self.model.now += TICK.as_micros() as i64;
        self.fixture.clock().advance(TICK);
    }

    async fn append(&mut self, items: &[Item]) {
        let events: Vec<_> = items.iter().map(|item| event(self.fixture, item)).collect();
        let batch = Batch { events: events.clone(), checkpoint: None };
        let appended = self.store().append(Arc::new(batch)).await.unwrap();
        assert_eq!(appended.len(), items.len());
        for ((item, event), appended) in items.iter().zip(events).zip(appended) {
            let (outcome, place) = self.model.append(item);
            let (expected, sequence) = match appended {
                Appended::Stored(sequence) => (Outcome::Stored, sequence),
                Appended::Duplicate(sequence) => (Outcome::Duplicate, sequence),
                Appended::Conflict(sequence) => (Outcome::Conflict, sequence),
            };
            assert_eq!(outcome, expected);
            if outcome == Outcome::Stored {
                assert!(self.events.last().is_none_or(|last| last.0 < sequence));
                self.events.push((sequence, event.id));
            }
            assert_eq!(self.events[place].0, sequence);
        }
    }

    pub(super) async fn claim(&mut self, reader: usize, max: usize, lease: Option<u32>) -> usize {
        let of_store = lease.map(|lease| UNIT * lease);
        let request = ClaimRequest { max, max_bytes: usize::MAX, lease: of_store };
        let claimed = self.store().claim(READERS[reader].name, request).await.unwrap();
        let (claim, expected) = self.model.claim(reader, max, lease.map(units));
        let of_model = expected.iter().map(|(event, attempt)| (self.events[*event].0, *attempt));
        let of_store = claimed.iter().map(|one| (one.event.sequence, one.attempt));
        assert_eq!(of_store.collect::<Vec<_>>(), of_model.collect::<Vec<_>>());
        for ((event, _), delivery) in expected.into_iter().zip(&claimed) {
            let body = body(self.model.events[event].item.body);
            assert_eq!(delivery.event.body, body, "the first bytes received");
            let token = delivery.receipt.token;
            assert!(self.claims.iter().all(|(of, other)| *of == claim || *other != token));
            assert_eq!(*self.claims.entry(claim).or_insert(token), token);
            self.receipts.push((delivery.receipt, Given { reader, event, claim }));
        }
        claimed.len()
    }

    async fn pause(&mut self, reader: usize, paused: bool) {
        self.store().pause_consumer(READERS[reader].name, paused).await.unwrap();
        self.model.pause(reader, paused);
    }

    pub(super) async fn pass(&mut self, count: u32) {
        self.model.now += units(count);
        self.fixture.advance(UNIT * count).await;
        if !self.fixture.raw.is_sqlite() {
            // Where no clock is moved, what is there is moved into the past.
            let sql = format!("UPDATE events SET received_at = received_at - {}", units(count));
            self.fixture.raw.execute(&sql).await;
        }
    }

    async fn reopen(&mut self) {
        if self.gateway == 0 {
            self.fixture.reopen().await;
        } else {
            self.second.close().await;
            self.second = self.fixture.open_again(false).await.unwrap();
        }
    }

    /// All that is unfinished is found, sooner or later.
    pub(super) async fn work_off(&mut self) {
        for (reader, settings) in READERS.iter().enumerate() {
            self.pause(reader, false).await;
            self.pass(100).await;
            for _ in 0..self.model.work.len() + 1 {
                if self.model.next_due(reader).is_none() {
                    break;
                }
                self.work(reader, 7).await;
            }
            let left = self.store().next_due(settings.name).await.unwrap();
            assert_eq!(left, None::<Duration>);
        }
    }

    pub(super) async fn close(self) {
        self.second.close().await;
    }
}

fn body(number: u8) -> Vec<u8> {
    format!("body {number}").into_bytes()
}

/// The conversation of that number.
pub(super) fn chat(number: u8) -> String {
    number.to_string()
}

/// The type of events that are rare, or are not.
pub(super) fn event_type(rare: bool) -> &'static str {
    if rare { "rare" } else { "usual" }
}

fn event(fixture: &Fixture, item: &Item) -> NewEvent {
    let event = sample(fixture.main, "any").key(&item.header.to_string()).body(body(item.body));
    let mut event = event.of_type(event_type(item.rare()));
    event.received_at = fixture.clock().now();
    let event = match item.chat() {
        Some(number) => event.in_chat(&chat(number)),
        None => event,
    };
    match item.signed {
        Some(signed) => event.alias(&signed.to_string()),
        None => event,
    }
}
