//! Reading by conversation: the latest first, and what is unfinished in each.

use std::collections::HashMap;

use inboxd::conversation::{Conversation, ConversationQuery, TypedQuery};
use inboxd::event::{NewEvent, Sequence};
use inboxd::source::SourceKind;
use inboxd::work::{Consumer, Filter, Ordering};

use super::fixture::{Fixture, consumer, receipts, request};
use super::sample::{Vary, sample};

super::conformance!(
    the_latest_comes_first_with_a_few_before_it,
    filters_are_of_the_latest_event,
    pages_have_all_conversations_once,
    bytes_bound_a_page_but_never_below_one_conversation,
    unfinished_work_is_counted_over_all_consumers,
    a_count_has_a_bound,
    subjects_that_share_a_lane_are_apart,
    events_of_certain_types_are_read_in_order,
);

fn all() -> ConversationQuery {
    ConversationQuery {
        limit: 1000,
        max_bytes: usize::MAX,
        look: Sequence::MAX,
        ..ConversationQuery::default()
    }
}

fn name(event: &inboxd::event::Event) -> String {
    event.attributes.external_id.clone()
}

async fn found(fixture: &Fixture, query: ConversationQuery) -> Vec<Conversation> {
    fixture.store.conversations(query).await.unwrap().conversations
}

/// The latest event of each conversation found.
async fn latest(fixture: &Fixture, query: ConversationQuery) -> Vec<String> {
    found(fixture, query).await.iter().map(|one| name(&one.latest)).collect()
}

/// The count of unfinished work by the conversation's latest event.
async fn unfinished(fixture: &Fixture) -> HashMap<String, i64> {
    let found = found(fixture, all()).await;
    found.iter().map(|one| (name(&one.latest), one.unfinished)).collect()
}

/// Events by name, each in the conversation of its first letter.
fn events(fixture: &Fixture, names: &[&str]) -> Vec<NewEvent> {
    names.iter().map(|name| sample(fixture.main, name).in_chat(&name[..1])).collect()
}

