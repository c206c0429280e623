//! One poller for each bot, whoever else would like to.

use std::time::Duration;

use inboxd::clock::Clock;
use inboxd::config::{Secret, Telegram};
use inboxd::simulate::bot_api::token;
use inboxd::source::{Gap, GapReason};

use super::database::Database;
use super::rig::{BOT, FIRST, NAME, Rig, seconds};

/// Slower than the others, because a lease that lasts a fifth of a second is lost on a busy machine.
const SLOWER: f64 = 0.1;

async fn slower(database: Database) -> Rig {
    Rig::scaled(database, SLOWER, 1).await
}

#[tokio::test]
async fn of_two_one_polls_and_the_other_takes_over_at_a_stop() {
    for database in Database::both().await {
        let rig = slower(database).await;
        let first = rig.start().await;
        rig.drained().await;
        let second = rig.start().await;
        for _ in 0..5 {
            rig.push_texts(30);
            rig.drained().await;
        }
        assert_eq!(rig.fake.journal().most_in_flight(), 1);
        rig.fake.client_starts();
        first.stop().await;
        rig.push_texts(130);
        rig.drained().await;
        second.state_is("ok").await;
        second.stop().await;
        rig.assert_careful();
        rig.assert_pushed_is_stored().await;
    }
}

#[tokio::test]
async fn whoever_stands_by_does_not_speak_for_the_bot() {
    for database in Database::both().await {
        let rig = slower(database).await;
        rig.push_texts(1);
        let first = rig.start().await;
        rig.drained().await;
        first.state_is("ok").await;
        // The other one cannot even reach the server: nobody listens on the port of a fake that
        // has stopped.
        let gone = Rig::new(Database::sqlite()).await;
        gone.fake.refuse_connections().await;
        let cut_off = Telegram { api_url: gone.fake.api_url().parse().unwrap(), ..rig.bot() };
        let second = rig.start_with(&[cut_off], Clock::wall()).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(first.source(NAME).await.state.name, "ok");
        rig.push_texts(1);
        rig.drained().await;
        first.stop().await;
        second.state_is("network").await;
        second.stop().await;
        rig.assert_careful();
        rig.assert_pushed_is_stored().await;
    }
}

/// Who cannot reach the server does not keep from it who can.
#[tokio::test]
async fn a_lease_is_not_kept_by_who_does_not_get_to_poll() {
    for database in Database::both().await {
        let rig = slower(database).await;
        let gone = Rig::new(Database::sqlite()).await;
        gone.fake.refuse_connections().await;
        let cut_off = Telegram { api_url: gone.fake.api_url().parse().unwrap(), ..rig.bot() };
        let first = rig.start_with(&[cut_off], Clock::wall()).await;
        first.state_is("network").await;
        rig.push_texts(3);
        let second = rig.start().await;
        rig.drained().await;
        second.state_is("ok").await;
        first.stop().await;
        second.stop().await;
        rig.assert_careful();
        rig.assert_pushed_is_stored().await;
    }
}

#[tokio::test]
async fn a_new_token_goes_on_where_the_old_one_was() {
    for database in Database::both().await {
        let rig = Rig::new(database).await;
        let ingester = rig.start().await;
        rig.push_texts(3);
        rig.drained().await;
        let fresh = format!("{BOT}:AAnother-token-of-the-same-bot-after-it");
        rig.fake.add_bot(BOT, &fresh);
        rig.fake.act(|world, _| world.revoke(&token::example(BOT)));
        rig.push_texts(2);
        ingester.state_is("unauthorized").await;
        rig.fake.client_starts();
        let before = rig.polls().len();
        let bot = Telegram { token: Secret::new(fresh), ..rig.bot() };
        ingester.pollers.replace(&[bot], &ingester.inbox).await.unwrap();
        rig.push_texts(2);
        rig.drained().await;
        ingester.state_is("ok").await;
        let saved = i64::from(FIRST) + 3;
        let first = rig.polls()[before..].iter().find_map(|poll| poll.0).unwrap();
        assert!(first >= saved, "{first}");
        // A busy machine makes the time without a token long, and that is told.
        let gaps = ingester.gaps().await;
        let silent = |gap: &Gap| gap.noticed.reason == GapReason::Silence;
        assert!(gaps.iter().all(silent), "{gaps:?}");
        ingester.stop().await;
        rig.assert_careful();
        rig.assert_pushed_is_stored().await;
    }
}

