//! Receivers and what they say of themselves.

use inboxd::clock::Time;
use inboxd::event::Appended;
use inboxd::source::{SourceKind, SourceState};

use super::fixture::Fixture;
use super::sample::{ARRIVAL, Vary, sample};

super::conformance!(
    a_source_has_one_number_for_good,
    what_a_source_says_of_itself_is_kept,
    receipts_are_counted_on_their_source,
    a_forgotten_source_comes_back_as_it_was,
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
