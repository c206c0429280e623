//! Which finished work a replay means, and replays beside everything else.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use inboxd::clock::Time;
use inboxd::event::Sequence;
use inboxd::replay::Selection;
use inboxd::store::{Batch, Store};
use uuid::Uuid;

use super::fixture::{Fixture, names, receipts, request};
use super::replay::{dead, died, finished, replay};
use super::sample::{ARRIVAL, Vary, sample};
use crate::support::condition::until;

super::conformance!(
    each_filter_chooses_and_all_must_hold,
    ids_that_name_nothing_count_for_nothing,
    dead_work_alone_with_every_filter,
    beside_receivers_and_workers,
);

fn at(seconds: i64) -> Option<Time> {
    Some(Time::from_micros(ARRIVAL.micros() + seconds * 1_000_000))
}

async fn each_filter_chooses_and_all_must_hold(fixture: &mut Fixture) {
    let other = inboxd::source::SourceKind::Telegram;
    let other = fixture.store.register_source(other, "bot").await.unwrap();
    let events = [
        sample(fixture.main, "a").in_chat("1"),
        sample(fixture.main, "b").in_chat("2").later(10).of_type("rare"),
        sample(other, "c").channel("telegram").later(20),
        sample(fixture.main, "d").in_chat("1").later(30).of_type("rare"),
    ];
    finished(fixture, &events).await;
    let some = |text: &str| Some(text.to_owned());
    let chat = || events[0].attributes.subject.clone();
    let none = Selection::default;
    let ids = |places: &[usize]| {
        let ids: Vec<Uuid> = places.iter().map(|place| events[*place].id).collect();
        Some(ids)
    };
    let cases: Vec<(Selection, &[&str])> = vec![
        (none(), &["a", "b", "c", "d"]),
        (Selection { channel: some("telegram"), ..none() }, &["c"]),
        (Selection { channel: some("whatsapp"), ..none() }, &["a", "b", "d"]),
        (Selection { source: some("bot"), ..none() }, &["c"]),
        (Selection { source: some("nobody"), ..none() }, &[]),
        (Selection { event_type: some("rare"), ..none() }, &["b", "d"]),
        (Selection { conversation: chat(), ..none() }, &["a", "d"]),
        (Selection { conversation: some("of nobody\0"), ..none() }, &[]),
        (Selection { channel: some("\0"), ..none() }, &[]),
        (Selection { since: at(10), ..none() }, &["b", "c", "d"]),
        (Selection { until: at(10), ..none() }, &["a"]),
        (Selection { since: at(10), until: at(30), ..none() }, &["b", "c"]),
        (Selection { conversation: chat(), since: at(1), ..none() }, &["d"]),
        (Selection { conversation: chat(), event_type: some("x"), ..none() }, &[]),
        (Selection { ids: ids(&[2, 0, 0]), ..none() }, &["a", "c"]),
        (Selection { ids: ids(&[2, 0]), conversation: chat(), ..none() }, &["a"]),
        (Selection { ids: ids(&[0, 1]), channel: some("telegram"), ..none() }, &[]),
        (
            Selection { source: some("main"), event_type: some("rare"), until: at(30), ..none() },
            &["b"],
        ),
    ];
    for (selection, expected) in cases {
        assert_eq!(replay(fixture, selection.clone()).await, expected.len(), "{selection:?}");
        let claimed = fixture.claim(10).await;
        assert_eq!(names(&claimed), expected, "{selection:?}");
        fixture.ack(&claimed).await;
    }
}

async fn ids_that_name_nothing_count_for_nothing(fixture: &mut Fixture) {
    let event = sample(fixture.main, "a");
    finished(fixture, std::slice::from_ref(&event)).await;
    let of = |ids: Vec<Uuid>| Selection { ids: Some(ids), ..Selection::default() };
    assert_eq!(replay(fixture, of(Vec::new())).await, 0, "none is not all");
    assert_eq!(replay(fixture, of(vec![Uuid::nil(), Uuid::now_v7()])).await, 0);
    assert_eq!(replay(fixture, of(vec![Uuid::nil(), event.id, event.id])).await, 1);
    assert_eq!(names(&fixture.claim(10).await), ["a"]);
}

async fn dead_work_alone_with_every_filter(fixture: &mut Fixture) {
    let gone = [
        sample(fixture.main, "a").in_chat("1"),
        sample(fixture.main, "b").in_chat("2").of_type("rare"),
        sample(fixture.main, "c"),
    ];
    died(fixture, &gone).await;
    finished(fixture, &[sample(fixture.main, "d").in_chat("1").of_type("rare")]).await;
    let (event_type, conversation) = (Some("rare".to_owned()), gone[0].attributes.subject.clone());
    assert_eq!(replay(fixture, Selection { event_type, ..dead() }).await, 1);
    assert_eq!(replay(fixture, Selection { conversation, ..dead() }).await, 1);
    assert_eq!(replay(fixture, dead()).await, 1);
    let claimed = fixture.claim(10).await;
    assert_eq!(names(&claimed), ["b", "a", "c"]);
    fixture.ack(&claimed).await;
    assert_eq!(replay(fixture, dead()).await, 0);
}

