//! Independent readers of the one inbox, and which events are whose.

use std::time::Duration;

use inboxd::event::NewEvent;
use inboxd::source::SourceKind;
use inboxd::work::{Consumer, Filter, Ordering};

use super::fixture::{Fixture, LEASE, consumer, names, receipts, request};
use super::sample::{Vary, sample};

super::conformance!(
    consumers_are_made_and_changed_but_not_removed,
    consumers_do_not_see_each_other,
    each_list_of_a_filter_must_hold_the_value,
    an_event_that_nobody_wants_is_no_work,
    a_new_consumer_gets_what_comes_after_it,
    a_changed_filter_is_for_what_comes_after_it,
    settings_of_now_apply_to_what_waits,
    names_of_any_kind,
    as_many_consumers_as_one_likes,
);

fn filter(channels: &[&str], sources: &[&str], types: &[&str]) -> Filter {
    let own = |values: &[&str]| values.iter().map(|value| value.to_string()).collect();
    Filter { channels: own(channels), sources: own(sources), types: own(types) }
}

async fn claimed(fixture: &Fixture, consumer: &str) -> Vec<String> {
    let claimed = fixture.store.claim(consumer, request(1000)).await.unwrap();
    names(&claimed).into_iter().map(str::to_owned).collect()
}

async fn consumers_are_made_and_changed_but_not_removed(fixture: &mut Fixture) {
    let one = Consumer {
        name: "one".to_owned(),
        ordering: Ordering::None,
        lease: Duration::from_micros(1),
        max_attempts: 1,
        backoff_first: Duration::from_millis(1500),
        backoff_max: Duration::from_secs(86_400 * 365),
        filter: filter(&["telegram"], &["main", "o'ne"], &["\"quoted\"", "{a,b}", "null", "\\"]),
    };
    fixture.store.put_consumers(vec![one.clone(), consumer("another")]).await.unwrap();
    let expected = [consumer("another"), consumer("default"), one.clone()];
    assert_eq!(fixture.store.consumers().await.unwrap(), expected);
    let changed = Consumer {
        ordering: Ordering::Conversation,
        max_attempts: 9,
        filter: Filter::default(),
        ..one
    };
    fixture.store.put_consumers(vec![changed.clone()]).await.unwrap();
    fixture.store.put_consumers(Vec::new()).await.unwrap();
    fixture.reopen().await;
    let expected = [consumer("another"), consumer("default"), changed];
    assert_eq!(fixture.store.consumers().await.unwrap(), expected);
}

async fn consumers_do_not_see_each_other(fixture: &mut Fixture) {
    fixture.store.put_consumers(vec![consumer("second")]).await.unwrap();
    let events = ["a", "b"].map(|name| sample(fixture.main, name).in_chat("1"));
    fixture.stored(&events).await;
    let first = fixture.claim(10).await;
    assert_eq!(claimed(fixture, "second").await, ["a", "b"]);
    fixture.ack(&first).await;
    fixture.advance(LEASE).await;
    let second = fixture.store.claim("second", request(1)).await.unwrap();
    assert_eq!((names(&second), second[0].attempt), (vec!["a"], 2));
    fixture.store.ack("second", receipts(&second)).await.unwrap();
    let work: Vec<_> = fixture.detail(&events[0]).await.work;
    let work: Vec<_> = work.iter().map(|one| (&*one.consumer, one.state, one.attempt)).collect();
    assert_eq!(work, [("default", "done", 1), ("second", "done", 2)]);
    assert_eq!(claimed(fixture, "default").await, [""; 0]);
}

/// Events of all combinations: `tmx` is of Telegram's channel, source `main` and type `x`.
async fn combinations(fixture: &Fixture) -> Vec<NewEvent> {
    let second = fixture.store.register_source(SourceKind::UnifyPort, "second").await.unwrap();
    let mut events = Vec::new();
    for channel in ["telegram", "whatsapp"] {
        for (source, id) in [("main", fixture.main), ("second", second)] {
            for event_type in ["x", "y"] {
                let name = format!("{}{}{event_type}", &channel[..1], &source[..1]);
                events.push(sample(id, &name).channel(channel).of_type(event_type));
            }
        }
    }
    events
}

