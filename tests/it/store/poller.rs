//! The one poller of a bot: its lease, its place, and what may have been lost.

use inboxd::clock::Time;
use inboxd::event::{Appended, SourceId};
use inboxd::source::{Bound, Gap, GapReason, Leased, NewGap, PollerLease, SourceKind};
use inboxd::store::{Checkpoint, Store, StoreError};

use super::fixture::{Fixture, LEASE, names, place};
use super::sample::sample;

super::conformance!(
    events_and_the_new_place_are_one_commit,
    without_the_lease_nothing_is_committed,
    a_place_of_a_source_without_a_lease_is_refused,
    what_is_refused_harms_nobody_beside_it,
    one_holds_the_lease_at_a_time,
    the_next_holder_goes_on_where_the_last_one_was,
    a_holder_that_is_gone_is_followed_by_another,
    a_lease_is_renewed_by_its_holder_alone,
    a_bot_has_one_name_and_one_account,
    identities_are_known_or_not,
    possible_losses_are_kept_with_the_place,
);

async fn bot(fixture: &Fixture) -> SourceId {
    fixture.store.register_source(SourceKind::Telegram, "bot").await.unwrap()
}

async fn lease(store: &dyn Store, bot: SourceId, holder: &str) -> Result<PollerLease, String> {
    match store.lease_poller(bot, holder, LEASE).await.unwrap() {
        Leased::Mine(lease) => Ok(lease),
        Leased::Held { holder } => Err(holder.unwrap_or_default()),
    }
}

async fn one_holds_the_lease_at_a_time(fixture: &mut Fixture) {
    let bot = bot(fixture).await;
    let other_bot = fixture.store.register_source(SourceKind::Telegram, "two").await.unwrap();
    let other = fixture.open_again(false).await.unwrap();
    let first = lease(&*fixture.store, bot, "first").await.unwrap();
    for store in [&fixture.store, &other] {
        assert_eq!(lease(&**store, bot, "second").await.unwrap_err(), "first");
    }
    lease(&*other, other_bot, "second").await.unwrap();
    for store in [&fixture.store, &other] {
        store.release_poller(bot, [0; 16]).await.unwrap();
        assert_eq!(lease(&**store, bot, "second").await.unwrap_err(), "first");
    }
    fixture.store.release_poller(bot, first.token).await.unwrap();
    let second = lease(&*other, bot, "second").await.unwrap();
    assert_ne!(second.token, first.token);
    fixture.store.release_poller(bot, first.token).await.unwrap();
    assert_eq!(lease(&*fixture.store, bot, "first").await.unwrap_err(), "second");
    let late = fixture.checkpoint(&[sample(bot, "a")], place(bot, first.token, Some(1))).await;
    assert!(matches!(late, Err(StoreError::LeaseLost)), "{late:?}");
    fixture.checkpoint(&[sample(bot, "a")], place(bot, second.token, Some(1))).await.unwrap();
    other.close().await;
}

async fn the_next_holder_goes_on_where_the_last_one_was(fixture: &mut Fixture) {
    let bot = bot(fixture).await;
    let first = lease(&*fixture.store, bot, "first").await.unwrap();
    assert_eq!((first.poller.next_offset, first.poller.last_ok_at), (None, None));
    assert_eq!((first.poller.pending, first.poller.holder.as_deref()), (None, Some("first")));
    let ok_at = Some(Time::from_micros(1_780_000_000_000_001));
    let full = Checkpoint { ok_at, pending: Some(9), ..place(bot, first.token, Some(43)) };
    fixture.checkpoint(&[], full).await.unwrap();
    fixture.checkpoint(&[], place(bot, first.token, None)).await.unwrap();
    fixture.store.release_poller(bot, first.token).await.unwrap();
    fixture.reopen().await;
    let poller = fixture.store.sources().await.unwrap()[0].poller.clone().unwrap();
    assert_eq!((poller.next_offset, poller.pending, poller.holder), (Some(43), Some(9), None));
    let second = lease(&*fixture.store, bot, "second").await.unwrap().poller;
    assert_eq!((second.next_offset, second.last_ok_at), (Some(43), ok_at));
    assert_eq!((second.pending, second.holder.as_deref()), (Some(9), Some("second")));
}

