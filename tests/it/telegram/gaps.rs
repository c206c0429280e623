//! Losses are recorded, not hidden, and nothing is recorded that was no loss.

use std::collections::BTreeSet;

use inboxd::clock::{Clock, Time};
use inboxd::receive::telegram::Pace;
use inboxd::simulate::bot_api::change::Change;
use inboxd::simulate::bot_api::fault::{Action, Net};
use inboxd::simulate::bot_api::selector::Selector;
use inboxd::simulate::bot_api::update::Update;
use inboxd::source::GapReason;

use super::database::Database;
use super::rig::{BOT, Ingester, NAME, Rig, SCALE, seconds};

/// Every id that a hole in the store covers.
pub(super) async fn missed(ingester: &Ingester) -> BTreeSet<i64> {
    let gaps = ingester.gaps().await.into_iter();
    let holes = gaps.filter(|gap| gap.noticed.reason == GapReason::Hole);
    holes.flat_map(|gap| gap.noticed.ids.map(|(from, to)| from..=to).unwrap()).collect()
}

/// Every id that left the server's queue between two that the client received.
pub(super) fn gone(rig: &Rig) -> BTreeSet<i64> {
    rig.fake.journal().gaps(BOT).into_iter().flatten().flatten().map(i64::from).collect()
}

#[tokio::test]
async fn holes_are_what_expired_was_stolen_or_dropped() {
    for database in Database::both().await {
        let rig = Rig::new(database).await;
        let ingester = rig.start().await;
        let changes = [
            vec![],
            vec![Change::Thief(3)],
            vec![Change::ExpireNow],
            vec![Change::Drop],
            vec![Change::Thief(1), Change::Thief(2)],
        ];
        for round in 0..3 {
            for changes in &changes {
                rig.push_texts(4);
                rig.drained().await;
                // All at once, or the held poll would be answered in between.
                rig.fake.act(|world, now| {
                    for n in 0..6 {
                        world.push(BOT, &Update::text(9, n, "perhaps gone"), now);
                    }
                    for change in changes {
                        world.change(BOT, change, now);
                    }
                    // An update in the middle that nobody fetches in time.
                    world.push(BOT, &Update::text(9, 7, "short").living(1e-9), now);
                    for n in 0..round {
                        world.push(BOT, &Update::text(9, 10 + n, "stays"), now);
                    }
                });
            }
        }
        rig.push_texts(1);
        rig.drained().await;
        let missed = missed(&ingester).await;
        assert_eq!(missed, gone(&rig));
        assert!(missed.len() > 30, "{missed:?}");
        let source = ingester.source(NAME).await;
        assert_eq!(source.open_gaps, i64::try_from(ingester.gaps().await.len()).unwrap());
        ingester.stop().await;
        rig.assert_careful();
        rig.assert_delivered_is_stored().await;
    }
}

#[tokio::test]
async fn what_is_taken_while_nobody_polls_is_a_hole_at_the_next_start() {
    let rig = Rig::new(Database::sqlite()).await;
    let ingester = rig.start().await;
    rig.push_texts(3);
    rig.drained().await;
    ingester.stop().await;
    rig.fake.act(|world, now| {
        for n in 0..5 {
            world.push(BOT, &Update::text(9, n, "perhaps gone"), now);
        }
        world.change(BOT, &Change::Thief(2), now);
    });
    let ingester = rig.start().await;
    rig.drained().await;
    assert_eq!(missed(&ingester).await, gone(&rig));
    assert_eq!(gone(&rig).len(), 2);
    ingester.stop().await;
    rig.assert_careful();
}

#[tokio::test]
async fn answers_that_are_lost_or_come_twice_make_no_holes() {
    let mut rig = Rig::new(Database::sqlite()).await;
    rig.pace = Pace::scaled(SCALE);
    let ingester = rig.start().await;
    for net in [Net::Reset, Net::ResetInBody(30), Net::StallInBody(10), Net::Twice] {
        rig.push_texts(1);
        rig.drained().await;
        rig.fake.arm(Selector::polls().pattern(1, 2).times(3), Action::Net(net));
        rig.push_texts(120);
        rig.drained().await;
        rig.fake.clear_faults();
    }
    let gaps = ingester.gaps().await;
    assert!(gaps.iter().all(|gap| gap.noticed.reason == GapReason::Silence), "{gaps:?}");
    ingester.stop().await;
    rig.assert_careful();
    rig.assert_pushed_is_stored().await;
}

#[tokio::test]
async fn a_silence_longer_than_an_update_lives_is_told_once_with_the_kinds() {
    for (silence, kinds) in [(20.0, 0), (31.0, 1), (200.0, 2), (700.0, 3), (90_000.0, 4)] {
        let rig = Rig::new(Database::sqlite()).await;
        let clock = Clock::manual(Time::from_micros(1_790_000_000_000_000));
        let ingester = rig.start_with(&[rig.bot()], clock.clone()).await;
        rig.push_texts(1);
        rig.drained().await;
        rig.fake.refuse_connections().await;
        rig.fake.break_connections();
        ingester.state_is("network").await;
        let before = clock.now();
        clock.advance(seconds(silence));
        rig.push_texts(1);
        rig.fake.accept_connections().await;
        rig.drained().await;
        ingester.state_is("ok").await;
        rig.push_texts(1);
        rig.drained().await;
        let gaps = ingester.gaps().await;
        assert_eq!(gaps.len(), usize::from(kinds > 0), "{silence}: {gaps:?}");
        if let Some(gap) = gaps.first() {
            let noticed = &gap.noticed;
            assert_eq!((noticed.reason, noticed.ids), (GapReason::Silence, None));
            assert_eq!((noticed.from, noticed.to), (Some(before), clock.now()));
            assert!(noticed.detail.contains("inline queries"), "{}", noticed.detail);
            assert_eq!(noticed.detail.matches(';').count(), kinds - 1, "{}", noticed.detail);
        }
        ingester.stop().await;
        rig.assert_careful();
    }
}

#[tokio::test]
async fn a_silence_lasts_over_a_stop_and_is_told_at_the_next_start_even_if_nothing_comes() {
    let rig = Rig::new(Database::sqlite()).await;
    let clock = Clock::manual(Time::from_micros(1_790_000_000_000_000));
    let ingester = rig.start_with(&[rig.bot()], clock.clone()).await;
    rig.push_texts(1);
    rig.drained().await;
    ingester.stop().await;
    clock.advance(seconds(60.0));
    let ingester = rig.start_with(&[rig.bot()], clock.clone()).await;
    rig.drained().await;
    ingester.state_is("ok").await;
    let reasons: Vec<GapReason> =
        ingester.gaps().await.iter().map(|gap| gap.noticed.reason).collect();
    assert_eq!(reasons, [GapReason::Silence]);
    ingester.stop().await;
    rig.assert_careful();
}