const CHATS: usize = 4;

/// What workers have seen of each conversation, and who holds it.
#[derive(Default)]
struct Seen {
    /// In the order in which they were handed out for the first time.
    first: HashMap<String, Vec<Sequence>>,
    all: HashSet<Sequence>,
    deliveries: usize,
    held: HashSet<String>,
}

async fn beside_receivers_and_workers(fixture: &mut Fixture) {
    const ROUNDS: usize = 40;
    // Two writers of one SQLite file would only keep each other waiting.
    let second = match fixture.raw.is_sqlite() {
        true => fixture.store.clone(),
        false => fixture.open_again(false).await.unwrap(),
    };
    let stores = [fixture.store.clone(), second.clone()];
    let seen: Arc<Mutex<Seen>> = Arc::default();
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let workers: Vec<_> = (0..4)
        .map(|n| tokio::spawn(work(stores[n % 2].clone(), seen.clone(), stopped.clone())))
        .collect();
    let replays: Vec<_> =
        stores.iter().map(|store| tokio::spawn(go_on(store.clone(), stopped.clone()))).collect();
    let mut appended = 0;
    for round in 0..ROUNDS {
        let event = |place: usize| {
            let event = sample(fixture.main, &format!("{round} {place}"));
            if place == CHATS { event } else { event.in_chat(&place.to_string()) }
        };
        let events = (0..=CHATS).map(event).collect();
        let batch = Batch { events, checkpoint: None };
        appended += stores[round % 2].append(Arc::new(batch)).await.unwrap().len();
    }
    let enough = async || (seen.lock().unwrap().deliveries >= 2 * appended).then_some(());
    until("replays bring back as much again", enough).await;
    stop.send(true).unwrap();
    let mut replayed = 0;
    for task in replays {
        replayed += task.await.unwrap();
    }
    for worker in workers {
        worker.await.unwrap();
    }
    while let claimed @ [_, ..] = &*fixture.claim(100).await {
        fixture.ack(claimed).await;
        let mut seen = seen.lock().unwrap();
        seen.deliveries += claimed.len();
        seen.all.extend(claimed.iter().map(|one| one.event.sequence));
    }
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    assert_eq!(seen.all.len(), appended);
    assert_eq!(seen.deliveries, appended + replayed, "each replay is one more delivery");
    for (chat, first) in &seen.first {
        assert!(first.is_sorted(), "{chat} is out of order: {first:?}");
    }
    let positions = fixture.raw.number("SELECT count(DISTINCT pos) FROM work").await;
    assert_eq!(usize::try_from(positions).unwrap(), appended);
    if !fixture.raw.is_sqlite() {
        second.close().await;
    }
}

/// Claims and acks, and sees that nobody else has the conversation meanwhile.
async fn work(
    store: Arc<dyn Store>,
    seen: Arc<Mutex<Seen>>,
    stopped: tokio::sync::watch::Receiver<bool>,
) {
    while !*stopped.borrow() {
        let claimed = store.claim("default", request(5)).await.unwrap();
        let chats: HashSet<String> =
            claimed.iter().filter_map(|one| one.event.attributes.subject.clone()).collect();
        {
            let mut seen = seen.lock().unwrap();
            for chat in &chats {
                assert!(seen.held.insert(chat.clone()), "{chat} is held by two");
            }
            for one in &claimed {
                assert_eq!(one.attempt, 1);
                seen.deliveries += 1;
                let sequence = one.event.sequence;
                if seen.all.insert(sequence) {
                    let chat = one.event.attributes.subject.clone();
                    let first = chat.map(|chat| seen.first.entry(chat).or_default());
                    first.into_iter().for_each(|first| first.push(sequence));
                }
            }
        }
        seen.lock().unwrap().held.retain(|chat| !chats.contains(chat));
        let done = store.ack("default", receipts(&claimed)).await.unwrap();
        assert!(done.into_iter().all(|done| done));
    }
}

/// Replays all there is, again and again, and counts it.
async fn go_on(store: Arc<dyn Store>, stopped: tokio::sync::watch::Receiver<bool>) -> usize {
    let selection = Arc::new(Selection::default());
    let (mut count, mut place) = (0, None);
    while !*stopped.borrow() {
        let step = store.replay("default", selection.clone(), place, 7).await.unwrap();
        count += step.count;
        place = step.next;
    }
    count
}
