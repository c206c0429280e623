//! A consumer that is added begins with what the inbox holds already, if it is to.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering as Atomic};

use inboxd::clock::Time;
use inboxd::consumer::Start;
use inboxd::store::{Batch, Store};
use inboxd::work::{Consumer, Filter, Ordering};

use super::fixture::{Fixture, LEASE, consumer, names, receipts, request};
use super::sample::{ARRIVAL, Vary, sample};

super::conformance!(
    from_now_there_is_nothing,
    from_the_beginning_there_is_everything_in_order,
    nothing_is_claimed_before_all_is_there,
    a_name_is_taken_once,
    an_empty_inbox_fills_nobody,
    only_what_was_received_since,
    only_what_the_filter_wants,
    without_order_there_are_no_lanes,
    an_interrupted_filling_goes_on,
    two_are_filled_one_after_the_other,
    what_is_gone_is_left_out,
    a_head_that_came_later_gives_way,
    every_event_is_work_once_while_others_append_and_fill,
);

async fn add(fixture: &Fixture, name: &str, start: Start) {
    assert!(fixture.store.add_consumer(consumer(name), start).await.unwrap());
}

/// Fills in parts of this size to the end, and tells how many there were.
async fn fill(store: &dyn Store, limit: usize) -> usize {
    let mut parts = 1;
    while store.fill_consumers(limit).await.unwrap() {
        parts += 1;
    }
    parts
}

async fn claimed(fixture: &Fixture, consumer: &str) -> Vec<String> {
    let claimed = fixture.store.claim(consumer, request(1000)).await.unwrap();
    names(&claimed).into_iter().map(str::to_owned).collect()
}

async fn filling(fixture: &Fixture, name: &str) -> bool {
    fixture.store.consumer_states(Some(name)).await.unwrap()[0].filling
}

/// Events in two conversations, and every third in none.
async fn store_some(fixture: &Fixture, from: usize, to: usize) {
    let event = |n: usize| {
        let event = sample(fixture.main, &n.to_string()).later(n as i64);
        if n.is_multiple_of(3) { event } else { event.in_chat(&(n % 2).to_string()) }
    };
    fixture.stored(&(from..to).map(event).collect::<Vec<_>>()).await;
}

fn range(from: usize, to: usize) -> Vec<String> {
    (from..to).map(|n| n.to_string()).collect()
}

async fn from_now_there_is_nothing(fixture: &mut Fixture) {
    store_some(fixture, 0, 5).await;
    add(fixture, "new", Start::Now).await;
    assert!(!filling(fixture, "new").await);
    assert!(!fixture.store.fill_consumers(9).await.unwrap());
    store_some(fixture, 5, 8).await;
    assert_eq!(claimed(fixture, "new").await, range(5, 8));
}

async fn from_the_beginning_there_is_everything_in_order(fixture: &mut Fixture) {
    store_some(fixture, 0, 20).await;
    let done = fixture.claim(20).await;
    fixture.ack(&done).await;
    add(fixture, "new", Start::Beginning).await;
    store_some(fixture, 20, 25).await;
    assert_eq!(fill(fixture.store.as_ref(), 7).await, 3);
    assert_eq!(claimed(fixture, "new").await, range(0, 25));
    assert_eq!(claimed(fixture, "default").await, range(20, 25), "others keep what they did");
    let state = &fixture.store.consumer_states(Some("new")).await.unwrap()[0];
    assert_eq!((state.leased, state.done), (25, 0));
}

async fn nothing_is_claimed_before_all_is_there(fixture: &mut Fixture) {
    store_some(fixture, 0, 4).await;
    add(fixture, "new", Start::Beginning).await;
    store_some(fixture, 4, 6).await;
    for _ in 0..3 {
        assert!(filling(fixture, "new").await);
        assert_eq!(claimed(fixture, "new").await, [""; 0]);
        assert_eq!(fixture.store.next_due("new").await.unwrap(), None);
        assert_eq!(fixture.store.audit().await.unwrap(), [""; 0]);
        assert!(fixture.store.fill_consumers(1).await.unwrap());
    }
    assert!(!fixture.store.fill_consumers(1).await.unwrap());
    assert!(!filling(fixture, "new").await);
    assert_eq!(claimed(fixture, "new").await, range(0, 6));
}

