//! How often the server is asked while nothing goes on.

use inboxd::receive::telegram::Pace;
use inboxd::simulate::bot_api::fault::{Action, Http, Ids, Net};
use inboxd::simulate::bot_api::selector::Selector;

use super::database::Database;
use super::rig::{Ingester, Rig, SCALE, seconds};

/// A good start, so that what follows is a change.
pub(super) async fn started() -> (Rig, Ingester) {
    started_on(Rig::new(Database::sqlite()).await).await
}

/// The same, hanging up on a silent server as soon as the scale says.
pub(super) async fn started_hasty() -> (Rig, Ingester) {
    let mut rig = Rig::new(Database::sqlite()).await;
    rig.pace = Pace::scaled(SCALE);
    started_on(rig).await
}

async fn started_on(rig: Rig) -> (Rig, Ingester) {
    rig.push_texts(1);
    let ingester = rig.start().await;
    rig.drained().await;
    ingester.state_is("ok").await;
    (rig, ingester)
}

/// Requests within a minute of the server's, from now on.
pub(super) async fn requests_in_a_minute(rig: &Rig) -> usize {
    let begin = rig.fake.now();
    tokio::time::sleep(seconds(60.0)).await;
    rig.fake.journal().requests_between(begin, begin + 60.0)
}

/// What is the matter is over: all comes, once, and the state is good again.
pub(super) async fn recovers(rig: &Rig, ingester: Ingester) {
    rig.fake.clear_faults();
    rig.fake.accept_connections().await;
    rig.push_texts(1);
    rig.drained().await;
    ingester.state_is("ok").await;
    ingester.stop().await;
    rig.assert_careful();
}

#[tokio::test]
async fn a_batch_that_cannot_be_confirmed_is_asked_for_with_patience() {
    let (rig, ingester) = started().await;
    // Something on the way answers the short polls itself.
    let short = Selector::polls().with(|args| args.get("offset").is_some());
    rig.fake.arm(short, Action::Http(Http::instantly_empty()));
    rig.push_texts(1);
    ingester.state_is("no_progress").await;
    let requests = requests_in_a_minute(&rig).await;
    assert!(requests <= 30, "{requests}");
    assert_eq!(ingester.source(super::rig::NAME).await.state.name, "no_progress");
    assert_eq!(rig.database.count().await, 2);
    recovers(&rig, ingester).await;
    rig.assert_pushed_is_stored().await;
}

#[tokio::test]
async fn an_update_without_an_id_that_stays_alone_is_stored_once_and_waited_for() {
    let (rig, ingester) = started().await;
    rig.fake.arm(Selector::polls(), Action::Ids(Ids::Json("-1")));
    // The held poll was looked at already, so the first one still comes well.
    rig.push_texts(1);
    rig.drained().await;
    rig.push_texts(1);
    let detail = ingester.state_is("no_progress").await;
    assert!(detail.contains("without a usable id"), "{detail}");
    let requests = requests_in_a_minute(&rig).await;
    assert!(requests <= 30, "{requests}");
    assert_eq!(rig.database.count().await, 3);
    recovers(&rig, ingester).await;
    rig.assert_delivered_is_stored().await;
}

#[tokio::test]
async fn polls_that_are_not_held_are_not_repeated_at_once() {
    let (rig, ingester) = started().await;
    rig.fake.arm(Selector::polls(), Action::Http(Http::instantly_empty()));
    rig.push_texts(1);
    let requests = requests_in_a_minute(&rig).await;
    assert!((5..=30).contains(&requests), "{requests}");
    recovers(&rig, ingester).await;
    rig.assert_pushed_is_stored().await;
}

#[tokio::test]
async fn a_slow_line_is_asked_for_less_at_a_time() {
    let (rig, ingester) = started_hasty().await;
    // A hundred updates are more than comes through before the deadline, at any length of poll.
    rig.fake.arm(Selector::polls(), Action::Net(Net::Slow(200, 1.0)));
    rig.push_texts(1);
    rig.push_texts(120);
    rig.drained().await;
    recovers(&rig, ingester).await;
    rig.assert_pushed_is_stored().await;
}
