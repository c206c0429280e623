//! A worker that claims and then behaves, or does not, as its dice fall.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use inboxd::clock::Time;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Fleet;
use super::line::Line;
use super::record::Held;
use super::sender::Kind;
use crate::support::delivery::now;

/// Of a claim.
const MOST: usize = 20;
const LEASE_MS: std::ops::RangeInclusive<u64> = 300..=1200;
/// An event that was tried so often gets a worker that takes its time and makes no mistakes, because
/// on a busy machine mere delay may cost an attempt.
const WITH_CARE: i64 = 8;
const PLENTY: Duration = Duration::from_secs(5);
const SLOWEST: Duration = Duration::from_millis(500);
/// What the lease is cut to of an event that kills its worker, so that its next one dies soon.
const LAST_BREATH: Duration = Duration::from_millis(5);

pub(super) struct Worker {
    pub(super) fleet: Arc<Fleet>,
    pub(super) line: Line,
    pub(super) random: StdRng,
    /// Conversations of this claim of which no more is to be done, because one of it was given up.
    spoiled: HashSet<String>,
    /// It does not die now.
    careful: bool,
    /// How long its last ack took: on a busy machine all takes longer, and a lease must not be
    /// shorter than a few calls, or nothing is ever finished.
    pace: Duration,
}

/// Works until the fleet is to stop.
pub(super) async fn work(fleet: Arc<Fleet>, seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let line = Line::private(fleet.gateways.subscribe(), random.random());
    let (spoiled, careful, pace) = (HashSet::new(), false, Duration::ZERO);
    let mut worker = Worker { fleet, line, random, spoiled, careful, pace };
    while !worker.fleet.stop.is_cancelled() {
        worker.round().await;
    }
}

impl Worker {
    /// One claim and what comes of it; none if the worker dies, and the next takes its place.
    async fn round(&mut self) -> Option<()> {
        self.spoiled.clear();
        let max = self.random.random_range(1..=MOST);
        let lease = Duration::from_millis(self.random.random_range(LEASE_MS)) + 4 * self.pace;
        // As the call writes it.
        let lease = Duration::from_millis(lease.as_millis().try_into().unwrap());
        let claim = json!({"max": max, "lease": text(lease), "wait": "500ms"});
        if self.random.random_ratio(1, 40) {
            self.fleet.oracle.claim_lost();
            self.line.break_off("claim", &claim).await;
            return None;
        }
        let asked = now();
        let Some(answer) = self.line.once("claim", &claim).await else {
            self.fleet.oracle.claim_lost();
            return None;
        };
        let held = self.fleet.oracle.handed_out(&answer.json(), max, lease, asked);
        let Some(first) = held.first() else { return Some(()) };
        let lease_end = self.fleet.oracle.lease_end(&first.receipt);
        self.careful = held.iter().any(|one| one.attempt >= WITH_CARE);
        if self.careful {
            self.lengthen(&held.iter().collect::<Vec<_>>(), PLENTY).await;
            return self.prompt(&held).await;
        }
        match self.random.random_range(0..100) {
            0..45 => self.prompt(&held).await,
            45..57 => self.in_parts(&held).await,
            57..64 => self.late(&held, lease_end).await,
            64..78 => self.give_up(&held).await,
            78..86 => self.extend(&held, lease_end).await,
            86..92 => self.stall(&held, lease_end).await,
            _ => self.crash(&held).await,
        }
    }

    async fn prompt(&mut self, held: &[Held]) -> Option<()> {
        let acted = self.act(held).await?;
        self.ack(&acted).await;
        Some(())
    }

    async fn in_parts(&mut self, held: &[Held]) -> Option<()> {
        let mut rest = held;
        while !rest.is_empty() {
            let (part, others) = rest.split_at(self.random.random_range(1..=rest.len()));
            rest = others;
            let acted = self.act(part).await?;
            self.ack(&acted).await;
        }
        Some(())
    }

    /// Acks only after the lease, when somebody else may have the work, or nobody.
    async fn late(&mut self, held: &[Held], lease_end: Time) -> Option<()> {
        let acted = self.act(held).await?;
        self.sleep_past(lease_end, 60).await;
        self.ack(&acted).await;
        Some(())
    }

    /// Gives up one or several, and acks the others, among them perhaps what went back with them.
    async fn give_up(&mut self, held: &[Held]) -> Option<()> {
        let at = self.random.random_range(0..held.len());
        let (before, rest) = held.split_at(at);
        let several = if self.random.random() { 1 } else { rest.len() };
        let (failed, behind) = rest.split_at(several);
        let mut acted = self.act(before).await?;
        let failed: Vec<&Held> = failed.iter().collect();
        let how = self.how();
        self.nack(&failed, how).await;
        let obedient: bool = self.random.random();
        for one in behind {
            let goes_back = |other: &&Held| other.conversation == one.conversation;
            if !obedient && one.conversation.is_some() && failed.iter().any(goes_back) {
                acted.push(one);
            } else {
                acted.extend(self.act(std::slice::from_ref(one)).await?);
            }
        }
        self.ack(&acted).await;
        Some(())
    }

