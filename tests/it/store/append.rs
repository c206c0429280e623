//! Storing events: exactly, once, and as work.

use bytes::Bytes;
use inboxd::event::{Appended, EventQuery, Flags};
use inboxd::work::Delivery;

use super::fixture::{Fixture, names, request};
use super::sample::{ARRIVAL, Vary, all, as_read, sample};

super::conformance!(
    an_event_is_stored_exactly,
    bytes_of_any_kind_are_kept,
    a_duplicate_is_counted_and_makes_no_work,
    other_bytes_under_one_identity_are_kept_once,
    duplicates_inside_a_batch,
    a_large_batch_with_repeats,
    receipts_at_the_same_time_make_one_event,
    attributes_that_the_database_does_not_take_are_left_out,
    an_empty_batch_is_nothing,
    numbers_of_removed_events_are_not_given_again,
    long_texts_are_kept,
);

async fn an_event_is_stored_exactly(fixture: &mut Fixture) {
    let mut event = sample(fixture.main, "a").in_chat("1");
    event.flags = Flags::ID_MISMATCH | Flags::STALE;
    let mut plain = sample(fixture.main, "b");
    (plain.headers, plain.secret, plain.attributes.time) = (None, None, None);
    let sequences = fixture.stored(&[event.clone(), plain.clone()]).await;
    for (event, sequence) in [(&event, sequences[0]), (&plain, sequences[1])] {
        let detail = fixture.detail(event).await;
        assert_eq!(detail.event, as_read(event, sequence, "main"));
        assert_eq!((detail.receipts, detail.last_received_at), (1, ARRIVAL));
        assert_eq!((detail.first_secret, detail.flags), (event.secret, event.flags));
        assert_eq!(detail.headers, event.headers);
        assert!(detail.variants.is_empty());
        assert_eq!((detail.work.len(), detail.work[0].state), (1, "ready"));
    }
    let claimed = fixture.claim(10).await;
    let read: Vec<_> = claimed.into_iter().map(|delivery: Delivery| delivery.event).collect();
    let expected = [(&event, sequences[0]), (&plain, sequences[1])];
    assert_eq!(read, expected.map(|(event, sequence)| as_read(event, sequence, "main")));
}

async fn bytes_of_any_kind_are_kept(fixture: &mut Fixture) {
    let bodies: [Bytes; 6] = [
        Bytes::new(),
        Bytes::from_static(b"\0"),
        Bytes::from_static(b"{\"text\":\"\\u0000\"}\0 \xff\xfe\xc0\x80 \xed\xa0\x80"),
        (0..=255).collect(),
        Bytes::from_static(b"'; DROP TABLE events; -- \\x5c \r\n"),
        (0..1 << 20).map(|place: u32| (place.wrapping_mul(2_654_435_761) >> 13) as u8).collect(),
    ];
    let events: Vec<_> = bodies
        .iter()
        .enumerate()
        .map(|(number, body)| sample(fixture.main, &number.to_string()).body(body.clone()))
        .collect();
    let sequences = fixture.stored(&events).await;
    let query = EventQuery { ascending: true, limit: 10, ..all() };
    let read = fixture.store.events(query).await.unwrap().events;
    let claimed = fixture.claim(10).await;
    for (place, event) in events.iter().enumerate() {
        let expected = as_read(event, sequences[place], "main");
        assert_eq!(fixture.detail(event).await.event, expected);
        assert_eq!(read[place], expected);
        assert_eq!(claimed[place].event, expected);
    }
}

async fn a_duplicate_is_counted_and_makes_no_work(fixture: &mut Fixture) {
    let event = sample(fixture.main, "a").in_chat("1");
    let sequence = fixture.stored(std::slice::from_ref(&event)).await[0];
    for (seconds, last) in [(30, 30), (10, 30), (40, 40)] {
        let mut again = event.again().later(seconds);
        again.flags = Flags::STALE;
        assert_eq!(fixture.append(&[again]).await, [Appended::Duplicate(sequence)]);
        let detail = fixture.detail(&event).await;
        assert_eq!(detail.last_received_at, event.clone().later(last).received_at);
        assert_eq!(detail.flags, Flags::STALE);
    }
    let detail = fixture.detail(&event).await;
    assert_eq!((detail.receipts, detail.variants.len(), detail.work.len()), (4, 0, 1));
    assert_eq!(detail.event, as_read(&event, sequence, "main"));

    let claimed = fixture.claim(10).await;
    assert_eq!(names(&claimed), ["a"]);
    assert_eq!(fixture.append(&[event.again()]).await, [Appended::Duplicate(sequence)]);
    assert_eq!(fixture.ack(&claimed).await, [true]);
    assert_eq!(fixture.append(&[event.again()]).await, [Appended::Duplicate(sequence)]);
    assert_eq!(names(&fixture.claim(10).await), [""; 0]);
}