async fn a_name_is_taken_once(fixture: &mut Fixture) {
    store_some(fixture, 0, 3).await;
    let changed = Consumer { max_attempts: 99, ..consumer("default") };
    assert!(!fixture.store.add_consumer(changed, Start::Beginning).await.unwrap());
    assert_eq!(fixture.store.consumers().await.unwrap(), [consumer("default")]);
    assert!(!filling(fixture, "default").await);
    assert_eq!(claimed(fixture, "default").await, range(0, 3));
}

async fn an_empty_inbox_fills_nobody(fixture: &mut Fixture) {
    add(fixture, "new", Start::Beginning).await;
    assert!(!filling(fixture, "new").await);
    store_some(fixture, 0, 2).await;
    assert_eq!(claimed(fixture, "new").await, range(0, 2));
}

async fn only_what_was_received_since(fixture: &mut Fixture) {
    store_some(fixture, 0, 10).await;
    let at = Time::from_micros(ARRIVAL.micros() + 6_000_000);
    add(fixture, "since", Start::At(at)).await;
    add(fixture, "never", Start::At(Time::from_micros(i64::MAX))).await;
    fill(fixture.store.as_ref(), 4).await;
    // What comes from now on is taken whenever it was received.
    fixture.stored(&[sample(fixture.main, "late")]).await;
    assert_eq!(claimed(fixture, "since").await, [range(6, 10), vec!["late".to_owned()]].concat());
    assert_eq!(claimed(fixture, "never").await, ["late"]);
}

async fn only_what_the_filter_wants(fixture: &mut Fixture) {
    let events = [("a", "telegram", "x"), ("b", "telegram", "y"), ("c", "whatsapp", "x")]
        .map(|(name, channel, kind)| sample(fixture.main, name).channel(channel).of_type(kind));
    fixture.stored(&events).await;
    let own = |values: &[&str]| values.iter().map(|value| value.to_string()).collect();
    let filter = |channels: &[&str], sources: &[&str], types: &[&str]| Filter {
        channels: own(channels),
        sources: own(sources),
        types: own(types),
    };
    let cases = [
        ("all", filter(&[], &[], &[]), "a b c"),
        ("channel", filter(&["telegram"], &[], &[]), "a b"),
        ("type", filter(&[], &["main"], &["x", "z"]), "a c"),
        ("source", filter(&[], &["other"], &[]), ""),
        ("both", filter(&["whatsapp"], &["main"], &["y"]), ""),
    ];
    for (name, filter, _) in &cases {
        let wants = Consumer { filter: filter.clone(), ..consumer(name) };
        assert!(fixture.store.add_consumer(wants, Start::Beginning).await.unwrap());
    }
    fill(fixture.store.as_ref(), 2).await;
    for (name, _, expected) in cases {
        assert_eq!(claimed(fixture, name).await.join(" "), expected, "{name}");
    }
}

async fn without_order_there_are_no_lanes(fixture: &mut Fixture) {
    store_some(fixture, 0, 6).await;
    let loose = Consumer { ordering: Ordering::None, ..consumer("loose") };
    assert!(fixture.store.add_consumer(loose, Start::Beginning).await.unwrap());
    fill(fixture.store.as_ref(), 4).await;
    let first = fixture.store.claim("loose", request(2)).await.unwrap();
    assert_eq!(names(&first), ["0", "1"]);
    assert_eq!(claimed(fixture, "loose").await, range(2, 6));
}

async fn an_interrupted_filling_goes_on(fixture: &mut Fixture) {
    store_some(fixture, 0, 9).await;
    add(fixture, "new", Start::Beginning).await;
    assert!(fixture.store.fill_consumers(4).await.unwrap());
    fixture.reopen().await;
    store_some(fixture, 9, 12).await;
    assert!(filling(fixture, "new").await);
    assert_eq!(fill(fixture.store.as_ref(), 4).await, 2);
    assert_eq!(claimed(fixture, "new").await, range(0, 12));
}

async fn two_are_filled_one_after_the_other(fixture: &mut Fixture) {
    store_some(fixture, 0, 5).await;
    add(fixture, "one", Start::Beginning).await;
    add(fixture, "two", Start::Beginning).await;
    assert!(fixture.store.fill_consumers(9).await.unwrap(), "there is another");
    assert_eq!(claimed(fixture, "one").await, range(0, 5));
    assert!(!fixture.store.fill_consumers(9).await.unwrap());
    assert_eq!(claimed(fixture, "two").await, range(0, 5));
}