    /// How something is given up: at once, after a delay, or by the consumer's backoff.
    fn how(&mut self) -> Value {
        match self.random.random_range(0..4) {
            0 => json!({"delay": "0s"}),
            1 => json!({"delay": text(Duration::from_millis(self.random.random_range(1..100)))}),
            2 => json!({"error": "the CRM is down"}),
            _ => json!({"error": "the CRM is slow", "delay": "50ms"}),
        }
    }

    /// Asks for more time, takes it, and finishes within it.
    async fn extend(&mut self, held: &[Held], lease_end: Time) -> Option<()> {
        let lease = Duration::from_millis(self.random.random_range(1000..3000));
        let all: Vec<&Held> = held.iter().collect();
        self.lengthen(&all, lease).await;
        let acted = self.act(held).await?;
        self.sleep_past(lease_end, 30).await;
        self.ack(&acted).await;
        Some(())
    }

    /// Does nothing until the lease is over, and then something else.
    async fn stall(&mut self, held: &[Held], lease_end: Time) -> Option<()> {
        let some = self.random.random_range(0..=held.len());
        self.act(&held[..some]).await?;
        self.sleep_past(lease_end, 200).await;
        Some(())
    }

    /// Dies in the middle, some of it before the call that would have told, some during it.
    async fn crash(&mut self, held: &[Held]) -> Option<()> {
        let some = self.random.random_range(0..=held.len());
        let acted = self.act(&held[..some]).await?;
        let receipts = receipts(&acted);
        let oracle = &self.fleet.oracle;
        match self.random.random_range(0..3) {
            0 => self.line.hang_up(),
            1 => {
                oracle.acking(&receipts);
                self.line.break_off("ack", &json!({"receipts": receipts})).await;
                oracle.ack_lost(&receipts);
            }
            _ => {
                oracle.nacking(&receipts);
                self.line.break_off("nack", &json!({"receipts": receipts, "delay": "0s"})).await;
            }
        }
        None
    }

    /// Acts on each; gives those that are to be acked.
    async fn act<'a>(&mut self, held: &'a [Held]) -> Option<Vec<&'a Held>> {
        let mut acted = vec![];
        for one in held {
            if one.conversation.as_ref().is_some_and(|of| self.spoiled.contains(of)) {
                continue;
            }
            self.fleet.oracle.begins(&one.receipt);
            match if self.fleet.is_healed() { Kind::Good } else { one.kind } {
                Kind::Spoiled => self.nack(&[one], json!({"error": "cannot be read"})).await,
                Kind::Deadly => {
                    self.spoiled.extend(one.conversation.clone());
                    self.lengthen(&[one], LAST_BREATH).await;
                }
                Kind::Good if !acts_outside(one.sequence) => acted.push(one),
                Kind::Good if self.act_outside(one).await? => acted.push(one),
                // Whoever finishes what comes behind it would finish out of order.
                Kind::Good => self.spoiled.extend(one.conversation.clone()),
            }
        }
        Some(acted)
    }

    async fn ack(&mut self, held: &[&Held]) {
        let receipts = receipts(held);
        self.fleet.oracle.acking(&receipts);
        let asked = Instant::now();
        let answer = self.line.call("ack", &json!({"receipts": receipts})).await;
        self.pace = asked.elapsed().min(SLOWEST);
        self.fleet.oracle.acked(&receipts, &answer.json);
    }

    async fn nack(&mut self, held: &[&Held], mut how: Value) {
        let receipts = receipts(held);
        self.spoiled.extend(held.iter().filter_map(|one| one.conversation.clone()));
        self.fleet.oracle.nacking(&receipts);
        how["receipts"] = json!(receipts);
        let answer = self.line.call("nack", &how).await;
        self.fleet.oracle.nacked(&receipts, &answer.json, answer.tries);
    }

    async fn lengthen(&mut self, held: &[&Held], lease: Duration) {
        let (receipts, asked) = (receipts(held), now());
        self.fleet.oracle.extending(&receipts, lease, asked);
        let extend = json!({"receipts": receipts, "lease": text(lease)});
        let answer = self.line.call("extend", &extend).await;
        self.fleet.oracle.extended(&receipts, lease, asked, &answer.json);
    }

    /// None in one of so many cases: the worker is dead.
    pub(super) fn may_die(&mut self, one_in: u32) -> Option<()> {
        let dies = self.random.random_ratio(1, one_in) && !self.careful;
        if dies {
            self.line.hang_up();
        }
        (!dies).then_some(())
    }

    /// Sleeps until that time and up to so many milliseconds more.
    async fn sleep_past(&mut self, end: Time, up_to: u64) {
        let more = Duration::from_millis(self.random.random_range(0..up_to));
        tokio::time::sleep(end.since(now()) + more).await;
    }
}

/// One of sixteen events has an act outside.
pub(super) fn acts_outside(sequence: i64) -> bool {
    sequence % 16 == 0
}

fn receipts<'a>(held: &[&'a Held]) -> Vec<&'a str> {
    held.iter().map(|one| one.receipt.as_str()).collect()
}

fn text(duration: Duration) -> String {
    format!("{}ms", duration.as_millis())
}
