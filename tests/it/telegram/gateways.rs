//! Two gateways for one bot, and the end of one.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::process::{Machine, config};
use super::rig::BOT;
use crate::support::process::{Gateway, Home};

/// Starts one more gateway on the same database, and waits until it stands by.
fn standby(machine: &Machine) -> (Home, Gateway) {
    let token = inboxd::simulate::bot_api::token::example(BOT);
    let home = Home::new(&config(&machine.rig)).env("BOT_TOKEN", &token);
    let gateway = home.start();
    stands_by(&gateway);
    (home, gateway)
}

fn stands_by(gateway: &Gateway) {
    let word = |line: &str| line.contains("standing by").then_some(());
    gateway.log().wait_for(Duration::from_secs(30), word);
}

/// How long it takes until somebody polls again.
async fn taken_over(machine: &Machine, since: Instant) -> Duration {
    machine.rig.push_texts(3);
    machine.rig.drained().await;
    since.elapsed()
}

/// Both wait for a lease to run out, which takes its time, so they wait together.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn on_postgresql_a_lease_that_is_not_renewed_goes_to_another() {
    let (dead, halted) = (tokio::spawn(of_a_dead_one()), tokio::spawn(of_a_halted_one()));
    dead.await.unwrap();
    halted.await.unwrap();
}

/// A dead one is replaced within 15 s, a stopped one at once.
async fn of_a_dead_one() {
    let machine = Machine::new(true).await;
    let first = machine.start();
    machine.rig.push_texts(3);
    machine.rig.drained().await;
    let (_home, second) = standby(&machine);

    machine.rig.push_texts(3);
    machine.rig.drained().await;
    machine.rig.fake.client_starts();
    first.kill();
    let took = taken_over(&machine, Instant::now()).await;
    println!("after a death {took:?}");
    assert!(took < Duration::from_secs(15), "{took:?}");

    let third = machine.start();
    stands_by(&third);
    machine.rig.fake.client_starts();
    let since = Instant::now();
    assert!(second.terminate().success());
    let took = taken_over(&machine, since).await;
    println!("after a stop {took:?}");
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert!(third.terminate().success());
    machine.rig.assert_careful();
    machine.rig.assert_pushed_is_stored().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_sqlite_a_dead_one_is_replaced_at_once() {
    let machine = Machine::new(false).await;
    let first = machine.start();
    machine.rig.push_texts(3);
    machine.rig.drained().await;
    let (_home, second) = standby(&machine);
    machine.rig.fake.client_starts();
    let since = Instant::now();
    first.kill();
    let took = taken_over(&machine, since).await;
    println!("after a death {took:?}");
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert!(second.terminate().success());
    machine.rig.assert_careful();
    machine.rig.assert_pushed_is_stored().await;
}

/// One that was halted for longer than its lease lasts finds that somebody else has it.
async fn of_a_halted_one() {
    let machine = Machine::new(true).await;
    let first = machine.start();
    machine.rig.push_texts(3);
    machine.rig.drained().await;
    let (_home, second) = standby(&machine);
    machine.rig.fake.client_starts();
    first.signal(Signal::STOP);
    taken_over(&machine, Instant::now()).await;
    first.signal(Signal::CONT);
    stands_by(&first);
    machine.rig.push_texts(3);
    machine.rig.drained().await;
    let state = "SELECT count(*) FROM sources WHERE state = 'ok'";
    assert_eq!(machine.rig.database.number(state).await, Some(1));
    assert!(first.terminate().success());
    assert!(second.terminate().success());
    assert_eq!(machine.rig.fake.violations(), Vec::<String>::new());
    machine.rig.assert_pushed_is_stored().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_during_a_long_poll_ends_it_at_once_and_without_another_call() {
    for on_postgres in [false, true] {
        let machine = Machine::new(on_postgres).await;
        let gateway = machine.start();
        machine.rig.push_texts(3);
        machine.rig.drained().await;
        let calls = machine.rig.fake.journal().requests().count();
        let since = Instant::now();
        assert!(gateway.terminate().success());
        let took = since.elapsed();
        assert!(took < Duration::from_secs(1), "{took:?}");
        assert_eq!(machine.rig.fake.journal().requests().count(), calls);
        let state = "SELECT count(*) FROM sources WHERE state = 'stopped'";
        assert_eq!(machine.rig.database.number(state).await, Some(1));
        machine.rig.assert_careful();
        machine.rig.assert_pushed_is_stored().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_token_is_taken_over_at_sighup_and_the_checkpoint_stays() {
    let token = inboxd::simulate::bot_api::token::example(BOT);
    let machine = Machine::new(false).await;
    let file = machine.home.dir().join("token");
    std::fs::write(&file, &token).unwrap();
    let from_file = format!("{{ file = \"{}\" }}", file.display());
    let config = config(&machine.rig).replace("{ env = \"BOT_TOKEN\" }", &from_file);
    machine.home.configure(&config);
    let gateway = machine.start();
    machine.rig.push_texts(3);
    machine.rig.drained().await;
    let fresh = format!("{BOT}:AAnother-token-of-the-same-bot-after-it");
    machine.rig.fake.add_bot(BOT, &fresh);
    machine.rig.fake.act(|world, _| world.revoke(&token));
    std::fs::write(&file, &fresh).unwrap();
    machine.rig.fake.client_starts();
    gateway.signal(Signal::HUP);
    machine.rig.push_texts(3);
    machine.rig.drained().await;
    let used = |token: &str| {
        let journal = machine.rig.fake.journal();
        journal.polls().any(|(_, poll)| poll.target.contains(token))
    };
    assert!(used(&fresh));
    let next_offset = i64::from(super::rig::FIRST) + 6;
    assert_eq!(machine.rig.database.next_offset().await, Some(next_offset));
    assert!(gateway.terminate().success());
    machine.rig.assert_careful();
    machine.rig.assert_pushed_is_stored().await;
}
