//! Receivers, what they say of themselves, and a poller's place.

use inboxd::clock::Time;
use inboxd::event::Appended;
use inboxd::source::{SourceKind, SourceState};
use inboxd::store::{Checkpoint, StoreError};

use super::fixture::{Fixture, names};
use super::sample::{ARRIVAL, Vary, sample};

super::conformance!(
    a_source_has_one_number_for_good,
    what_a_source_says_of_itself_is_kept,
    receipts_are_counted_on_their_source,
    a_forgotten_source_comes_back_as_it_was,
    events_and_the_new_place_are_one_commit,
    without_the_lease_nothing_is_committed,
    a_place_of_a_source_without_a_lease_is_refused,
    what_is_refused_harms_nobody_beside_it,
);

async fn a_source_has_one_number_for_good(fixture: &mut Fixture) {
    let store = fixture.store.clone();
    let bot = store.register_source(SourceKind::Telegram, "main").await.unwrap();
    assert_ne!(bot, fixture.main, "names are unique within their kind");
    let again = store.register_source(SourceKind::Telegram, "main").await.unwrap();
    assert_eq!(again, bot);
    let other = store.register_source(SourceKind::Telegram, "a bot \u{1f916}").await.unwrap();
    fixture.reopen().await;
    let store = &fixture.store;
    assert_eq!(store.register_source(SourceKind::UnifyPort, "main").await.unwrap(), fixture.main);
    let sources = store.sources().await.unwrap();
    let listed: Vec<_> =
        sources.iter().map(|source| (source.kind.name(), &*source.name, source.id)).collect();
    let expected = [
        ("telegram", "a bot \u{1f916}", other),
        ("telegram", "main", bot),
        ("unifyport", "main", fixture.main),
    ];
    assert_eq!(listed, expected);
    assert_eq!(sources[1].state, SourceState::default());
    assert_eq!((&sources[1].poller, sources[1].last_received_at), (&None, None));
}

async fn what_a_source_says_of_itself_is_kept(fixture: &mut Fixture) {
    let state = SourceState {
        name: "unauthorized".to_owned(),
        detail: "Telegram refuses the token; set a new one".to_owned(),
        since: Some(Time::from_micros(1_780_000_000_000_001)),
    };
    fixture.store.tell_source(fixture.main, state.clone()).await.unwrap();
    assert_eq!(fixture.store.sources().await.unwrap()[0].state, state);
    fixture.store.tell_source(fixture.main, SourceState::default()).await.unwrap();
    assert_eq!(fixture.store.sources().await.unwrap()[0].state, SourceState::default());
}

async fn receipts_are_counted_on_their_source(fixture: &mut Fixture) {
    let second = fixture.store.register_source(SourceKind::UnifyPort, "second").await.unwrap();
    let event = sample(fixture.main, "a");
    let batch = [event.clone().later(9), event.again().later(4), sample(second, "a").later(2)];
    fixture.append(&batch).await;
    fixture.append(&[event.again().body("other").later(7), event.again().later(5)]).await;
    let sources = fixture.store.sources().await.unwrap();
    let counts = sources.iter().map(|source| (source.stored, source.duplicates, source.conflicts));
    assert_eq!(counts.collect::<Vec<_>>(), [(1, 2, 1), (1, 0, 0)]);
    let after = |seconds: i64| Some(Time::from_micros(ARRIVAL.micros() + seconds * 1_000_000));
    assert_eq!(sources[0].last_received_at, after(9));
    assert_eq!(sources[1].last_received_at, after(2));
}

async fn a_forgotten_source_comes_back_as_it_was(fixture: &mut Fixture) {
    let store = fixture.store.clone();
    let bot = store.register_source(SourceKind::Telegram, "bot").await.unwrap();
    let event = sample(bot, "a");
    let sequence = fixture.stored(std::slice::from_ref(&event)).await[0];
    fixture.raw.lease(bot, [1; 16]).await;
    let state = SourceState { name: "ok".to_owned(), ..SourceState::default() };
    store.tell_source(bot, state).await.unwrap();
    store.forget_source(bot).await.unwrap();
    let names = store.sources().await.unwrap().into_iter().map(|source| source.name);
    assert_eq!(names.collect::<Vec<_>>(), ["main"]);
    assert_eq!(fixture.raw.number("SELECT count(*) FROM pollers").await, 0);
    assert_eq!(fixture.detail(&event).await.event.source, "bot", "its events stay");

    assert_eq!(store.register_source(SourceKind::Telegram, "bot").await.unwrap(), bot);
    let sources = store.sources().await.unwrap();
    assert_eq!((&*sources[0].name, sources[0].stored), ("bot", 1));
    assert_eq!((&sources[0].poller, &sources[0].account), (&None, &None));
    assert_eq!(sources[0].state, SourceState::default());
    assert_eq!(fixture.append(&[event.again()]).await, [Appended::Duplicate(sequence)]);
}