async fn what_is_gone_is_left_out(fixture: &mut Fixture) {
    store_some(fixture, 0, 8).await;
    let done = fixture.claim(8).await;
    fixture.ack(&done).await;
    add(fixture, "new", Start::Beginning).await;
    assert!(fixture.store.fill_consumers(2).await.unwrap());
    // The last two of them too, so that the end is never met.
    let gone = "IN (3, 4, 7, 8)";
    fixture
        .raw
        .execute(&format!(
            "DELETE FROM identities WHERE event_seq {gone}; DELETE FROM bodies WHERE event_seq {gone};
             DELETE FROM work WHERE consumer_id = 1 AND event_seq {gone};
             DELETE FROM events WHERE seq {gone}"
        ))
        .await;
    fixture.raw.recount_work().await;
    fill(fixture.store.as_ref(), 2).await;
    assert_eq!(claimed(fixture, "new").await, ["0", "1", "4", "5"]);
}

async fn a_head_that_came_later_gives_way(fixture: &mut Fixture) {
    fixture.stored(&["1", "2"].map(|name| sample(fixture.main, name).in_chat("a"))).await;
    add(fixture, "new", Start::Beginning).await;
    fixture.stored(&[sample(fixture.main, "3").in_chat("a")]).await;
    fixture.advance(LEASE).await;
    fill(fixture.store.as_ref(), 1).await;
    let first = fixture.store.claim("new", request(1)).await.unwrap();
    assert_eq!(names(&first), ["1"]);
    assert_eq!(claimed(fixture, "new").await, [""; 0], "the conversation is held");
    fixture.store.ack("new", receipts(&first)).await.unwrap();
    assert_eq!(claimed(fixture, "new").await, ["2", "3"]);
}

/// Appends batches of ten in five conversations until told to stop, and tells how many.
async fn append_on(store: &dyn Store, fixture: &Fixture, who: &str, stop: &AtomicBool) -> usize {
    let mut batches = 0;
    while !stop.load(Atomic::SeqCst) || batches < 5 {
        let event = |n: usize| {
            let event = sample(fixture.main, &format!("{who}-{batches}-{n}"));
            event.in_chat(&(n % 5).to_string())
        };
        let batch = Batch { events: (0..10).map(event).collect(), checkpoint: None };
        store.append(Arc::new(batch)).await.unwrap();
        batches += 1;
    }
    batches * 10
}

async fn every_event_is_work_once_while_others_append_and_fill(fixture: &mut Fixture) {
    let other = fixture.open_again(false).await.unwrap();
    let before: Vec<_> = (0..600)
        .map(|n| sample(fixture.main, &format!("before-{n}")).in_chat(&(n % 7).to_string()))
        .collect();
    fixture.stored(&before).await;
    let stop = AtomicBool::new(false);
    let added = async {
        tokio::task::yield_now().await;
        add(fixture, "new", Start::Beginning).await;
        tokio::join!(fill(fixture.store.as_ref(), 40), fill(other.as_ref(), 30));
        stop.store(true, Atomic::SeqCst);
    };
    let (ours, theirs, ()) = tokio::join!(
        append_on(fixture.store.as_ref(), fixture, "ours", &stop),
        append_on(other.as_ref(), fixture, "theirs", &stop),
        added,
    );
    other.close().await;
    assert_eq!(fixture.store.audit().await.unwrap(), [""; 0]);
    let all = 600 + ours + theirs;
    let mut taken = Vec::new();
    loop {
        let claimed = fixture.store.claim("new", request(173)).await.unwrap();
        if claimed.is_empty() {
            break;
        }
        taken.extend(claimed.iter().map(|one| {
            (one.event.attributes.subject.clone().unwrap(), one.event.sequence, one.attempt)
        }));
        fixture.store.ack("new", receipts(&claimed)).await.unwrap();
    }
    assert_eq!(taken.len(), all);
    assert!(taken.iter().all(|(_, _, attempt)| *attempt == 1));
    // Sorted by conversation alone, each must be in order.
    taken.sort_by(|a, b| a.0.cmp(&b.0));
    let in_order = |pair: &[(String, i64, i64)]| pair[0].0 != pair[1].0 || pair[0].1 < pair[1].1;
    assert!(taken.windows(2).all(in_order));
}
