//! What the workers saw, written down as they saw it, and what must hold of it at that moment.
//!
//! Times are of one clock, because the gateways and their database are on this machine: the store's
//! own time of a claim follows from the lease that it tells.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Mutex;
use std::time::Duration;

use inboxd::clock::Time;
use serde_json::Value;
use tokio::sync::watch;

use super::MAX_ATTEMPTS;
use super::sender::Kind;
use crate::support::delivery::now;

/// The test fails if no event is finished for so long.
const STUCK: Duration = Duration::from_secs(60);

/// A delivery in a worker's hands.
#[derive(Clone, Debug)]
pub(super) struct Held {
    /// The event's id.
    pub(super) event: String,
    pub(super) sequence: i64,
    pub(super) conversation: Option<String>,
    pub(super) receipt: String,
    pub(super) attempt: i64,
    pub(super) kind: Kind,
}

/// What became of one delivery.
#[derive(Clone, Debug)]
pub(super) struct Handout {
    pub(super) held: Held,
    /// Which claim it was of.
    pub(super) claim: usize,
    /// By the store.
    pub(super) claimed_at: Time,
    /// When the worker had it.
    pub(super) got: Time,
    /// Its lease cannot be over before.
    pub(super) lease_until: Time,
    /// When its act began.
    pub(super) begun: Option<Time>,
    /// When it was first asked to be finished.
    pub(super) acked: Option<Time>,
    /// When it was first asked to be given up.
    pub(super) nacked: Option<Time>,
    /// It is known to have gone back.
    pub(super) given_back: bool,
    /// It was told to be done.
    pub(super) done: bool,
    /// An ack of it was told to be stale.
    pub(super) stale: bool,
}

/// Figures of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) claims: usize,
    /// Claims whose answer nobody saw.
    pub(super) lost_claims: usize,
    pub(super) stale_acks: usize,
    pub(super) late_done: usize,
    pub(super) nacked: usize,
    pub(super) extended: usize,
    pub(super) in_doubt: usize,
}

#[derive(Default)]
pub(super) struct Record {
    pub(super) handouts: Vec<Handout>,
    /// Places in `handouts`, by receipt.
    pub(super) receipts: HashMap<String, usize>,
    /// The same by the event's id.
    pub(super) events: BTreeMap<String, Vec<usize>>,
    /// The same by the claim.
    claims: Vec<Vec<usize>>,
    /// Events that were acked, whether it was answered or not.
    finished: BTreeSet<String>,
    pub(super) faults: Vec<String>,
    pub(super) tally: Tally,
}

pub(super) struct Oracle {
    record: Mutex<Record>,
    finished: watch::Sender<usize>,
}

impl Oracle {
    pub(super) fn new() -> Oracle {
        Oracle { record: Mutex::default(), finished: watch::Sender::new(0) }
    }

    /// Waits until so many events are finished, as far as anybody can know.
    pub(super) async fn finished(&self, count: usize) {
        let mut finished = self.finished.subscribe();
        while *finished.borrow_and_update() < count {
            if tokio::time::timeout(STUCK, finished.changed()).await.is_err() {
                let record = self.record.lock().unwrap();
                let (done, faults) = (record.finished.len(), &record.faults);
                let left =
                    record.events.iter().find(|(event, _)| !record.finished.contains(*event));
                let left = left.map(|(_, places)| {
                    places.iter().map(|place| &record.handouts[*place]).collect::<Vec<_>>()
                });
                panic!(
                    "{done} events finished, then none in {STUCK:?}: {faults:#?}; one that is not, \
                     and what became of it: {left:#?}"
                );
            }
        }
    }

    /// All of it, once nobody adds to it any more.
    pub(super) fn record(&self) -> Record {
        std::mem::take(&mut *self.record.lock().unwrap())
    }

    /// The figures so far.
    pub(super) fn tally(&self) -> Tally {
        self.record.lock().unwrap().tally.clone()
    }

    pub(super) fn fault(&self, fault: String) {
        self.record.lock().unwrap().faults.push(fault);
    }