async fn each_list_of_a_filter_must_hold_the_value(fixture: &mut Fixture) {
    let cases = [
        ("all", filter(&[], &[], &[]), "tmx tmy tsx tsy wmx wmy wsx wsy"),
        ("channel", filter(&["telegram"], &[], &[]), "tmx tmy tsx tsy"),
        ("source", filter(&[], &["second"], &[]), "tsx tsy wsx wsy"),
        ("type", filter(&[], &[], &["y", "z"]), "tmy tsy wmy wsy"),
        ("two", filter(&["telegram", "whatsapp"], &["main"], &[]), "tmx tmy wmx wmy"),
        ("three", filter(&["whatsapp"], &["main"], &["x"]), "wmx"),
        ("whole", filter(&["tele"], &[], &[]), ""),
        ("case", filter(&[], &[], &["X"]), ""),
    ];
    let consumers =
        cases.iter().map(|(name, filter, _)| Consumer { filter: filter.clone(), ..consumer(name) });
    fixture.store.put_consumers(consumers.collect()).await.unwrap();
    fixture.stored(&combinations(fixture).await).await;
    for (name, _, expected) in cases {
        assert_eq!(claimed(fixture, name).await.join(" "), expected, "{name}");
    }
}

async fn an_event_that_nobody_wants_is_no_work(fixture: &mut Fixture) {
    let picky = Consumer { filter: filter(&["telegram"], &[], &[]), ..consumer("default") };
    fixture.store.put_consumers(vec![picky]).await.unwrap();
    let event = sample(fixture.main, "a").in_chat("1");
    fixture.stored(std::slice::from_ref(&event)).await;
    assert!(fixture.detail(&event).await.work.is_empty());
    assert_eq!(fixture.store.next_due("default").await.unwrap(), None);
    assert_eq!(claimed(fixture, "default").await, [""; 0]);
}

async fn a_new_consumer_gets_what_comes_after_it(fixture: &mut Fixture) {
    fixture.stored(&[sample(fixture.main, "a").in_chat("1")]).await;
    fixture.store.put_consumers(vec![consumer("late")]).await.unwrap();
    fixture.stored(&[sample(fixture.main, "b").in_chat("1")]).await;
    fixture.append(&[sample(fixture.main, "a")]).await;
    assert_eq!(claimed(fixture, "late").await, ["b"]);
    assert_eq!(claimed(fixture, "default").await, ["a", "b"]);
}

async fn a_changed_filter_is_for_what_comes_after_it(fixture: &mut Fixture) {
    let events = combinations(fixture).await;
    fixture.stored(&events[..2]).await;
    let picky = Consumer { filter: filter(&[], &["second"], &["y"]), ..consumer("default") };
    fixture.store.put_consumers(vec![picky]).await.unwrap();
    fixture.stored(&events[2..]).await;
    assert_eq!(claimed(fixture, "default").await, ["tmx", "tmy", "tsy", "wsy"]);
}

async fn settings_of_now_apply_to_what_waits(fixture: &mut Fixture) {
    fixture.stored(&["a", "b"].map(|name| sample(fixture.main, name).in_chat("1"))).await;
    fixture.claim(1).await;
    let changed = Consumer { max_attempts: 1, lease: 10 * LEASE, ..consumer("default") };
    fixture.store.put_consumers(vec![changed]).await.unwrap();
    fixture.advance(LEASE).await;
    assert_eq!(claimed(fixture, "default").await, ["b"], "a had its one attempt");
    fixture.advance(5 * LEASE).await;
    assert_eq!(claimed(fixture, "default").await, [""; 0]);
}

async fn names_of_any_kind(fixture: &mut Fixture) {
    let odd = "it's \"odd\" {1,2} \\ \u{1f4e5}";
    let source = fixture.store.register_source(SourceKind::UnifyPort, odd).await.unwrap();
    let one = Consumer { filter: filter(&[odd], &[odd], &[odd]), ..consumer(odd) };
    fixture.store.put_consumers(vec![one.clone()]).await.unwrap();
    assert!(fixture.store.consumers().await.unwrap().contains(&one));
    fixture.stored(&[sample(source, odd).channel(odd).of_type(odd).in_chat(odd)]).await;
    let taken = fixture.store.claim(odd, request(1)).await.unwrap();
    assert_eq!(names(&taken), [odd]);
    assert_eq!(fixture.store.ack(odd, receipts(&taken)).await.unwrap(), [true]);
}

async fn as_many_consumers_as_one_likes(fixture: &mut Fixture) {
    let many: Vec<_> = (0..40).map(|number| consumer(&format!("consumer {number}"))).collect();
    fixture.store.put_consumers(many.clone()).await.unwrap();
    fixture.stored(&["a", "b"].map(|name| sample(fixture.main, name).in_chat("1"))).await;
    for consumer in many {
        assert_eq!(claimed(fixture, &consumer.name).await, ["a", "b"]);
    }
}