async fn events_and_the_new_place_are_one_commit(fixture: &mut Fixture) {
    let bot = fixture.store.register_source(SourceKind::Telegram, "bot").await.unwrap();
    let lease = [7; 16];
    fixture.raw.lease(bot, lease).await;
    let place = |next_offset| Checkpoint {
        source: bot,
        lease,
        next_offset,
        ok_at: None,
        pending: None,
        gaps: Vec::new(),
    };
    let offset =
        async || fixture.store.sources().await.unwrap()[0].poller.clone().unwrap().next_offset;
    let batch = [sample(bot, "a"), sample(bot, "b")];
    let appended = fixture.checkpoint(&batch, place(Some(43))).await.unwrap();
    assert!(appended.iter().all(|one| matches!(one, Appended::Stored(_))));
    assert_eq!(offset().await, Some(43));
    // A restart of the sequence: lower than before.
    fixture.checkpoint(&[sample(bot, "c")], place(Some(7))).await.unwrap();
    assert_eq!(offset().await, Some(7));
    fixture.checkpoint(&[sample(bot, "d")], place(None)).await.unwrap();
    assert_eq!(offset().await, Some(7), "none leaves it as it is");
    assert_eq!(fixture.checkpoint(&[], place(Some(2_000_000_000))).await.unwrap(), []);
    assert_eq!(offset().await, Some(2_000_000_000));
    assert_eq!(names(&fixture.claim(10).await), ["a", "b", "c", "d"]);
}

async fn without_the_lease_nothing_is_committed(fixture: &mut Fixture) {
    let bot = fixture.store.register_source(SourceKind::Telegram, "bot").await.unwrap();
    fixture.raw.lease(bot, [7; 16]).await;
    let place = |token: u8, next_offset| Checkpoint {
        source: bot,
        lease: [token; 16],
        next_offset: Some(next_offset),
    };
    fixture.checkpoint(&[sample(bot, "a")], place(7, 10)).await.unwrap();
    fixture.raw.lease(bot, [8; 16]).await;
    let batch = [sample(bot, "a"), sample(bot, "b")];
    for next_offset in [20, 10] {
        let lost = fixture.checkpoint(&batch, place(7, next_offset)).await;
        assert!(matches!(lost, Err(StoreError::LeaseLost)), "{lost:?}");
    }
    let source = &fixture.store.sources().await.unwrap()[0];
    assert_eq!((source.next_offset, source.stored, source.duplicates), (Some(10), 1, 0));
    assert!(fixture.store.event(batch[1].id).await.unwrap().is_none());
    assert_eq!(names(&fixture.claim(10).await), ["a"]);
    let appended = fixture.checkpoint(&batch, place(8, 20)).await.unwrap();
    assert!(matches!(appended[..], [Appended::Duplicate(_), Appended::Stored(_)]));
}

async fn a_place_of_a_source_without_a_lease_is_refused(fixture: &mut Fixture) {
    let bot = fixture.store.register_source(SourceKind::Telegram, "bot").await.unwrap();
    let place = Checkpoint { source: bot, lease: [0; 16], next_offset: Some(1) };
    let lost = fixture.checkpoint(&[sample(bot, "a")], place).await;
    assert!(matches!(lost, Err(StoreError::LeaseLost)), "{lost:?}");
    assert_eq!(names(&fixture.claim(10).await), [""; 0]);
}

async fn what_is_refused_harms_nobody_beside_it(fixture: &mut Fixture) {
    let bot = fixture.store.register_source(SourceKind::Telegram, "bot").await.unwrap();
    fixture.raw.lease(bot, [7; 16]).await;
    let place = Checkpoint { source: bot, lease: [8; 16], next_offset: Some(1) };
    let appends = (0..60).map(|number| {
        let (fixture, place) = (&*fixture, place.clone());
        async move {
            let event = [sample(bot, &format!("event {number}"))];
            if number % 3 == 0 {
                let lost = fixture.checkpoint(&event, place).await;
                assert!(matches!(lost, Err(StoreError::LeaseLost)), "{lost:?}");
            } else {
                fixture.stored(&event).await;
            }
        }
    });
    futures_util::future::join_all(appends).await;
    assert_eq!(fixture.claim(1000).await.len(), 40);
}