    pub(super) fn expect(&self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.fault(otherwise());
        }
    }

    pub(super) fn claim_lost(&self) {
        self.record.lock().unwrap().tally.lost_claims += 1;
    }

    pub(super) fn in_doubt(&self) {
        self.record.lock().unwrap().tally.in_doubt += 1;
    }

    /// The answer to a claim of at most `max` for `lease`, made at `asked`.
    pub(super) fn handed_out(
        &self,
        answer: &Value,
        max: usize,
        lease: Duration,
        asked: Time,
    ) -> Vec<Held> {
        let record = &mut *self.record.lock().unwrap();
        let got = now();
        let claim = record.claims.len();
        let mut held: Vec<Held> = vec![];
        for delivery in answer["deliveries"].as_array().unwrap() {
            let (one, lease_until) = read(delivery);
            let claimed_at = lease_until - lease;
            if !(asked..=got).contains(&claimed_at) {
                record.faults.push(format!("claimed at {claimed_at}, asked {asked}, got {got}"));
            }
            if held.last().is_some_and(|last| last.sequence >= one.sequence) {
                record.faults.push(format!("not in order of receipt: {held:?}, then {one:?}"));
            }
            let place = record.handouts.len();
            if record.receipts.insert(one.receipt.clone(), place).is_some() {
                record.faults.push(format!("a receipt that was given before: {one:?}"));
            }
            record.events.entry(one.event.clone()).or_default().push(place);
            held.push(one.clone());
            record.handouts.push(Handout {
                held: one,
                claim,
                claimed_at,
                got,
                lease_until,
                begun: None,
                acked: None,
                nacked: None,
                given_back: false,
                done: false,
                stale: false,
            });
        }
        if held.len() > max {
            record.faults.push(format!("{} deliveries instead of {max}", held.len()));
        }
        let first = record.handouts.len() - held.len();
        record.claims.push((first..record.handouts.len()).collect());
        record.tally.claims += usize::from(!held.is_empty());
        held
    }

    /// The lease of this receipt is not over before.
    pub(super) fn lease_end(&self, receipt: &str) -> Time {
        self.record.lock().unwrap().of(receipt).lease_until
    }

    /// A worker begins to act.
    pub(super) fn begins(&self, receipt: &str) {
        self.record.lock().unwrap().of(receipt).begun.get_or_insert(now());
    }

    /// These are asked to be finished.
    pub(super) fn acking(&self, receipts: &[&str]) {
        for receipt in receipts {
            self.record.lock().unwrap().of(receipt).acked.get_or_insert(now());
        }
    }

    /// They may be finished, and nobody will ever tell.
    pub(super) fn ack_lost(&self, receipts: &[&str]) {
        let record = &mut *self.record.lock().unwrap();
        for receipt in receipts {
            let event = record.of(receipt).held.event.clone();
            record.finished.insert(event);
        }
        self.finished.send_replace(record.finished.len());
    }

    /// The answer to an ack.
    pub(super) fn acked(&self, receipts: &[&str], answer: &Value) {
        let record = &mut *self.record.lock().unwrap();
        let at = now();
        record.all_named(receipts, answer, &["done", "stale"]);
        for place in record.named(answer, "done") {
            let one = &mut record.handouts[place];
            let late = !one.done && one.lease_until < at;
            one.done = true;
            record.tally.late_done += usize::from(late);
            let one = record.handouts[place].clone();
            if one.stale || one.given_back {
                record.faults.push(format!("done although it was no longer held: {one:?}"));
            }
            let others = &record.events[&one.held.event];
            if others.iter().any(|other| *other != place && record.handouts[*other].done) {
                record.faults.push(format!("finished a second time: {one:?}"));
            }
            record.finished.insert(one.held.event);
        }
        for place in record.named(answer, "stale") {
            record.handouts[place].stale = true;
            record.tally.stale_acks += 1;
            let one = &record.handouts[place];
            if one.done || (one.nacked.is_none() && record.is_held(place, at)) {
                record.faults.push(format!("stale at {at} although it was held: {one:?}"));
            }
        }
        self.finished.send_replace(record.finished.len());
    }

    /// These are asked to be given up.
    pub(super) fn nacking(&self, receipts: &[&str]) {
        for receipt in receipts {
            self.record.lock().unwrap().of(receipt).nacked.get_or_insert(now());
        }
    }

    /// The answer to a nack that was asked for so often.
    pub(super) fn nacked(&self, receipts: &[&str], answer: &Value, tries: u32) {
        let record = &mut *self.record.lock().unwrap();
        let at = now();
        record.all_named(receipts, answer, &["requeued", "dead", "stale"]);
        for (name, dead) in [("requeued", false), ("dead", true)] {
            for place in record.named(answer, name) {
                record.tally.nacked += 1;
                let one = record.handouts[place].clone();
                if one.done || one.stale || dead != (one.held.attempt >= MAX_ATTEMPTS) {
                    record.faults.push(format!("{name} at {at}: {one:?}"));
                }
                for behind in record.claims[one.claim].clone() {
                    let behind = &mut record.handouts[behind];
                    let is_behind = behind.held.sequence > one.held.sequence;
                    let same = one.held.conversation.is_some()
                        && behind.held.conversation == one.held.conversation;
                    let itself = behind.held.receipt == one.held.receipt;
                    behind.given_back |= itself || (same && is_behind && behind.acked.is_none());
                }
            }
        }
        for place in record.named(answer, "stale") {
            let one = &record.handouts[place];
            if tries == 1 && record.is_held(place, at) {
                record.faults.push(format!("stale at {at} although it was held: {one:?}"));
            }
        }
    }

    /// The leases of these are asked to last for `lease` from `asked` on.
    pub(super) fn extending(&self, receipts: &[&str], lease: Duration, asked: Time) {
        for receipt in receipts {
            let record = &mut *self.record.lock().unwrap();
            let one = record.of(receipt);
            // It may be made shorter, and the answer may get lost.
            one.lease_until = one.lease_until.min(asked + lease);
        }
    }

    /// The answer to that.
    pub(super) fn extended(&self, receipts: &[&str], lease: Duration, asked: Time, answer: &Value) {
        let record = &mut *self.record.lock().unwrap();
        let at = now();
        record.all_named(receipts, answer, &["extended", "stale"]);
        for place in record.named(answer, "extended") {
            record.tally.extended += 1;
            let one = &mut record.handouts[place];
            one.lease_until = asked + lease;
            if one.stale || one.given_back {
                let fault = format!("extended although it was no longer held: {one:?}");
                record.faults.push(fault);
            }
        }
        for place in record.named(answer, "stale") {
            let one = &record.handouts[place];
            if one.nacked.is_none() && record.is_held(place, at) {
                record.faults.push(format!("stale at {at} although it was held: {one:?}"));
            }
        }
    }
}