async fn the_latest_comes_first_with_a_few_before_it(fixture: &mut Fixture) {
    assert_eq!(fixture.store.conversations(all()).await.unwrap().conversations, []);
    fixture.stored(&events(fixture, &["a1", "b1", "a2"])).await;
    fixture.stored(&[sample(fixture.main, "of no conversation")]).await;
    fixture.stored(&events(fixture, &["c1", "a3"])).await;
    let page = fixture.store.conversations(all()).await.unwrap();
    assert_eq!(page.next, None);
    let seen: Vec<_> = page
        .conversations
        .iter()
        .map(|one| (name(&one.latest), one.before.iter().map(name).collect::<Vec<_>>()))
        .collect();
    let own = |latest: &str, before: &[&str]| {
        (latest.to_owned(), before.iter().map(|name| name.to_string()).collect())
    };
    assert_eq!(seen, [own("a3", &["a2", "a1"]), own("c1", &[]), own("b1", &[])]);
    assert_eq!(page.conversations[0].latest.source, "main");

    let many: Vec<String> = (10..40).map(|number| format!("b{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    fixture.stored(&events(fixture, &many)).await;
    let first = &found(fixture, all()).await[0];
    let before: Vec<String> = first.before.iter().map(name).collect();
    assert_eq!(name(&first.latest), "b39");
    assert_eq!(before, ["b38", "b37", "b36", "b35", "b34", "b33", "b32", "b31", "b30"]);
}

async fn filters_are_of_the_latest_event(fixture: &mut Fixture) {
    let second = fixture.store.register_source(SourceKind::UnifyPort, "second").await.unwrap();
    let batch = [
        sample(fixture.main, "a").in_chat("a"),
        sample(fixture.main, "b1").in_chat("b").channel("line"),
        sample(second, "c").in_chat("c").channel("line"),
        sample(second, "b2").in_chat("b").channel("x"),
    ];
    fixture.stored(&batch).await;
    let text = |value: &str| Some(value.to_owned());
    for (channel, source, expected) in [
        (None, None, &["b2", "c", "a"][..]),
        (text("line"), None, &["c"]),
        (None, text("main"), &["a"]),
        (text("x"), text("second"), &["b2"]),
        (text("x"), text("main"), &[]),
        (None, text("a\0b"), &[]),
    ] {
        let query = ConversationQuery { channel, source, ..all() };
        assert_eq!(latest(fixture, query.clone()).await, expected, "{query:?}");
    }
}

async fn pages_have_all_conversations_once(fixture: &mut Fixture) {
    let batch: Vec<NewEvent> = (0..60)
        .map(|number| sample(fixture.main, &number.to_string()).in_chat(&(number % 25).to_string()))
        .collect();
    fixture.stored(&batch).await;
    let expected = latest(fixture, all()).await;
    assert_eq!(expected.len(), 25);
    assert_eq!((&*expected[0], &*expected[24]), ("59", "35"));
    for (limit, look) in [(1, 1000), (7, 1000), (25, 1000), (26, 1000), (7, 3), (1000, 1), (2, 2)] {
        let mut seen = Vec::new();
        let mut query = ConversationQuery { limit, look, ..all() };
        loop {
            let page = fixture.store.conversations(query.clone()).await.unwrap();
            assert!(page.conversations.len() <= limit);
            seen.extend(page.conversations.iter().map(|one| name(&one.latest)));
            assert!(page.next.is_none_or(|next| query.after.is_none_or(|after| next < after)));
            query.after = page.next;
            if page.next.is_none() {
                break;
            }
        }
        assert_eq!(seen, expected, "{limit} {look}");
    }
}

async fn bytes_bound_a_page_but_never_below_one_conversation(fixture: &mut Fixture) {
    let sized = |name: &str, size: usize| {
        sample(fixture.main, name).in_chat(&name[..1]).body(vec![b' '; size])
    };
    let batch = [
        sized("a1", 100),
        sized("b1", 100_000),
        sized("b2", 10),
        sized("c1", 20),
        sized("c2", 300_000),
    ];
    fixture.stored(&batch).await;
    let page = async |after, max_bytes| {
        let query = ConversationQuery { after, max_bytes, ..all() };
        let page = fixture.store.conversations(query).await.unwrap();
        let read = |one: &Conversation| (name(&one.latest), one.before.len());
        (page.conversations.iter().map(read).collect::<Vec<_>>(), page.next)
    };
    let own = |name: &str, before| (name.to_owned(), before);
    // Beside a latest event only a little is read, whatever it has itself.
    let (first, next) = page(None, 200).await;
    assert_eq!(first, [own("c2", 0)]);
    assert_eq!(page(next, 200).await.0, [own("b2", 0), own("a1", 0)]);
    assert_eq!(page(next, 109).await.0, [own("b2", 0)]);
    assert_eq!(page(None, usize::MAX).await.0.len(), 3);
}

async fn unfinished_work_is_counted_over_all_consumers(fixture: &mut Fixture) {
    let free = Consumer { ordering: Ordering::None, ..consumer("free") };
    let filter = Filter { channels: vec!["line".to_owned()], ..Filter::default() };
    let narrow = Consumer { filter, ..consumer("narrow") };
    fixture.store.put_consumers(vec![free.clone(), narrow]).await.unwrap();
    let mut batch = events(fixture, &["a1", "b1", "a2", "a3"]);
    batch[1] = batch[1].clone().channel("line");
    fixture.stored(&batch).await;
    let counts = |pairs: &[(&str, i64)]| -> HashMap<String, i64> {
        pairs.iter().map(|(name, count)| (name.to_string(), *count)).collect()
    };
    assert_eq!(unfinished(fixture).await, counts(&[("a3", 6), ("b1", 3)]));

    // What is leased is not finished; what is acked is.
    let claimed = fixture.claim(2).await;
    assert_eq!(unfinished(fixture).await, counts(&[("a3", 6), ("b1", 3)]));
    fixture.ack(&claimed).await;
    let left = unfinished(fixture).await;
    assert_eq!(left.values().sum::<i64>(), 7);
    let claimed = fixture.store.claim("free", request(10)).await.unwrap();
    fixture.store.ack("free", receipts(&claimed[..3])).await.unwrap();
    assert_eq!(unfinished(fixture).await.values().sum::<i64>(), 4);

    // A consumer that keeps order from now on still has work that was made without.
    let ordered = Consumer { ordering: Ordering::Conversation, ..free };
    fixture.store.put_consumers(vec![ordered]).await.unwrap();
    assert_eq!(unfinished(fixture).await.values().sum::<i64>(), 4);
    fixture.store.ack("free", receipts(&claimed)).await.unwrap();
    for name in ["default", "narrow"] {
        loop {
            let claimed = fixture.store.claim(name, request(10)).await.unwrap();
            if claimed.is_empty() {
                break;
            }
            fixture.store.ack(name, receipts(&claimed)).await.unwrap();
        }
    }
    assert_eq!(unfinished(fixture).await, counts(&[("a3", 0), ("b1", 0)]));
}

async fn a_count_has_a_bound(fixture: &mut Fixture) {
    let free = Consumer { ordering: Ordering::None, ..consumer("free") };
    fixture.store.put_consumers(vec![free]).await.unwrap();
    let batch: Vec<NewEvent> =
        (0..1100).map(|number| sample(fixture.main, &number.to_string()).in_chat("long")).collect();
    fixture.stored(&batch).await;
    assert_eq!(found(fixture, all()).await[0].unfinished, 1000);
}

async fn subjects_that_share_a_lane_are_apart(fixture: &mut Fixture) {
    let sequences = fixture.stored(&events(fixture, &["a1", "b1", "a2", "b2", "a3"])).await;
    // As if both subjects had the same 64 bits.
    let of =
        |sequence: Sequence| format!("(SELECT conversation FROM events WHERE seq = {sequence})");
    let (a, b) = (of(sequences[0]), of(sequences[1]));
    let sql = format!(
        "UPDATE work SET lane = {a} WHERE lane = {b};
         DELETE FROM lanes WHERE lane = {b};
         UPDATE events SET conversation = {a} WHERE conversation = {b}"
    );
    fixture.raw.execute(&sql).await;
    let found = found(fixture, all()).await;
    let seen: Vec<_> =
        found.iter().map(|one| (name(&one.latest), one.before.len(), one.unfinished)).collect();
    assert_eq!(seen, [("a3".to_owned(), 2, 3), ("b2".to_owned(), 1, 2)]);
}

async fn events_of_certain_types_are_read_in_order(fixture: &mut Fixture) {
    let mut batch = events(fixture, &["a1", "b1", "a2", "a3", "a4"]);
    for (place, event_type) in [(0, "x.edit"), (1, "x.edit"), (3, "x.delete"), (4, "x.edit")] {
        batch[place] = batch[place].clone().of_type(event_type);
    }
    let sequences = fixture.stored(&batch).await;
    let read = async |types: &[&str], after, limit, max_bytes| {
        let query = TypedQuery {
            subject: batch[0].attributes.subject.clone().unwrap(),
            types: types.iter().map(|name| name.to_string()).collect(),
            after,
            limit,
            max_bytes,
        };
        let page = fixture.store.typed_events(query).await.unwrap();
        (page.events.iter().map(name).collect::<Vec<_>>().join(" "), page.more)
    };
    let both = ["x.edit", "x.delete"];
    let own = |names: &str, more| (names.to_owned(), more);
    assert_eq!(read(&both, 0, 9, usize::MAX).await, own("a1 a3 a4", false));
    assert_eq!(read(&both, 0, 2, usize::MAX).await, own("a1 a3", true));
    assert_eq!(read(&both, 0, 9, 1).await, own("a1", true));
    assert_eq!(read(&both, sequences[0], 9, usize::MAX).await, own("a3 a4", false));
    assert_eq!(read(&["x.delete", "nul\0"], 0, 9, usize::MAX).await, own("a3", false));
    assert_eq!(read(&[], 0, 9, usize::MAX).await, own("", false));
    let unknown = TypedQuery { subject: "nul\0".to_owned(), limit: 9, ..TypedQuery::default() };
    assert_eq!(fixture.store.typed_events(unknown).await.unwrap().events, []);
}
