//! Many updates through faults of every class, and how quickly a long queue is caught up with.

use std::collections::BTreeSet;
use std::time::Instant;

use bytes::Bytes;
use inboxd::receive::telegram::Pace;
use inboxd::simulate::bot_api::FakeBotApi;
use inboxd::simulate::bot_api::answer::{TERMINATED_BY_POLL, TERMINATED_BY_WEBHOOK};
use inboxd::simulate::bot_api::change::{Change, Start};
use inboxd::simulate::bot_api::fault::{Action, Api, Http, Ids, Net};
use inboxd::simulate::bot_api::journal::What;
use inboxd::simulate::bot_api::kind::KINDS;
use inboxd::simulate::bot_api::sample::sample;
use inboxd::simulate::bot_api::selector::Selector;
use inboxd::simulate::bot_api::{odd, update::Update};
use inboxd::source::GapReason;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use super::database::Database;
use super::gaps::{gone, missed};
use super::number_from_environment;
use super::rig::{BOT, Rig, SCALE};

/// Updates that wait at the server at the most.
const WAITING: usize = 400;

fn faults() -> Vec<Action> {
    let net = [
        Net::Reset,
        Net::Close,
        Net::ResetInHead(12),
        Net::ResetInBody(40),
        Net::Blackhole,
        Net::StallInBody(40),
        Net::Late(2.0),
        Net::Slow(4096, 0.1),
        Net::Twice,
        Net::Down(4.0),
    ];
    let http = [
        Http::Html(200),
        Http::Html(502),
        Http::ForeignNotFound,
        Http::Empty,
        Http::Truncated(true),
        Http::Truncated(false),
        Http::Chunked,
        Http::Gzip,
        Http::ok_false(),
        Http::error_ok_true(),
        Http::no_result(),
        Http::result("null"),
        Http::instantly_empty(),
    ];
    let api = [
        Api::UNAUTHORIZED,
        Api::NOT_FOUND,
        Api::RESTARTING,
        Api::Conflict(TERMINATED_BY_POLL),
        Api::Conflict(TERMINATED_BY_WEBHOOK),
        Api::TooMany { parameter: Some("1"), header: Some("1"), description: "" },
        Api::TooMany { parameter: None, header: None, description: "" },
    ];
    let ids = [Ids::Missing, Ids::Json("-1"), Ids::Json("\"7\""), Ids::Duplicate, Ids::Descending];
    // Only such as a request that a proxy repeats cannot make worse.
    let queue = [
        Change::Thief(3),
        Change::ExpireNow,
        Change::Drop,
        Change::Repeat,
        Change::Restart { keep_queue: true },
        Change::NewSequence(Start::Lower),
    ];
    let hidden = |http| Action::AfterProcessing(Box::new(Action::Http(http)));
    (net.into_iter().map(Action::Net))
        .chain(http.into_iter().map(Action::Http))
        .chain(api.into_iter().map(Action::Api))
        .chain(ids.into_iter().map(Action::Ids))
        .chain(queue.into_iter().map(Action::Queue))
        .chain([hidden(Http::Html(504)), hidden(Http::Empty)])
        .collect()
}

