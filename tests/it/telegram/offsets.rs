//! What goes out as `offset`, and when.

use super::database::Database;
use super::rig::{FIRST, Rig};

const LONG: i64 = 50;

fn offset(behind: i32) -> Option<i64> {
    Some(i64::from(FIRST + behind))
}

#[tokio::test]
async fn it_goes_out_after_each_commit_until_nothing_comes_and_long_polls_leave_it_out() {
    for database in Database::both().await {
        let rig = Rig::new(database).await;
        rig.push_texts(250);
        let ingester = rig.start().await;
        rig.drained().await;
        let mut expected =
            vec![(None, LONG), (offset(100), 0), (offset(200), 0), (offset(250), 0), (None, LONG)];
        assert_eq!(rig.polls(), expected);

        rig.push_texts(1);
        rig.drained().await;
        expected.extend([(offset(251), 0), (None, LONG)]);
        assert_eq!(rig.polls(), expected);
        assert_eq!(rig.database.next_offset().await, offset(251));

        ingester.stop().await;
        assert_eq!(rig.polls(), expected, "no call at the stop");

        let ingester = rig.start().await;
        rig.drained().await;
        expected.extend([(offset(251), 0), (None, LONG)]);
        assert_eq!(rig.polls(), expected, "once at a start");
        assert!(ingester.gaps().await.is_empty());
        ingester.stop().await;
        rig.assert_careful();
        rig.assert_pushed_is_stored().await;
    }
}

#[tokio::test]
async fn an_idle_bot_is_polled_without_an_offset_for_as_long_as_nothing_comes() {
    let rig = Rig::new(Database::sqlite()).await;
    rig.push_texts(1);
    let ingester = rig.start().await;
    rig.drained().await;
    let before = rig.polls().len();
    let more = |world: &inboxd::simulate::bot_api::world::World| {
        world.journal().polls().count() >= before + 2
    };
    rig.fake.until(more).await;
    assert!(rig.polls()[before..].iter().all(|poll| *poll == (None, LONG)));
    ingester.stop().await;
    rig.assert_careful();
}

#[tokio::test]
async fn the_stored_offset_follows_the_last_batch_even_downwards() {
    use inboxd::simulate::bot_api::change::{Change, Start};
    let rig = Rig::new(Database::sqlite()).await;
    rig.push_texts(3);
    let ingester = rig.start().await;
    rig.drained().await;
    assert_eq!(rig.database.next_offset().await, offset(3));
    rig.fake.change(super::rig::BOT, &Change::NewSequence(Start::At(1_000)));
    rig.push_texts(2);
    rig.drained().await;
    assert_eq!(rig.database.next_offset().await, Some(1_002));
    ingester.stop().await;
    rig.assert_careful();
    rig.assert_pushed_is_stored().await;
}
