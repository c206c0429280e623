//! What the workers saw, written down as they saw it, and what must hold of it at that moment.
//!
//! Times are of one clock, because the gateways and their database are on this machine: the store's
//! own time of a claim follows from the lease that it tells.

use std::sync::Mutex;
use std::time::Duration;

use inboxd::clock::Time;
use serde_json::Value;
use tokio::sync::watch;

use super::MAX_ATTEMPTS;
use super::record::{Handout, Held, Record, Tally, read};
use crate::support::delivery::now;

/// The test fails if no event is finished for so long.
const STUCK: Duration = Duration::from_secs(60);

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
