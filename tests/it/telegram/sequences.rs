//! The ids begin anew, or the server forgets some.

use inboxd::simulate::bot_api::barrier::Point;
use inboxd::simulate::bot_api::change::{Change, Start};
use inboxd::simulate::bot_api::selector::Selector;
use inboxd::simulate::bot_api::update::Update;
use inboxd::source::GapReason;

use super::database::Database;
use super::rig::{BOT, FIRST, Rig};

/// Reason and ids of all gaps so far.
async fn gaps(ingester: &super::rig::Ingester) -> Vec<(GapReason, Option<(i64, i64)>)> {
    let gaps = ingester.gaps().await.into_iter();
    let told = gaps.filter(|gap| gap.noticed.reason != GapReason::Silence);
    told.map(|gap| (gap.noticed.reason, gap.noticed.ids)).collect()
}

#[tokio::test]
async fn an_idle_bot_follows_a_restart_to_wherever_it_goes_and_loses_nothing() {
    for database in Database::both().await {
        let rig = Rig::new(database).await;
        let ingester = rig.start().await;
        let starts = [
            Start::At(1_000_000),
            Start::Lower,
            Start::Higher,
            Start::BelowOffset(1),
            Start::BelowOffset(5),
            Start::BelowOffset(10),
            Start::BelowOffset(11),
            Start::BelowOffset(60),
        ];
        let mut told = 0;
        for start in starts {
            rig.push_texts(30);
            rig.drained().await;
            let offset = rig.database.next_offset().await.unwrap();
            assert_eq!(gaps(&ingester).await.len(), told, "{start:?}");
            rig.fake.change(BOT, &Change::NewSequence(start));
            let begin = i64::from(rig.fake.look(|world| world.find(BOT).unwrap().queue.tail()));
            // Enough to pass the old end where the new ids begin just below it.
            rig.push_texts(70);
            rig.drained().await;
            told += 1;
            let last = gaps(&ingester).await.pop();
            let expected = match begin > offset {
                true => (GapReason::Hole, Some((offset, begin - 1))),
                false => (GapReason::Restart, None),
            };
            assert_eq!(last, Some(expected), "{start:?}");
            assert_eq!(gaps(&ingester).await.len(), told, "{start:?}");
        }
        ingester.stop().await;
        rig.assert_careful();
        assert_eq!(rig.fake.journal().losses().count(), 0);
        rig.assert_pushed_is_stored().await;
    }
}

#[tokio::test]
async fn an_idle_bot_loses_nothing_to_a_rollback() {
    let rig = Rig::new(Database::sqlite()).await;
    let ingester = rig.start().await;
    for back in (1..=10).chain([11, 12, 20, 30]) {
        rig.push_texts(35);
        rig.drained().await;
        rig.fake.change(BOT, &Change::RollBack(back));
        rig.push_texts(15);
        rig.drained().await;
    }
    let restarts = gaps(&ingester).await;
    assert_eq!(restarts, vec![(GapReason::Restart, None); 14]);
    ingester.stop().await;
    rig.assert_careful();
    assert_eq!(rig.fake.journal().losses().count(), 0);
    rig.assert_pushed_is_stored().await;
}

#[tokio::test]
async fn a_start_after_a_restart_of_the_sequence_finds_its_way() {
    let starts = [
        Start::At(77),
        Start::Lower,
        Start::Higher,
        Start::BelowOffset(50),
        Start::BelowOffset(200),
    ];
    for start in starts {
        let rig = Rig::new(Database::sqlite()).await;
        let ingester = rig.start().await;
        rig.push_texts(100);
        rig.drained().await;
        ingester.stop().await;
        rig.fake.change(BOT, &Change::NewSequence(start));
        rig.push_texts(30);
        let ingester = rig.start().await;
        rig.drained().await;
        assert_eq!(gaps(&ingester).await.len(), 1, "{start:?}");
        ingester.stop().await;
        rig.assert_careful();
        assert_eq!(rig.fake.journal().losses().count(), 0, "{start:?}");
        rig.assert_pushed_is_stored().await;
    }
}

#[tokio::test]
async fn a_rollback_between_commit_and_confirmation_costs_what_no_client_could_save() {
    let rig = Rig::new(Database::sqlite()).await;
    let ingester = rig.start().await;
    rig.push_texts(20);
    rig.drained().await;
    // The held poll was looked at before the barrier stood; the confirmation meets it.
    let barrier = rig.fake.barrier(Point::Received, Selector::polls());
    rig.push_texts(1);
    barrier.reached().await.unwrap();
    rig.fake.change(BOT, &Change::RollBack(4));
    rig.fake.push_all(BOT, &[Update::text(8, 1, "destroyed"), Update::text(8, 2, "destroyed")]);
    barrier.release();
    rig.drained().await;
    rig.push_texts(10);
    rig.drained().await;
    ingester.stop().await;
    rig.assert_careful();
    let losses = rig.fake.journal();
    assert_eq!(losses.losses().flat_map(|loss| &loss.ids).count(), 2);
    rig.assert_pushed_is_stored().await;
}

#[tokio::test]
async fn ids_that_run_out_begin_anew() {
    let rig = Rig::new(Database::sqlite()).await;
    let ingester = rig.start().await;
    rig.push_texts(2);
    rig.drained().await;
    rig.fake.change(BOT, &Change::NewSequence(Start::At(1_999_999_995)));
    rig.push_texts(3);
    rig.drained().await;
    assert_eq!(rig.database.next_offset().await, Some(1_999_999_998));
    rig.push_texts(1);
    rig.drained().await;
    assert_eq!(rig.database.next_offset().await, Some(1_999_999_999));
    rig.push_texts(2);
    rig.drained().await;
    assert!(rig.database.next_offset().await.unwrap() < 1_100_000_000);
    let (first, _) = gaps(&ingester).await[0];
    assert_eq!(first, GapReason::Hole);
    ingester.stop().await;
    rig.assert_careful();
    rig.assert_pushed_is_stored().await;
    assert!(rig.database.events().await[0].external_id == FIRST.to_string());
}
