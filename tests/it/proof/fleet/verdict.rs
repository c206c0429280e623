//! What must hold of a whole run, by what the workers saw and what the store holds in the end.

use std::collections::{BTreeMap, HashSet};

use inboxd::clock::Time;
use sqlx::{Connection as _, PgConnection, SqliteConnection};

use super::record::{Handout, Record};
use super::{Fleet, MAX_ATTEMPTS, end};
use crate::support::place::{Kind, Place};

/// More faults than these tell nothing new.
const SHOWN: usize = 20;

/// The end of one piece of work, by the store.
#[derive(Clone, Copy, Debug)]
struct Finished {
    attempt: i64,
    at: Time,
}

/// An event's deliveries in the order in which the store gave them, after it was requeued if it was.
struct Story<'a> {
    event: &'a str,
    sequence: i64,
    handouts: Vec<(usize, &'a Handout)>,
    finished: Finished,
    died: Option<Time>,
}

impl Story<'_> {
    fn last(&self) -> &Handout {
        self.handouts[self.handouts.len() - 1].1
    }
}

/// Looks at everything, given when which event died.
pub(super) async fn verify(fleet: &Fleet, place: &Place, kind: Kind, died: BTreeMap<String, Time>) {
    end::all_is_done(fleet).await;
    let record = fleet.oracle.record();
    let good = end::ack_again(fleet, record.receipts.keys().cloned().collect()).await;
    let good: HashSet<&str> = good.iter().map(String::as_str).collect();
    let finished = finished(place, kind).await;
    let stored = place.events().await;
    assert_eq!(stored.len(), fleet.events);

    let mut faults = record.faults.clone();
    let mut stories = vec![];
    for event in &stored {
        let id = event.id.to_string();
        let Some((event, places)) = record.events.get_key_value(&id) else {
            faults.push(format!("{id} was never handed out"));
            continue;
        };
        let mut handouts: Vec<_> =
            places.iter().map(|place| (*place, &record.handouts[*place])).collect();
        handouts.sort_by_key(|(_, one)| one.claimed_at);
        let sequence = handouts[0].1.held.sequence;
        let (died, finished) = (died.get(&id).copied(), finished[&sequence]);
        stories.push(Story { event, sequence, handouts, finished, died });
    }
    for story in &stories {
        by_its_last_holder(story, &good, &mut faults);
        one_at_a_time(story, &record, &mut faults);
        faults.extend(acted_on(fleet, story));
    }
    let jumps: i64 = stories.iter().map(lost_attempts).sum();
    println!("{} redeliveries, {jumps} attempts that nobody saw", redelivered(&stories));
    let unseen = i64::try_from(record.tally.lost_claims * 20).unwrap();
    if jumps > unseen {
        faults.push(format!("{jumps} attempts that nobody saw, of at most {unseen}"));
    }
    let mut conversations: BTreeMap<&str, Vec<&Story<'_>>> = BTreeMap::new();
    for story in &stories {
        if let Some(conversation) = &story.handouts[0].1.held.conversation {
            conversations.entry(conversation).or_default().push(story);
        }
    }
    for stories in conversations.values_mut() {
        stories.sort_by_key(|story| story.sequence);
        in_order(stories, kind, &mut faults);
    }
    let more = faults.len().saturating_sub(SHOWN);
    faults.truncate(SHOWN);
    assert!(faults.is_empty(), "{faults:#?}\nand {more} more");
}

/// Number, and what became of it, of all work in the store.
async fn finished(place: &Place, kind: Kind) -> BTreeMap<i64, Finished> {
    let sql = "SELECT event_seq, attempt, finished_at FROM work WHERE state = 2";
    let rows: Vec<(i64, i64, i64)> = match kind {
        Kind::Sqlite => {
            let mut connection = SqliteConnection::connect(&place.url).await.unwrap();
            sqlx::query_as(sql).fetch_all(&mut connection).await.unwrap()
        }
        Kind::Postgres => {
            let mut connection = PgConnection::connect(&place.url).await.unwrap();
            sqlx::query_as(sql).fetch_all(&mut connection).await.unwrap()
        }
    };
    let finished = |(event, attempt, at)| (event, Finished { attempt, at: Time::from_micros(at) });
    rows.into_iter().map(finished).collect()
}

