//! One of the crowd.

use std::sync::Arc;
use std::time::{Duration, Instant};

use inboxd::effect::{Begun, Key, Token};
use inboxd::event::SourceId;
use inboxd::replay::Selection;
use inboxd::store::{Batch, Store};
use inboxd::work::{ClaimRequest, Delivery, Nack, Nacked, Receipt};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};

use super::super::sample::{Vary as _, sample};
use super::ledger::Ledger;
use super::{CONSUMERS, CONVERSATIONS};

const MOMENT: Duration = Duration::from_millis(1);

pub(super) struct Worker {
    number: u64,
    store: Arc<dyn Store>,
    source: SourceId,
    ledger: Arc<Ledger>,
    random: StdRng,
    appended: usize,
    /// What it holds for sure, a claim each, in the order of work.
    held: Vec<(&'static str, Vec<Delivery>)>,
    /// Claims for a moment, which may be over.
    late: Vec<(&'static str, Vec<Receipt>)>,
    /// What it gave back: stale for ever.
    gone: Vec<(&'static str, Receipt)>,
    /// Keys with tokens that were the newest once.
    tokens: Vec<(u64, Token)>,
}

impl Worker {
    pub(super) fn new(
        number: u64,
        store: Arc<dyn Store>,
        source: SourceId,
        ledger: Arc<Ledger>,
    ) -> Worker {
        let random = StdRng::seed_from_u64(rand::random());
        let (held, late, gone, tokens) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Worker { number, store, source, ledger, random, appended: 0, held, late, gone, tokens }
    }

    /// Does anything until then, and gives back what it has.
    pub(super) async fn work(mut self, until: Instant) {
        while Instant::now() < until {
            match self.random.random_range(0..100) {
                0..8 => self.append().await,
                8..30 => self.claim().await,
                30..50 => self.ack().await,
                50..65 => self.nack(false).await,
                65..68 => self.nack(true).await,
                68..75 => self.extend().await,
                75..83 => self.come_late().await,
                83..86 => self.replay().await,
                86..95 => self.begin().await,
                _ => self.end().await,
            }
        }
        while !self.held.is_empty() {
            self.nack(false).await;
        }
        for (consumer, receipt) in std::mem::take(&mut self.gone) {
            assert_eq!(self.store.ack(consumer, vec![receipt]).await.unwrap(), [false]);
        }
    }

    async fn append(&mut self) {
        let count = self.random.random_range(1..5);
        let event = |_| {
            self.appended += 1;
            let event = sample(self.source, &format!("{} {}", self.number, self.appended));
            match self.random.random_range(0..CONVERSATIONS + 3) {
                chat if chat < CONVERSATIONS => event.in_chat(&chat.to_string()),
                _ => event,
            }
        };
        let batch = Batch { events: (0..count).map(event).collect(), checkpoint: None };
        self.store.append(Arc::new(batch)).await.unwrap();
        self.ledger.count("append");
    }

    async fn claim(&mut self) {
        let consumer = CONSUMERS[self.random.random_range(0..CONSUMERS.len())];
        let for_long = self.random.random_ratio(4, 5);
        let lease = Some(if for_long { Duration::from_secs(600) } else { MOMENT });
        let max = self.random.random_range(1..9);
        let request = ClaimRequest { max, max_bytes: usize::MAX, lease };
        let claimed = self.store.claim(consumer, request).await.unwrap();
        if claimed.is_empty() {
            return;
        }
        if for_long {
            self.ledger.count("claim");
            for delivery in &claimed {
                self.ledger.hold((consumer, delivery.event.sequence), self.number);
            }
            self.held.push((consumer, claimed));
        } else {
            self.ledger.count("claim for a moment");
            self.late.push((consumer, receipts(&claimed)));
        }
    }

    /// A claim that it holds, taken out of the list.
    fn take(&mut self) -> Option<(&'static str, Vec<Delivery>)> {
        let count = self.held.len();
        (count > 0).then(|| self.held.swap_remove(self.random.random_range(0..count)))
    }

    fn release(&self, consumer: &'static str, deliveries: &[Delivery]) {
        for delivery in deliveries {
            self.ledger.release((consumer, delivery.event.sequence), self.number);
        }
    }

    /// The first of a claim, in their order.
    async fn ack(&mut self) {
        let Some((consumer, mut claim)) = self.take() else { return };
        let rest = claim.split_off(self.random.random_range(1..=claim.len()));
        self.release(consumer, &claim);
        let done = self.store.ack(consumer, receipts(&claim)).await.unwrap();
        assert!(done.into_iter().all(|done| done), "nobody else can have it");
        self.ledger.count("ack");
        if !rest.is_empty() {
            self.held.push((consumer, rest));
        }
    }

    /// One of a claim, and so the later ones of its conversation with it. Dead is only what stands
    /// first in its conversation, because the order of the ends is looked at.
    async fn nack(&mut self, dead: bool) {
        let Some((consumer, mut claim)) = self.take() else { return };
        let at = if dead { 0 } else { self.random.random_range(0..claim.len()) };
        let subject = claim[at].event.attributes.subject.clone();
        let mut behind = claim.split_off(at);
        let nacked = behind.remove(0);
        let together = consumer == "default" && subject.is_some();
        let (back, rest): (Vec<_>, Vec<_>) = behind
            .into_iter()
            .partition(|other| together && other.event.attributes.subject == subject);
        claim.extend(rest);
        self.release(consumer, std::slice::from_ref(&nacked));
        self.release(consumer, &back);
        let delay = [None, Some(Duration::ZERO), Some(MOMENT)].choose(&mut self.random).copied();
        let how = Nack { delay: delay.flatten(), error: None, dead };
        let end = self.store.nack(consumer, vec![nacked.receipt], how).await.unwrap();
        assert_eq!(end, [if dead { Nacked::Dead } else { Nacked::Requeued }]);
        self.ledger.count(if dead { "dead" } else { "nack" });
        self.gone.extend(receipts(&back).into_iter().map(|receipt| (consumer, receipt)));
        self.gone.push((consumer, nacked.receipt));
        if !claim.is_empty() {
            self.held.push((consumer, claim));
        }
    }

    async fn extend(&mut self) {
        let Some((consumer, claim)) = self.take() else { return };
        let extended = self.store.extend(consumer, receipts(&claim), None).await.unwrap();
        assert!(extended.into_iter().all(|extended| extended), "nobody else can have it");
        self.held.push((consumer, claim));
        self.ledger.count("extend");
    }

    /// Does something with what others may have by now, and with what it gave back.
    async fn come_late(&mut self) {
        if let Some((consumer, receipts)) = self.late.pop() {
            let held = match self.random.random_range(0..3) {
                0 => self.store.ack(consumer, receipts).await.unwrap(),
                1 => self.store.extend(consumer, receipts, Some(MOMENT)).await.unwrap(),
                _ => {
                    let nack = Nack { delay: Some(MOMENT), error: None, dead: false };
                    let nacked = self.store.nack(consumer, receipts, nack).await.unwrap();
                    nacked.into_iter().map(|one| one != Nacked::Stale).collect()
                }
            };
            let any = held.into_iter().any(|held| held);
            self.ledger.count(if any { "late and good" } else { "late and stale" });
        }
        if let Some((consumer, receipt)) = self.gone.choose(&mut self.random).copied() {
            let nack = Nack { delay: None, error: None, dead: true };
            let nacked = self.store.nack(consumer, vec![receipt, receipt], nack).await.unwrap();
            assert_eq!(nacked, [Nacked::Stale, Nacked::Stale]);
        }
    }

    async fn replay(&mut self) {
        let consumer = CONSUMERS[self.random.random_range(0..CONSUMERS.len())];
        let chat = self.random.random_range(0..CONVERSATIONS).to_string();
        let subject = sample(self.source, "any").in_chat(&chat).attributes.subject;
        let selection = match self.random.random_range(0..8) {
            0 => Selection::default(),
            1..4 => Selection { dead: true, ..Selection::default() },
            _ => Selection { conversation: subject, ..Selection::default() },
        };
        let limit = self.random.random_range(2..30);
        let (selection, mut from) = (Arc::new(selection), None);
        loop {
            let step = self.store.replay(consumer, selection.clone(), from, limit).await.unwrap();
            from = step.next;
            if from.is_none() {
                break;
            }
        }
        self.ledger.count("replay");
    }

    async fn begin(&mut self) {
        let ordered = self.held.iter().filter(|(consumer, _)| *consumer == "default");
        let claims: Vec<&Vec<Delivery>> = ordered.map(|(_, claim)| claim).collect();
        let Some(claim) = claims.choose(&mut self.random) else { return };
        let receipt = claim[0].receipt;
        let number = self.random.random_range(0..40);
        let begun = self.store.begin_effect("default", key(number), receipt).await.unwrap();
        match begun {
            Begun::Begun(token) => {
                self.ledger.begun(number);
                self.tokens.push((number, token));
                self.ledger.count("begun");
            }
            Begun::InDoubt { token, .. } => {
                self.tokens.push((number, token));
                self.ledger.count("in doubt");
            }
            Begun::Again(_) => self.ledger.count("begun again"),
            Begun::Running => self.ledger.count("running"),
            Begun::Finished(result) => {
                assert_eq!(result, Some(b"1".to_vec()));
                self.ledger.count("finished before");
            }
            Begun::Stale => panic!("nobody else can have it"),
        }
    }

    async fn end(&mut self) {
        if self.tokens.is_empty() {
            return;
        }
        let place = self.random.random_range(0..self.tokens.len());
        let (number, token) = self.tokens.swap_remove(place);
        if self.random.random_ratio(1, 6) {
            let result = Some(b"1".to_vec());
            let key = key(number);
            if self.store.finish_effect("default", key, token, result).await.unwrap() {
                self.ledger.finished(number, token);
                self.ledger.count("finished");
            }
        } else if self.store.abandon_effect("default", key(number), token).await.unwrap() {
            self.ledger.abandoned(number);
            self.ledger.count("abandoned");
        }
    }
}

fn receipts(claim: &[Delivery]) -> Vec<Receipt> {
    claim.iter().map(|delivery| delivery.receipt).collect()
}

fn key(number: u64) -> Key {
    Key::try_from(format!("act {number}")).unwrap()
}