async fn other_bytes_under_one_identity_are_kept_once(fixture: &mut Fixture) {
    let event = sample(fixture.main, "a");
    let sequence = fixture.stored(std::slice::from_ref(&event)).await[0];
    let other = event.again().body("other \0 bytes").later(5);
    let third = event.again().body("third").later(6);
    for one in [other.clone(), other.again().later(9), third, other.again().later(7)] {
        assert_eq!(fixture.append(&[one]).await, [Appended::Conflict(sequence)]);
    }
    let detail = fixture.detail(&event).await;
    assert_eq!(detail.event, as_read(&event, sequence, "main"), "the first bytes stay");
    assert_eq!((detail.receipts, detail.flags), (5, Flags::CONFLICT));
    assert_eq!(detail.last_received_at, event.clone().later(9).received_at);
    let kept: Vec<_> = detail.variants.iter().map(|one| (one.receipts, &one.body[..])).collect();
    assert_eq!(kept, [(3, &b"other \0 bytes"[..]), (1, b"third")]);
    assert_eq!(detail.variants[0].received_at, other.received_at);
    assert_eq!(detail.variants[0].body_hash, other.body_hash);
    assert_eq!(fixture.append(&[event.again()]).await, [Appended::Duplicate(sequence)]);
    assert_eq!(names(&fixture.claim(10).await), ["a"], "one receipt, one piece of work");
}

async fn duplicates_inside_a_batch(fixture: &mut Fixture) {
    let a = sample(fixture.main, "a").in_chat("1");
    let b = sample(fixture.main, "b").in_chat("1");
    let other = a.again().body("other");
    let batch =
        [a.clone(), b.clone(), a.again(), other.clone(), b.again(), other.again(), a.again()];
    let appended = fixture.append(&batch).await;
    let (Appended::Stored(one), Appended::Stored(two)) = (appended[0], appended[1]) else {
        panic!("{appended:?}")
    };
    assert!(one < two);
    let rest = [
        Appended::Duplicate(one),
        Appended::Conflict(one),
        Appended::Duplicate(two),
        Appended::Conflict(one),
        Appended::Duplicate(one),
    ];
    assert_eq!(appended[2..], rest);
    let detail = fixture.detail(&a).await;
    assert_eq!((detail.receipts, detail.flags), (5, Flags::CONFLICT));
    assert_eq!((detail.variants.len(), detail.variants[0].receipts), (1, 2));
    assert_eq!(fixture.detail(&b).await.receipts, 2);
    assert_eq!(names(&fixture.claim(10).await), ["a", "b"]);
    let source = &fixture.store.sources().await.unwrap()[0];
    assert_eq!((source.stored, source.duplicates, source.conflicts), (2, 3, 2));
}

async fn a_large_batch_with_repeats(fixture: &mut Fixture) {
    let name = |number: usize| format!("event {number}");
    let first: Vec<_> =
        (0..200).step_by(2).map(|number| sample(fixture.main, &name(number))).collect();
    fixture.stored(&first).await;
    let second: Vec<_> = (0..700).map(|number| sample(fixture.main, &name(number % 600))).collect();
    let appended = fixture.append(&second).await;
    let mut last = 0;
    for (number, one) in appended.iter().enumerate() {
        let known = number >= 600 || (number < 200 && number % 2 == 0);
        match one {
            Appended::Stored(sequence) if !known => {
                assert!(*sequence > last, "numbers are given in the order of the batch");
                last = *sequence;
            }
            Appended::Duplicate(_) if known => {}
            other => panic!("{number}: {other:?}"),
        }
    }
    assert_eq!(appended[600..].len(), 100);
    assert!((600..700).all(|place| appended[place].sequence() == appended[place - 600].sequence()));
    assert_eq!(fixture.raw.number("SELECT count(*) FROM work").await, 600);
}

