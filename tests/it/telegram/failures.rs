//! The store fails in the middle of a batch.

use std::time::Duration;

use inboxd::simulate::bot_api::barrier::Point;
use inboxd::simulate::bot_api::selector::Selector;

use super::database::Database;
use super::pacing::{recovers, requests_in_a_minute, started};
use super::rig::{BOT, FIRST, NAME, Rig, seconds};
use crate::support::disk::{Lock, SqliteLock};

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_meets_a_locked_file_comes_again() {
    let (rig, ingester) = started().await;
    let Database::Sqlite { file, .. } = &*rig.database else { unreachable!() };
    let lock = SqliteLock::hold(file, Lock::Immediate);
    rig.push_texts(5);
    let answered = rig.fake.until(|world| world.journal().in_flight() == 0);
    tokio::time::timeout(Duration::from_secs(30), answered).await.unwrap();
    // Longer than a write waits for a lock.
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(rig.database.count().await, 1);
    lock.release();
    recovers(&rig, ingester).await;
    rig.assert_pushed_is_stored().await;
    let journal = rig.fake.journal();
    let brought =
        |id: i32| journal.answers().filter(move |one| one.updates.iter().any(|u| u.0 == id));
    assert!(brought(FIRST + 1).count() >= 2, "the batch came again");
}

#[tokio::test]
async fn a_batch_whose_connection_dies_comes_again() {
    let rig = Rig::new(Database::postgres().await).await;
    rig.push_texts(1);
    let ingester = rig.start().await;
    rig.drained().await;
    let Database::Postgres { pool, .. } = &*rig.database else { unreachable!() };
    let mut lock = pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE events").execute(&mut *lock).await.unwrap();
    rig.push_texts(5);
    let ended = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                 WHERE datname = current_database() AND wait_event_type = 'Lock'
                   AND application_name = 'inboxd'";
    let killed = async {
        loop {
            let ended: i64 = sqlx::query_scalar(ended).fetch_one(pool).await.unwrap();
            if ended > 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), killed).await.unwrap();
    lock.rollback().await.unwrap();
    recovers(&rig, ingester).await;
    rig.assert_pushed_is_stored().await;
    assert_eq!(rig.database.next_offset().await, Some(i64::from(FIRST) + 7));
}

#[tokio::test]
async fn a_database_that_takes_no_events_does_not_make_the_poller_hurry() {
    let (rig, ingester) = started().await;
    let full = "CREATE TRIGGER full BEFORE INSERT ON events
                BEGIN SELECT RAISE(ABORT, 'as this test wants it'); END";
    rig.database.execute(full).await;
    rig.push_texts(5);
    let detail = ingester.state_is("store").await;
    assert!(detail.contains("stay at Telegram"), "{detail}");
    let requests = requests_in_a_minute(&rig).await;
    assert!(requests <= 30, "{requests}");
    assert_eq!(rig.database.count().await, 1);
    rig.database.execute("DROP TRIGGER full").await;
    recovers(&rig, ingester).await;
    rig.assert_pushed_is_stored().await;
}

/// Nothing of a batch is kept under a lease that is gone, and its state is left to the new holder.
#[tokio::test]
async fn a_process_whose_lease_was_taken_commits_nothing_and_says_nothing() {
    for database in Database::both().await {
        let rig = Rig::new(database).await;
        rig.push_texts(1);
        let ingester = rig.start().await;
        rig.drained().await;
        ingester.state_is("ok").await;
        // The held poll was looked at already: the one after it, which confirms, passes; the long
        // one that follows stops with its answer ready.
        let long = Selector::polls().with(|args| args.get("offset").is_none());
        let barrier = rig.fake.barrier(Point::BeforeReply, long);
        rig.push_texts(1);
        let held = rig.fake.until(|world| {
            world.find(BOT).is_some_and(|bot| bot.queue.is_empty() && bot.is_held())
        });
        held.await;
        rig.push_texts(5);
        barrier.reached().await.unwrap();
        let theft = "UPDATE pollers SET lease_holder = 'another', lease_until = 9000000000000000,
                            lease_token = decode('00112233445566778899aabbccddeeff', 'hex')";
        let on_sqlite = "UPDATE pollers SET lease_holder = 'another',
                                lease_token = x'00112233445566778899aabbccddeeff'";
        let is_sqlite = matches!(*rig.database, Database::Sqlite { .. });
        rig.database.execute(if is_sqlite { on_sqlite } else { theft }).await;
        rig.database.execute("UPDATE sources SET state = 'fine'").await;
        barrier.release();
        if is_sqlite {
            // The lock beside the file is still ours, so that it may go on under a new lease.
            rig.drained().await;
        } else {
            tokio::time::sleep(seconds(30.0)).await;
            assert_eq!(rig.database.count().await, 2);
            assert_eq!(rig.database.next_offset().await, Some(i64::from(FIRST) + 2));
            assert_eq!(ingester.source(NAME).await.state.name, "fine");
            rig.database.execute("UPDATE pollers SET lease_until = 0").await;
        }
        recovers(&rig, ingester).await;
        rig.assert_pushed_is_stored().await;
    }
}