#[tokio::test]
async fn a_bot_that_is_taken_out_of_the_configuration_is_left_alone_and_can_come_back() {
    let rig = Rig::new(Database::sqlite()).await;
    let ingester = rig.start().await;
    rig.push_texts(3);
    rig.drained().await;
    ingester.pollers.replace(&[], &ingester.inbox).await.unwrap();
    ingester.state_is("stopped").await;
    rig.push_texts(3);
    tokio::time::sleep(seconds(15.0)).await;
    assert_eq!(rig.fake.pending(BOT), 3);
    rig.fake.client_starts();
    ingester.pollers.replace(&[rig.bot()], &ingester.inbox).await.unwrap();
    rig.drained().await;
    ingester.state_is("ok").await;
    ingester.stop().await;
    rig.assert_careful();
    rig.assert_pushed_is_stored().await;
}

#[tokio::test]
async fn replacing_again_and_again_never_leaves_a_bot_without_a_poller() {
    for database in Database::both().await {
        let rig = Rig::new(database).await;
        let ingester = rig.start().await;
        for n in 0..40 {
            rig.push_texts(2);
            let poll_timeout = Duration::from_secs(20 + n % 2);
            let bot = Telegram { poll_timeout, ..rig.bot() };
            rig.fake.client_starts();
            ingester.pollers.replace(&[bot], &ingester.inbox).await.unwrap();
            // Sometimes at once, sometimes in the middle of what a start does.
            tokio::time::sleep(Duration::from_millis(n % 8)).await;
        }
        rig.drained().await;
        ingester.state_is("ok").await;
        ingester.stop().await;
        rig.assert_careful();
        rig.assert_pushed_is_stored().await;
    }
}

#[tokio::test]
async fn a_name_that_belongs_to_another_bot_is_refused_until_it_is_forgotten() {
    for database in Database::both().await {
        let rig = Rig::new(database).await;
        let ingester = rig.start().await;
        rig.push_texts(2);
        rig.drained().await;
        const OTHER: i64 = 777;
        rig.fake.add_bot(OTHER, &token::example(OTHER));
        let other = Telegram { token: Secret::new(token::example(OTHER)), ..rig.bot() };
        ingester.pollers.replace(std::slice::from_ref(&other), &ingester.inbox).await.unwrap();
        let detail = ingester.state_is("other_bot").await;
        assert!(detail.contains("777") && detail.contains("forget telegram/support"), "{detail}");
        let polled = |bot: i64| rig.fake.journal().polls().any(|(_, p)| p.bot == Some(bot.into()));
        assert!(!polled(OTHER));
        assert_eq!(rig.database.next_offset().await, Some(i64::from(FIRST) + 2));

        let source = ingester.source(NAME).await.id;
        ingester.pollers.replace(&[], &ingester.inbox).await.unwrap();
        ingester.store.forget_source(source).await.unwrap();
        ingester.pollers.replace(&[other], &ingester.inbox).await.unwrap();
        ingester.state_is("ok").await;
        assert!(polled(OTHER));
        ingester.stop().await;
        rig.assert_careful();
    }
}

#[tokio::test]
async fn a_second_name_for_a_bot_is_refused() {
    let rig = Rig::new(Database::sqlite()).await;
    let ingester = rig.start().await;
    rig.push_texts(2);
    rig.drained().await;
    let again = format!("{BOT}:AAnother-token-of-the-same-bot-after-it");
    rig.fake.add_bot(BOT, &again);
    let twin = Telegram { name: "twin".into(), token: Secret::new(again), ..rig.bot() };
    ingester.pollers.replace(&[rig.bot(), twin], &ingester.inbox).await.unwrap();
    let detail = ingester.state_of_is("twin", "other_bot").await;
    assert!(detail.contains("\"support\""), "{detail}");
    rig.push_texts(2);
    rig.drained().await;
    assert_eq!(rig.fake.journal().most_in_flight(), 1);
    assert_eq!(ingester.source(NAME).await.state.name, "ok");
    ingester.stop().await;
    rig.assert_careful();
    rig.assert_pushed_is_stored().await;
}