impl Record {
    fn of(&mut self, receipt: &str) -> &mut Handout {
        &mut self.handouts[self.receipts[receipt]]
    }

    /// The handouts that an answer names there.
    fn named(&self, answer: &Value, list: &str) -> Vec<usize> {
        let named = answer[list].as_array().into_iter().flatten();
        named.filter_map(|receipt| self.receipts.get(receipt.as_str()?).copied()).collect()
    }

    /// That the answer names each of these once, and nothing else.
    fn all_named(&mut self, receipts: &[&str], answer: &Value, lists: &[&str]) {
        let lists = lists.iter().flat_map(|list| answer[*list].as_array().unwrap());
        let mut named: Vec<&str> = lists.map(|receipt| receipt.as_str().unwrap()).collect();
        let mut asked = receipts.to_vec();
        named.sort_unstable();
        asked.sort_unstable();
        if named != asked {
            self.faults.push(format!("asked for {receipts:?}, answered {answer}"));
        }
    }

    /// Whether its lease certainly lasts at that time, and nothing before it in its conversation can
    /// have taken it back.
    fn is_held(&self, place: usize, at: Time) -> bool {
        self.handouts[place].lease_until > at && self.taken_back_by(place, at).is_none()
    }

    /// What was before it in its conversation and under the same claim, and may have taken it back
    /// by that time.
    pub(super) fn taken_back_by(&self, place: usize, at: Time) -> Option<&Handout> {
        let one = &self.handouts[place];
        self.ahead(place)
            .find(|other| {
                other.nacked.is_some_and(|nacked| nacked <= at) || other.lease_until <= at
            })
            .filter(|_| one.held.conversation.is_some())
    }

    /// What stands before it in its conversation under the same claim.
    pub(super) fn ahead(&self, place: usize) -> impl Iterator<Item = &Handout> {
        let one = &self.handouts[place];
        let claim = self.claims[one.claim].iter().map(|other| &self.handouts[*other]);
        claim.filter(|other| {
            one.held.conversation.is_some()
                && other.held.conversation == one.held.conversation
                && other.held.sequence < one.held.sequence
        })
    }
}

/// A delivery of a claim's answer, and the end of its lease.
fn read(delivery: &Value) -> (Held, Time) {
    let event = &delivery["event"];
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let held = Held {
        event: text(&event["id"]).unwrap(),
        sequence: event["sequence"].as_str().unwrap().parse().unwrap(),
        conversation: text(&event["subject"]),
        receipt: text(&delivery["receipt"]).unwrap(),
        attempt: delivery["attempt"].as_i64().unwrap(),
        kind: Kind::of(event["externalid"].as_str().unwrap()),
    };
    let lease_until = Time::parse(delivery["lease_until"].as_str().unwrap()).unwrap();
    (held, lease_until)
}
