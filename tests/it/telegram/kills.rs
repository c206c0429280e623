//! SIGKILL at every point between Telegram's answer and its confirmation, and anywhere.

use std::time::Duration;

use inboxd::simulate::bot_api::barrier::Point;
use inboxd::simulate::bot_api::selector::Selector;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::database::Database;
use super::number_from_environment;
use super::process::{EARLY, Machine, wait_for};
use crate::support::disk::{Lock, SqliteLock};

/// Starts again after a kill and asserts that everything pushed is there, once.
async fn starts_again(machine: &Machine) {
    machine.free_the_lease().await;
    machine.rig.push_texts(3);
    let gateway = machine.start();
    machine.rig.drained().await;
    assert!(gateway.terminate().success());
    machine.rig.assert_careful();
    assert_eq!(machine.rig.fake.journal().losses().count(), 0);
    machine.rig.assert_pushed_is_stored().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn before_the_answer_is_whole() {
    for on_postgres in [false, true] {
        let machine = Machine::new(on_postgres).await;
        for point in EARLY {
            machine.rig.push_texts(5);
            let barrier = machine.rig.fake.barrier(point, Selector::polls());
            let gateway = machine.start();
            barrier.reached().await.unwrap();
            gateway.kill();
            drop(barrier);
            starts_again(&machine).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn between_the_answer_and_the_commit_on_sqlite() {
    let machine = Machine::new(false).await;
    let barrier = machine.rig.fake.barrier(Point::FullBody, Selector::polls());
    let gateway = machine.start();
    machine.rig.drained().await;
    let Database::Sqlite { file, .. } = &*machine.rig.database else { unreachable!() };
    let lock = SqliteLock::hold(file, Lock::Immediate);
    machine.rig.push_texts(5);
    barrier.reached().await.unwrap();
    gateway.kill();
    drop(barrier);
    assert_eq!(machine.rig.database.count().await, 0);
    lock.release();
    assert_eq!(machine.rig.database.count().await, 0);
    starts_again(&machine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn between_the_answer_and_the_commit_on_postgresql() {
    let machine = Machine::new(true).await;
    let gateway = machine.start();
    machine.rig.drained().await;
    let Database::Postgres { pool, .. } = &*machine.rig.database else { unreachable!() };
    let mut lock = pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE events").execute(&mut *lock).await.unwrap();
    machine.rig.push_texts(5);
    // Inside the transaction, with the checkpoint moved and the rows still to come.
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
                 AND wait_event_type = 'Lock' AND application_name = 'inboxd'";
    wait_for("inside", async || machine.rig.database.number(waits).await > Some(0)).await;
    gateway.kill();
    lock.rollback().await.unwrap();
    // The server notices that its client is gone once it has something to tell it.
    wait_for("rolled back", async || machine.rig.database.number(waits).await == Some(0)).await;
    starts_again(&machine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn between_the_commit_and_the_next_poll() {
    for on_postgres in [false, true] {
        let machine = Machine::new(on_postgres).await;
        machine.rig.push_texts(5);
        let barrier = machine.rig.fake.barrier(Point::AfterReply, Selector::polls());
        let gateway = machine.start();
        barrier.reached().await.unwrap();
        wait_for("committed", async || machine.rig.database.count().await == 5).await;
        gateway.kill();
        drop(barrier);
        let before = machine.rig.polls().len();
        starts_again(&machine).await;
        let offset = i64::from(super::rig::FIRST) + 5;
        assert_eq!(machine.rig.polls()[before], (Some(offset), 0), "the saved offset goes out");
    }
}

/// Kills at random moments while updates come in.
async fn anywhere(on_postgres: bool, kills: usize) {
    let seed: u64 = rand::random();
    println!("seed {seed}, {kills} kills");
    let mut random = StdRng::seed_from_u64(seed);
    let machine = Machine::new(on_postgres).await;
    let rig = &machine.rig;
    for kill in 0..kills {
        if kill > 0 {
            machine.free_the_lease().await;
        }
        let gateway = machine.start();
        let calls = rig.polls().len() + random.random_range(1..12);
        while rig.polls().len() < calls {
            rig.push_texts(random.random_range(1..150));
            let next = rig.polls().len() + 1;
            let polled = rig.fake.until(|world| world.journal().polls().count() >= next);
            tokio::time::timeout(Duration::from_secs(30), polled).await.unwrap();
        }
        // Into a commit, perhaps.
        tokio::time::sleep(Duration::from_micros(random.random_range(0..20_000))).await;
        gateway.kill();
    }
    starts_again(&machine).await;
    println!("{} updates, {kills} kills survived", rig.database.count().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn at_random_on_sqlite() {
    anywhere(false, number_from_environment("INBOXD_KILLS", 10)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn at_random_on_postgresql() {
    anywhere(true, number_from_environment("INBOXD_KILLS", 3)).await;
}