async fn a_holder_that_is_gone_is_followed_by_another(fixture: &mut Fixture) {
    let bot = bot(fixture).await;
    let gone = fixture.open_again(false).await.unwrap();
    let first = lease(&*gone, bot, "first").await.unwrap();
    gone.close().await;
    drop(gone);
    // On SQLite its lock ended with it; on PostgreSQL the lease runs out.
    if !fixture.raw.is_sqlite() {
        fixture.advance(LEASE / 2).await;
        assert_eq!(lease(&*fixture.store, bot, "second").await.unwrap_err(), "first");
        fixture.advance(LEASE / 2).await;
    }
    let second = lease(&*fixture.store, bot, "second").await.unwrap();
    assert_ne!(first.token, second.token);
}

async fn a_lease_is_renewed_by_its_holder_alone(fixture: &mut Fixture) {
    let bot = bot(fixture).await;
    let held = lease(&*fixture.store, bot, "first").await.unwrap();
    for round in 1..=3 {
        fixture.advance(LEASE / 3 * 2).await;
        let renewed = place(bot, held.token, Some(round));
        fixture.store.renew_poller(renewed, LEASE).await.unwrap();
        assert_eq!(lease(&*fixture.store, bot, "second").await.unwrap_err(), "first");
    }
    let lost = fixture.store.renew_poller(place(bot, [0; 16], Some(9)), LEASE).await;
    assert!(matches!(lost, Err(StoreError::LeaseLost)), "{lost:?}");
    let poller = fixture.store.sources().await.unwrap()[0].poller.clone().unwrap();
    assert_eq!(poller.next_offset, Some(3));
    fixture.store.forget_source(bot).await.unwrap();
    let lost = fixture.store.renew_poller(place(bot, held.token, None), LEASE).await;
    assert!(matches!(lost, Err(StoreError::LeaseLost)), "{lost:?}");
}

async fn a_bot_has_one_name_and_one_account(fixture: &mut Fixture) {
    let one = bot(fixture).await;
    let store = &fixture.store;
    let two = store.register_source(SourceKind::Telegram, "two").await.unwrap();
    for _ in 0..2 {
        assert_eq!(store.bind_account(one, "7123456789").await.unwrap(), Bound::Same);
    }
    let other = store.bind_account(one, "42").await.unwrap();
    assert_eq!(other, Bound::OtherAccount("7123456789".to_owned()));
    let other = store.bind_account(two, "7123456789").await.unwrap();
    assert_eq!(other, Bound::OtherName("bot".to_owned()));
    assert_eq!(store.bind_account(two, "42").await.unwrap(), Bound::Same);
    let accounts = store.sources().await.unwrap().into_iter().map(|source| source.account);
    let expected = [Some("7123456789".to_owned()), Some("42".to_owned()), None];
    assert_eq!(accounts.collect::<Vec<_>>(), expected);
    store.forget_source(one).await.unwrap();
    let three = store.register_source(SourceKind::Telegram, "three").await.unwrap();
    assert_eq!(store.bind_account(three, "7123456789").await.unwrap(), Bound::Same);
}

async fn identities_are_known_or_not(fixture: &mut Fixture) {
    let bot = bot(fixture).await;
    let events = ["a", "b"].map(|name| sample(bot, name));
    fixture.stored(&events).await;
    let key = |name: &str| sample(bot, name).identity.key;
    let keys = vec![key("b"), key("c"), key("a"), key("b"), Vec::new()];
    let known = fixture.store.known(bot, keys.clone()).await.unwrap();
    assert_eq!(known, [true, false, true, true, false]);
    assert_eq!(fixture.store.known(fixture.main, keys).await.unwrap(), [false; 5]);
    assert_eq!(fixture.store.known(bot, Vec::new()).await.unwrap(), [false; 0]);
}

