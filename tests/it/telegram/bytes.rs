//! What is received is what is stored: once for each id and bytes, byte for byte.

use inboxd::event::Flags;
use inboxd::simulate::bot_api::fault::{Action, Ids};
use inboxd::simulate::bot_api::kind::KINDS;
use inboxd::simulate::bot_api::odd;
use inboxd::simulate::bot_api::sample::{CHANNEL, GROUP, USER, sample};
use inboxd::simulate::bot_api::selector::Selector;
use inboxd::simulate::bot_api::update::Update;

use super::database::Database;
use super::rig::{BOT, FIRST, Rig};

#[tokio::test]
async fn updates_of_every_kind_and_every_oddity_are_stored_as_they_came() {
    for database in Database::both().await {
        let rig = Rig::new(database).await;
        // The kinds are all asked for by the first poll, and three come only when asked for.
        let ingester = rig.start().await;
        rig.drained().await;
        for (n, kind) in (1..).zip(KINDS) {
            rig.push(&sample(kind, n));
        }
        for (_, update) in odd::all(100) {
            rig.push(&update);
        }
        rig.drained().await;
        ingester.stop().await;
        rig.assert_careful();
        rig.assert_pushed_is_stored().await;

        let events = rig.database.events().await;
        for (kind, event) in KINDS.iter().zip(&events) {
            assert_eq!(event.kind, format!("telegram.{kind}"));
            assert_eq!(event.flags, 0, "{kind}");
        }
        let subject = |kind: &str| {
            let nth = KINDS.iter().position(|known| *known == kind).unwrap();
            events[nth].subject.clone().unwrap_or_default()
        };
        let chat = |chat: i64| format!("telegram/{BOT}/chat/{chat}");
        assert_eq!(subject("message"), chat(USER));
        assert_eq!(subject("channel_post"), chat(CHANNEL));
        assert_eq!(subject("chat_member"), chat(GROUP));
        assert_eq!(subject("inline_query"), "");
        let business = format!("telegram/{BOT}/business/conn-1/chat/{USER}");
        assert_eq!(subject("business_message"), business);
        let odd: Vec<&str> = odd::all(100).iter().map(|(name, _)| *name).collect();
        for (name, event) in odd.iter().zip(&events[KINDS.len()..]) {
            let strange = matches!(*name, "no kind" | "two kinds");
            assert_eq!(event.flags, if strange { Flags::ODD_UPDATE.0 } else { 0 }, "{name}");
        }
    }
}

#[tokio::test]
async fn the_largest_updates_and_the_largest_batch_are_stored() {
    for database in Database::both().await {
        let rig = Rig::new(database).await;
        for n in 0..10 {
            rig.push(&odd::sized(n, 1 << 19));
        }
        rig.push_texts(5);
        let ingester = rig.start().await;
        rig.drained().await;
        ingester.stop().await;
        rig.assert_careful();
        rig.assert_pushed_is_stored().await;
    }
}

#[tokio::test]
async fn spoilt_ids_spoil_nothing_else_and_hold_nothing_up() {
    for database in Database::both().await {
        let rig = Rig::new(database).await;
        let ingester = rig.start().await;
        rig.drained().await;
        let spoilt = [
            Ids::Missing,
            Ids::Json("\"7\""),
            Ids::Json("1.5"),
            Ids::Json("-1"),
            Ids::Json("0"),
            Ids::Json("1999999999"),
            Ids::Json("2000000000"),
            Ids::Json("2147483648"),
            Ids::Json("9007199254740993"),
            Ids::Json("null"),
            Ids::Duplicate,
            Ids::Descending,
        ];
        for ids in spoilt {
            for count in [3, 1] {
                // The poll that is held was looked at already, so another one goes out first.
                rig.push_texts(1);
                rig.fake.arm(Selector::polls().nth(2), Action::Ids(ids));
                rig.drained().await;
                rig.push_texts(count);
                rig.drained().await;
            }
        }
        assert_eq!(rig.fake.journal().faults_by_class()["data"], 24);
        ingester.stop().await;
        rig.assert_careful();
        rig.assert_delivered_is_stored().await;
    }
}

#[tokio::test]
async fn a_redelivery_is_counted_and_other_bytes_under_an_id_are_another_update() {
    use inboxd::simulate::bot_api::change::{Change, Start};
    let rig = Rig::new(Database::sqlite()).await;
    let ingester = rig.start().await;
    let same = Update::text(7, 1, "the same");
    let id = rig.push(&same);
    rig.drained().await;
    // The server comes back from a copy of its queue.
    rig.fake.change(BOT, &Change::NewSequence(Start::At(id)));
    rig.fake.push(BOT, &same);
    rig.drained().await;
    assert_eq!(rig.database.count().await, 1);
    assert_eq!(rig.database.number("SELECT receipts FROM events").await, Some(2));
    rig.fake.change(BOT, &Change::NewSequence(Start::At(id)));
    rig.push(&Update::text(7, 1, "another"));
    rig.drained().await;
    assert_eq!(rig.database.count().await, 2);
    let ids: Vec<String> =
        rig.database.events().await.into_iter().map(|event| event.external_id).collect();
    assert_eq!(ids, [FIRST.to_string(), FIRST.to_string()]);
    ingester.stop().await;
    rig.assert_careful();
    rig.assert_delivered_is_stored().await;
}
