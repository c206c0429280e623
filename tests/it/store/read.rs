//! Reading the inbox: filters, times and pages.

use std::sync::Arc;
use std::time::Duration;

use inboxd::clock::Time;
use inboxd::event::{EventQuery, NewEvent, Sequence};
use inboxd::source::SourceKind;
use inboxd::store::Batch;
use uuid::Uuid;

use super::fixture::Fixture;
use super::sample::{ARRIVAL, Vary, all, as_read, sample};

super::conformance!(
    each_filter_narrows_and_all_hold_together,
    since_is_inclusive_and_until_is_not,
    pages_have_neither_gaps_nor_repeats,
    a_reader_at_the_end_misses_nothing_that_commits_late,
    bytes_bound_a_page_but_never_below_one_event,
    a_page_behind_a_number_that_is_gone,
    an_event_is_found_by_its_id_alone,
    the_store_says_that_it_is_ready,
);

fn text(value: &str) -> Option<String> {
    Some(value.to_owned())
}

/// The names of what a query finds, oldest first.
async fn found(fixture: &Fixture, query: EventQuery) -> String {
    let query = EventQuery { ascending: true, ..query };
    let page = fixture.store.events(query).await.unwrap();
    let names = page.events.into_iter().map(|event| event.attributes.external_id);
    names.collect::<Vec<_>>().join(" ")
}

async fn each_filter_narrows_and_all_hold_together(fixture: &mut Fixture) {
    let second = fixture.store.register_source(SourceKind::UnifyPort, "second").await.unwrap();
    let bot = fixture.store.register_source(SourceKind::Telegram, "main").await.unwrap();
    let batch = [
        sample(fixture.main, "a").in_chat("1"),
        sample(second, "b").in_chat("1"),
        sample(fixture.main, "c").in_chat("2").of_type("unifyport.message.deleted"),
        sample(bot, "d").channel("telegram").of_type("telegram.message"),
    ];
    fixture.stored(&batch).await;

    let subject = batch[0].attributes.subject.clone();
    let cases = [
        (all(), "a b c d"),
        (EventQuery { channel: text("whatsapp"), ..all() }, "a b c"),
        (EventQuery { channel: text("What%"), ..all() }, ""),
        (EventQuery { source: text("main"), ..all() }, "a c d"),
        (EventQuery { source: text("second"), ..all() }, "b"),
        (EventQuery { source: text("nobody' OR true --"), ..all() }, ""),
        (EventQuery { event_type: text("telegram.message"), ..all() }, "d"),
        (EventQuery { conversation: subject.clone(), ..all() }, "a b"),
        (EventQuery { conversation: text("unifyport/main/acc_1"), ..all() }, ""),
        (EventQuery { conversation: subject.clone(), source: text("main"), ..all() }, "a"),
        (EventQuery { channel: text("telegram"), source: text("second"), ..all() }, ""),
        (
            EventQuery {
                channel: text("whatsapp"),
                source: text("main"),
                event_type: text("unifyport.message.received"),
                conversation: subject,
                since: Some(ARRIVAL),
                until: Some(Time::from_micros(ARRIVAL.micros() + 1)),
                after: Some(0),
                ..all()
            },
            "a",
        ),
    ];
    for (query, expected) in cases {
        assert_eq!(found(fixture, query.clone()).await, expected, "{query:?}");
    }
    let newest = EventQuery { limit: 1, ..all() };
    let newest = fixture.store.events(newest).await.unwrap().events;
    let expected = as_read(&batch[3], newest[0].sequence, "main");
    assert_eq!(newest, [expected]);
}

async fn since_is_inclusive_and_until_is_not(fixture: &mut Fixture) {
    let batch = [1, 2, 3].map(|second| sample(fixture.main, &second.to_string()).later(second));
    fixture.stored(&batch).await;
    let at = |second: i64| Some(Time::from_micros(ARRIVAL.micros() + second * 1_000_000));
    for (since, until, expected) in [
        (at(2), None, "2 3"),
        (None, at(2), "1"),
        (at(1), at(3), "1 2"),
        (at(2), at(2), ""),
        (at(3), at(1), ""),
    ] {
        let query = EventQuery { since, until, ..all() };
        assert_eq!(found(fixture, query).await, expected, "{since:?} {until:?}");
    }
}

/// All sequences in pages of `limit`; `between` is done after each page.
async fn pages(fixture: &Fixture, query: EventQuery, between: impl AsyncFn()) -> Vec<Sequence> {
    let mut seen = Vec::new();
    loop {
        let query = EventQuery { after: seen.last().copied(), ..query.clone() };
        let limit = query.limit;
        let page = fixture.store.events(query).await.unwrap();
        assert!(page.events.len() <= limit);
        assert!(!page.events.is_empty() || !page.more, "more without an event to go on from");
        seen.extend(page.events.iter().map(|event| event.sequence));
        if !page.more {
            return seen;
        }
        between().await;
    }
}

