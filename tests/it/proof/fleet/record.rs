//! What is known of every delivery, and what follows from it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use inboxd::clock::Time;
use serde_json::Value;

use super::sender::Kind;

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
    pub(super) claims: Vec<Vec<usize>>,
    /// Events that were acked, whether it was answered or not.
    pub(super) finished: BTreeSet<String>,
    pub(super) faults: Vec<String>,
    pub(super) tally: Tally,
}

impl Record {
    pub(super) fn of(&mut self, receipt: &str) -> &mut Handout {
        &mut self.handouts[self.receipts[receipt]]
    }

    /// The handouts that an answer names there.
    pub(super) fn named(&self, answer: &Value, list: &str) -> Vec<usize> {
        let named = answer[list].as_array().into_iter().flatten();
        named.filter_map(|receipt| self.receipts.get(receipt.as_str()?).copied()).collect()
    }

    /// That the answer names each of these once, and nothing else.
    pub(super) fn all_named(&mut self, receipts: &[&str], answer: &Value, lists: &[&str]) {
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
    pub(super) fn is_held(&self, place: usize, at: Time) -> bool {
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
pub(super) fn read(delivery: &Value) -> (Held, Time) {
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