async fn receipts_at_the_same_time_make_one_event(fixture: &mut Fixture) {
    let deliveries = (0..160).map(|number: usize| {
        let event = sample(fixture.main, &format!("event {}", number % 8)).in_chat("1");
        let store = fixture.store.clone();
        tokio::spawn(async move {
            let batch = inboxd::store::Batch { events: vec![event], checkpoint: None };
            store.append(std::sync::Arc::new(batch)).await.unwrap()[0]
        })
    });
    let mut stored = Vec::new();
    for delivery in deliveries.collect::<Vec<_>>() {
        if let Appended::Stored(sequence) = delivery.await.unwrap() {
            stored.push(sequence);
        }
    }
    stored.sort_unstable();
    assert_eq!(stored.len(), 8);
    let claimed = fixture.claim(100).await;
    let sequences: Vec<_> = claimed.iter().map(|delivery| delivery.event.sequence).collect();
    assert_eq!(sequences, stored);
    for delivery in &claimed {
        let detail = fixture.store.event(delivery.event.id).await.unwrap().unwrap();
        assert_eq!(detail.receipts, 20);
    }
}

async fn attributes_that_the_database_does_not_take_are_left_out(fixture: &mut Fixture) {
    let odd = sample(fixture.main, "odd").in_chat("1").of_type("nul\0here").body("odd \0");
    let batch = [
        sample(fixture.main, "before").in_chat("1"),
        odd.clone(),
        sample(fixture.main, "after").in_chat("1"),
    ];
    let sequences = fixture.stored(&batch).await;
    let detail = fixture.detail(&odd).await;
    assert_eq!((detail.event.sequence, &detail.event.body[..]), (sequences[1], &b"odd \0"[..]));
    // SQLite takes it as it is.
    if !fixture.raw.is_sqlite() || detail.event.attributes.event_type != "nul\0here" {
        assert_eq!(detail.event.attributes.event_type, "unifyport.unknown");
        assert_eq!(detail.event.attributes.subject, None);
        assert_eq!(detail.flags, Flags::UNREADABLE);
    }
    for (place, event) in [(0, &batch[0]), (2, &batch[2])] {
        let expected = as_read(event, sequences[place], "main");
        assert_eq!(fixture.detail(event).await.event, expected);
    }
    assert_eq!(fixture.append(&[odd.again()]).await, [Appended::Duplicate(sequences[1])]);
    let claimed = fixture.claim(10).await;
    let claimed: Vec<_> = claimed.iter().map(|delivery| delivery.event.sequence).collect();
    assert_eq!(claimed, sequences);
}

async fn an_empty_batch_is_nothing(fixture: &mut Fixture) {
    assert_eq!(fixture.append(&[]).await, []);
    assert!(fixture.store.claim("default", request(10)).await.unwrap().is_empty());
}

async fn numbers_of_removed_events_are_not_given_again(fixture: &mut Fixture) {
    let events = ["a", "b"].map(|name| sample(fixture.main, name));
    let last = fixture.stored(&events).await[1];
    for table in ["work", "lanes", "identities", "bodies", "events"] {
        fixture.raw.execute(&format!("DELETE FROM {table}")).await;
    }
    fixture.raw.recount_work().await;
    fixture.reopen().await;
    assert!(fixture.stored(&[sample(fixture.main, "c")]).await[0] > last);
}

async fn long_texts_are_kept(fixture: &mut Fixture) {
    let mut event = sample(fixture.main, "a");
    let long: String = "длинно \u{10ffff} ".repeat(5000);
    event.attributes.subject = Some(long.clone());
    event.attributes.external_id = long.clone();
    event.attributes.event_type = long.clone();
    event.headers = Some(long);
    event.identity.key = vec![0xff; 64];
    event.identity.alias = Some(vec![0; 64]);
    let sequence = fixture.stored(std::slice::from_ref(&event)).await[0];
    let detail = fixture.detail(&event).await;
    assert_eq!(detail.event, as_read(&event, sequence, "main"));
    assert_eq!(detail.headers, event.headers);
    assert_eq!(fixture.append(&[event.again()]).await, [Appended::Duplicate(sequence)]);
}