async fn possible_losses_are_kept_with_the_place(fixture: &mut Fixture) {
    let bot = bot(fixture).await;
    let token = lease(&*fixture.store, bot, "first").await.unwrap().token;
    let at = |second: i64| Time::from_micros(1_780_000_000_000_000 + second * 1_000_000);
    let hole = NewGap {
        reason: GapReason::Hole,
        ids: Some((7, 9)),
        from: None,
        to: at(1),
        detail: "ids 7 to 9 are missing".to_owned(),
    };
    let silence = NewGap {
        reason: GapReason::Silence,
        ids: None,
        from: Some(at(0)),
        detail: "no poll went well".to_owned(),
        ..hole.clone()
    };
    let restart = NewGap { reason: GapReason::Restart, ..hole.clone() };
    let gaps = vec![hole.clone(), silence.clone()];
    let with_gaps = |lease, gaps| Checkpoint { gaps, ..place(bot, lease, Some(10)) };
    let lost = fixture.checkpoint(&[], with_gaps([0; 16], gaps.clone())).await;
    assert!(matches!(lost, Err(StoreError::LeaseLost)), "{lost:?}");
    fixture.checkpoint(&[sample(bot, "a")], with_gaps(token, gaps)).await.unwrap();
    let renewed = with_gaps(token, vec![restart.clone()]);
    fixture.store.renew_poller(renewed, LEASE).await.unwrap();

    let store = &fixture.store;
    let all = store.gaps(None, 10).await.unwrap();
    let noticed: Vec<&NewGap> = all.iter().map(|gap| &gap.noticed).collect();
    assert_eq!(noticed, [&restart, &silence, &hole]);
    assert!(all.iter().all(|gap| gap.source == "bot" && gap.acknowledged_at.is_none()));
    assert_eq!(store.gaps(Some("bot"), 2).await.unwrap(), all[..2]);
    assert_eq!(store.gaps(Some("main"), 10).await.unwrap(), []);
    let open = async || store.sources().await.unwrap()[0].open_gaps;
    assert_eq!(open().await, 3);
    assert_eq!(store.acknowledge_gaps(Some(Vec::new())).await.unwrap(), 0);
    assert_eq!(store.acknowledge_gaps(Some(vec![all[1].id, 4711])).await.unwrap(), 1);
    assert_eq!(open().await, 2);
    assert_eq!(store.acknowledge_gaps(None).await.unwrap(), 2);
    assert_eq!(store.acknowledge_gaps(None).await.unwrap(), 0);
    let all: Vec<Gap> = store.gaps(None, 10).await.unwrap();
    assert!(all.iter().all(|gap| gap.acknowledged_at.is_some()));
    assert_eq!(open().await, 0);
}

async fn events_and_the_new_place_are_one_commit(fixture: &mut Fixture) {
    let bot = bot(fixture).await;
    let lease = [7; 16];
    fixture.raw.lease(bot, lease).await;
    let place = |next_offset| place(bot, lease, next_offset);
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
    let bot = bot(fixture).await;
    fixture.raw.lease(bot, [7; 16]).await;
    let place = |token: u8, next_offset| place(bot, [token; 16], Some(next_offset));
    fixture.checkpoint(&[sample(bot, "a")], place(7, 10)).await.unwrap();
    fixture.raw.lease(bot, [8; 16]).await;
    let batch = [sample(bot, "a"), sample(bot, "b")];
    for next_offset in [20, 10] {
        let lost = fixture.checkpoint(&batch, place(7, next_offset)).await;
        assert!(matches!(lost, Err(StoreError::LeaseLost)), "{lost:?}");
    }
    let source = &fixture.store.sources().await.unwrap()[0];
    assert_eq!(source.poller.as_ref().unwrap().next_offset, Some(10));
    assert_eq!((source.stored, source.duplicates), (1, 0));
    assert!(fixture.store.event(batch[1].id).await.unwrap().is_none());
    assert_eq!(names(&fixture.claim(10).await), ["a"]);
    let appended = fixture.checkpoint(&batch, place(8, 20)).await.unwrap();
    assert!(matches!(appended[..], [Appended::Duplicate(_), Appended::Stored(_)]));
}

async fn a_place_of_a_source_without_a_lease_is_refused(fixture: &mut Fixture) {
    let bot = bot(fixture).await;
    let place = place(bot, [0; 16], Some(1));
    let lost = fixture.checkpoint(&[sample(bot, "a")], place).await;
    assert!(matches!(lost, Err(StoreError::LeaseLost)), "{lost:?}");
    assert_eq!(names(&fixture.claim(10).await), [""; 0]);
}

async fn what_is_refused_harms_nobody_beside_it(fixture: &mut Fixture) {
    let bot = bot(fixture).await;
    fixture.raw.lease(bot, [7; 16]).await;
    let place = place(bot, [8; 16], Some(1));
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