/// Exactly one receipt finished it, the last that was given for it.
fn by_its_last_holder(story: &Story<'_>, good: &HashSet<&str>, faults: &mut Vec<String>) {
    let last = story.last();
    for (_, one) in &story.handouts {
        let is_last = one.held.receipt == last.held.receipt;
        let is_good = good.contains(one.held.receipt.as_str());
        if is_good != is_last || (one.done && !is_last) || (one.stale && is_last) {
            faults.push(format!("not finished by its last holder: {one:?}, last {last:?}"));
        }
    }
    let finished = story.finished;
    let asked = last.acked.is_some_and(|acked| acked <= finished.at);
    if !asked || finished.at < last.claimed_at || finished.attempt != last.held.attempt {
        faults.push(format!("finished as {finished:?}: {last:?}"));
    }
    if last.begun.is_none() || last.begun > last.acked {
        faults.push(format!("finished without an act: {last:?}"));
    }
}

/// Its leases do not overlap, and its attempts are counted.
fn one_at_a_time(story: &Story<'_>, record: &Record, faults: &mut Vec<String>) {
    for pair in story.handouts.windows(2) {
        let [(place, one), (_, next)] = pair else { continue };
        let requeued = story.died.is_some_and(|died| died < next.claimed_at);
        let given_up = one.nacked.is_some_and(|nacked| nacked <= next.got);
        let taken_back = record.taken_back_by(*place, next.got).is_some();
        if next.claimed_at < one.lease_until && !given_up && !taken_back {
            faults.push(format!("leased to two at once: {one:?} and {next:?}"));
        }
        // It counts unless it went back with what was before it.
        let counted = record.ahead(*place).next().is_none();
        if !requeued && next.held.attempt < one.held.attempt + i64::from(counted) {
            faults.push(format!("not counted: {one:?} and then {next:?}"));
        }
    }
    for (_, one) in &story.handouts {
        if !(1..=MAX_ATTEMPTS).contains(&one.held.attempt) {
            faults.push(format!("the number of the attempt: {one:?}"));
        }
    }
}

/// How many of its attempts no worker heard of.
fn lost_attempts(story: &Story<'_>) -> i64 {
    let mut before = 0;
    let mut lost = 0;
    for (_, one) in &story.handouts {
        lost += (one.held.attempt - before - 1).max(0);
        before = one.held.attempt;
    }
    lost
}

fn redelivered(stories: &[Story<'_>]) -> usize {
    stories.iter().map(|story| story.handouts.len() - 1).sum()
}

/// What stands outside was done once, and of every event that has such an act.
fn acted_on(fleet: &Fleet, story: &Story<'_>) -> Option<String> {
    let acts = fleet.outside.acts_on(story.event);
    let expected = u32::from(super::worker::acts_outside(story.sequence));
    (acts != expected).then(|| format!("{} was acted on {acts} times outside", story.event))
}

/// The events of one conversation were handed out and finished in the order of receipt, as long as
/// they were alive.
fn in_order(stories: &[&Story<'_>], kind: Kind, faults: &mut Vec<String>) {
    for (number, story) in stories.iter().enumerate() {
        for earlier in &stories[..number] {
            let over = earlier.died.unwrap_or(earlier.finished.at);
            if earlier.died.is_none() && story.died.is_none() && story.finished.at < over {
                let (one, other) = (story.last(), earlier.last());
                faults.push(format!("finished out of order: {one:?} before {other:?}"));
            }
            for (_, one) in &story.handouts {
                // PostgreSQL's claim may have looked at its clock before it came to the row.
                let latest = if kind == Kind::Sqlite { one.claimed_at } else { one.got };
                let together = earlier.handouts.iter().any(|(_, other)| other.claim == one.claim);
                if latest < over && !together {
                    let event = earlier.event;
                    faults.push(format!("handed out before {event} was over at {over}: {one:?}"));
                }
            }
        }
    }
}
