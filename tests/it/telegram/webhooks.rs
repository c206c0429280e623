//! A webhook that is set while the bot is polled.

use inboxd::config::Secret;
use inboxd::receive::telegram::bot_api::{BotApi, Deadlines};
use inboxd::simulate::bot_api::change::Change;
use inboxd::simulate::bot_api::token;
use std::time::Duration;

use super::pacing::{recovers, requests_in_a_minute, started};
use super::rig::BOT;

#[tokio::test]
async fn it_is_told_with_its_host_never_removed_unasked_and_polls_go_on_after_it() {
    let (rig, ingester) = started().await;
    let url = "https://hooks.example.org/path-with-a-secret";
    rig.fake.change(BOT, &Change::Webhook(url.into()));
    rig.push_texts(3);
    let detail = ingester.state_is("webhook").await;
    assert!(detail.contains("hooks.example.org"), "{detail}");
    assert!(!detail.contains("path-with-a-secret"), "{detail}");
    assert!(detail.contains("inboxd telegram delete-webhook support"), "{detail}");
    let requests = requests_in_a_minute(&rig).await;
    assert!(requests <= 30, "{requests}");
    let still = rig.fake.look(|world| world.find(BOT).unwrap().webhook_url.clone());
    assert_eq!(still, url);
    let called = |method: &str| {
        let journal = rig.fake.journal();
        journal.requests().filter(|(_, request)| request.method == method).count()
    };
    assert_eq!((called("deletewebhook"), called("setwebhook")), (0, 0));

    let second = Duration::from_secs(10);
    let deadlines = Deadlines { connect: second, answer: second, scale: 1.0 };
    let token = Secret::new(token::example(BOT));
    let api = BotApi::new(rig.fake.api_url().parse().unwrap(), token, deadlines).unwrap();
    assert_eq!(api.get_webhook_info().await.unwrap().host().as_deref(), Some("hooks.example.org"));
    api.delete_webhook().await.unwrap();
    assert_eq!(rig.fake.pending(BOT), 3, "what waits is kept");
    assert_eq!(api.get_webhook_info().await.unwrap().host(), None);
    recovers(&rig, ingester).await;
    rig.assert_pushed_is_stored().await;
}

#[tokio::test]
async fn one_that_stood_before_the_start_is_waited_for() {
    let rig = super::rig::Rig::new(super::database::Database::sqlite()).await;
    rig.push_texts(2);
    rig.fake.change(BOT, &Change::Webhook("https://hooks.example.org/".into()));
    let ingester = rig.start().await;
    ingester.state_is("webhook").await;
    rig.fake.change(BOT, &Change::Webhook(String::new()));
    recovers(&rig, ingester).await;
    rig.assert_pushed_is_stored().await;
}