async fn pages_have_neither_gaps_nor_repeats(fixture: &mut Fixture) {
    let some = |count: usize, name: &str| -> Vec<NewEvent> {
        (0..count)
            .map(|number| {
                let event = sample(fixture.main, &format!("{name} {number}"));
                event.in_chat(&(number % 3).to_string())
            })
            .collect()
    };
    let sequences = fixture.stored(&some(47, "first")).await;
    let down: Vec<_> = sequences.iter().rev().copied().collect();
    for limit in [1, 10, 47, 48] {
        let query = EventQuery { limit, ..all() };
        assert_eq!(pages(fixture, query.clone(), async || ()).await, down, "{limit}");
        let query = EventQuery { ascending: true, ..query };
        assert_eq!(pages(fixture, query, async || ()).await, sequences, "{limit}");
    }
    let conversation = some(2, "any")[1].attributes.subject.clone();
    let query = EventQuery { conversation, limit: 4, ascending: true, ..all() };
    let of_one: Vec<_> = sequences.iter().skip(1).step_by(3).copied().collect();
    assert_eq!(pages(fixture, query, async || ()).await, of_one);

    // What comes meanwhile is before the first page of a reader that goes down.
    let query = EventQuery { limit: 10, ..all() };
    let came = std::cell::Cell::new(0);
    let meanwhile = async || {
        came.set(came.get() + 1);
        fixture.stored(&some(3, &format!("meanwhile {}", came.get()))).await;
    };
    assert_eq!(pages(fixture, query, meanwhile).await, down);
}

async fn a_reader_at_the_end_misses_nothing_that_commits_late(fixture: &mut Fixture) {
    const EACH: usize = 40;
    let writers = (0..5).map(|writer| {
        let (store, main) = (fixture.store.clone(), fixture.main);
        tokio::spawn(async move {
            for number in 0..EACH {
                let events = (0..1 + writer)
                    .map(|place| sample(main, &format!("{writer} {number} {place}")))
                    .collect();
                store.append(Arc::new(Batch { events, checkpoint: None })).await.unwrap();
            }
        })
    });
    let writers: Vec<_> = writers.collect();
    let count = (1..=5).sum::<usize>() * EACH;
    let tail = async {
        let mut seen = Vec::new();
        while seen.len() < count {
            let after = seen.last().copied();
            let query = EventQuery { ascending: true, after, limit: 7, ..all() };
            let page = fixture.store.events(query).await.unwrap();
            seen.extend(page.events.iter().map(|event| event.sequence));
        }
        seen
    };
    let seen = tokio::time::timeout(Duration::from_secs(120), tail).await;
    let sequences = fixture.raw.numbers("SELECT seq FROM events ORDER BY seq").await;
    assert_eq!(seen.expect("the reader finds all"), sequences);
    for writer in writers {
        writer.await.unwrap();
    }
}

async fn bytes_bound_a_page_but_never_below_one_event(fixture: &mut Fixture) {
    let sized = |size: usize| sample(fixture.main, &size.to_string()).body(vec![b'x'; size]);
    let sequences = fixture.stored(&[10, 20, 500, 30, 0, 70].map(sized)).await;
    let page = async |after, max_bytes| {
        let query = EventQuery { ascending: true, after: Some(after), max_bytes, ..all() };
        let page = fixture.store.events(query).await.unwrap();
        (page.events.iter().map(|event| event.body.len()).collect::<Vec<_>>(), page.more)
    };
    assert_eq!(page(0, 100).await, (vec![10, 20], true));
    assert_eq!(page(sequences[1], 100).await, (vec![500], true));
    assert_eq!(page(sequences[2], 100).await, (vec![30, 0, 70], false), "exactly at the bound");
    assert_eq!(page(sequences[2], 0).await, (vec![30], true));
    for max_bytes in [0, 100, 530] {
        let query = EventQuery { max_bytes, ascending: true, ..all() };
        assert_eq!(pages(fixture, query, async || ()).await, sequences);
    }
}

async fn a_page_behind_a_number_that_is_gone(fixture: &mut Fixture) {
    let batch = ["a", "b", "c"].map(|name| sample(fixture.main, name));
    let sequences = fixture.stored(&batch).await;
    for table in ["work", "identities", "bodies"] {
        let sql = format!("DELETE FROM {table} WHERE event_seq = {}", sequences[1]);
        fixture.raw.execute(&sql).await;
    }
    fixture.raw.execute(&format!("DELETE FROM events WHERE seq = {}", sequences[1])).await;
    fixture.raw.recount_work().await;
    for (ascending, expected) in [(true, sequences[2]), (false, sequences[0])] {
        let query = EventQuery { after: Some(sequences[1]), ascending, limit: 9, ..all() };
        let found = fixture.store.events(query).await.unwrap();
        let found: Vec<_> = found.events.iter().map(|event| event.sequence).collect();
        assert_eq!(found, [expected]);
    }
    assert!(fixture.store.event(batch[1].id).await.unwrap().is_none());
}

async fn an_event_is_found_by_its_id_alone(fixture: &mut Fixture) {
    let event = sample(fixture.main, "a");
    let sequence = fixture.stored(std::slice::from_ref(&event)).await[0];
    let again = event.again();
    fixture.append(std::slice::from_ref(&again)).await;
    let expected = as_read(&event, sequence, "main");
    assert_eq!(fixture.detail(&event).await.event, expected);
    for unknown in [again.id, Uuid::nil(), Uuid::max()] {
        assert!(fixture.store.event(unknown).await.unwrap().is_none());
    }
}

async fn the_store_says_that_it_is_ready(fixture: &mut Fixture) {
    fixture.store.ready().await.unwrap();
    fixture.store.close().await;
    assert!(fixture.store.ready().await.is_err());
    fixture.reopen().await;
    fixture.store.ready().await.unwrap();
}