/// Any update, ordinary or odd.
fn update(n: i64, random: &mut StdRng) -> Update {
    match random.random_range(0..10) {
        0 => odd::all(n).swap_remove(random.random_range(0..16)).1,
        1..4 => sample(KINDS.choose(random).unwrap(), n),
        _ => Update::text(n % 50, n, &format!("message {n}")),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_delivered_through_random_faults_is_stored_once() {
    let count = number_from_environment("INBOXD_SOAK", 5_000);
    let seed = 20_261_130;
    let mut random = StdRng::seed_from_u64(seed);
    let mut rig = Rig::scaled(Database::sqlite(), SCALE, seed).await;
    rig.pace = Pace::scaled(SCALE);
    // Several times each, whatever the size, and mostly good answers between them.
    for fault in faults() {
        rig.fake.arm(Selector::polls().chance(0.006), fault.clone());
        rig.fake.arm(Selector::polls().nth(random.random_range(3..90)), fault);
    }
    let ingester = rig.start().await;
    let begun = Instant::now();
    let mut pushed = 0;
    while pushed < count {
        let burst = random.random_range(1..=150.min(count - pushed));
        for _ in 0..burst {
            let n = i64::try_from(pushed).unwrap();
            // One that is left out or refused by the server is none of ours.
            rig.fake.push(BOT, &update(n, &mut random));
            pushed += 1;
        }
        let few = random.random_range(0..WAITING);
        rig.fake.until(|world| world.find(BOT).is_some_and(|bot| bot.queue.len() <= few)).await;
    }
    rig.fake.clear_faults();
    rig.push_texts(1);
    rig.drained().await;
    let took = begun.elapsed();
    let faults = rig.fake.journal().faults_by_class();
    println!("{pushed} updates in {took:.1?}, seed {seed}, faults by class: {faults:?}");
    for class in ["api", "data", "http", "net", "queue"] {
        assert!(faults.get(class).is_some_and(|done| *done >= 5), "{class}: {faults:?}");
    }

    rig.assert_careful();
    assert_losses_are_told(&rig.fake, &missed(&ingester).await, &gone(&rig));
    let restarts = ingester.gaps().await.into_iter();
    let restarts = restarts.filter(|gap| gap.noticed.reason == GapReason::Restart).count();
    println!("{restarts} restarts told, {} ids missed", missed(&ingester).await.len());
    ingester.stop().await;
    assert_stored(&rig).await;
}

/// Every update that a client could read is there once, and nothing else is.
async fn assert_stored(rig: &Rig) {
    let stored: Vec<Bytes> =
        rig.database.events().await.into_iter().map(|event| event.body.into()).collect();
    let distinct: BTreeSet<&Bytes> = stored.iter().collect();
    assert_eq!(distinct.len(), stored.len(), "once");
    let journal = rig.fake.journal();
    let sent = journal.sent_updates();
    assert!(stored.iter().all(|body| sent.contains(body)), "byte for byte");
    let whole = journal.whole_updates();
    let missing: Vec<&Bytes> = whole.iter().filter(|body| !distinct.contains(body)).collect();
    assert!(missing.is_empty(), "{} of {}: {missing:?}", missing.len(), whole.len());
}

/// What was gone between two ids received is covered by holes, and these cover nothing that was
/// not gone.
fn assert_losses_are_told(fake: &FakeBotApi, missed: &BTreeSet<i64>, gone: &BTreeSet<i64>) {
    let unseen: Vec<&i64> = gone.difference(missed).collect();
    assert!(unseen.is_empty(), "not told: {unseen:?}");
    let journal = fake.journal();
    let removed = journal.entries().iter().filter_map(|entry| match &entry.what {
        What::Removed { ids, .. } => Some(ids),
        _ => None,
    });
    // An update whose id came spoilt did not come under its own.
    let spoilt = journal.answers().flat_map(|answer| &answer.updates);
    let spoilt =
        spoilt.filter(|(id, bytes)| !bytes.starts_with(format!("{{\"update_id\":{id}").as_bytes()));
    let removed = removed.flatten().chain(spoilt.map(|(id, _)| id));
    let removed: BTreeSet<i64> = removed.map(|id| i64::from(*id)).collect();
    let untrue: Vec<&i64> = missed.difference(&removed).collect();
    assert!(untrue.is_empty(), "told and not true: {untrue:?}");
}

/// A queue as it is after an outage, drained as quickly as it goes.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_queue_is_caught_up_with() {
    let count = number_from_environment("INBOXD_CATCH_UP", 1_000);
    for database in Database::both().await {
        let kind = database.url().split(':').next().unwrap().to_owned();
        let rig = Rig::new(database).await;
        rig.push_texts(count);
        let begun = Instant::now();
        let ingester = rig.start().await;
        rig.drained().await;
        let took = begun.elapsed().as_secs_f64();
        println!("{kind}: {count} updates in {took:.2} s, {:.0} a second", count as f64 / took);
        ingester.stop().await;
        rig.assert_careful();
        rig.assert_pushed_is_stored().await;
    }
}
