//! A bot's token is in its requests and nowhere else.

use std::time::Duration;

use inboxd::config::{Secret, Telegram};
use inboxd::receive::telegram::answer::Trouble;
use inboxd::receive::telegram::bot_api::{BotApi, Deadlines};
use inboxd::receive::telegram::state::words;
use inboxd::simulate::bot_api::change::Change;
use inboxd::simulate::bot_api::fault::{Action, Api, Http, Net};
use inboxd::simulate::bot_api::selector::Selector;

use super::database::Database;
use super::process::{Machine, wait_for};
use super::rig::{BOT, NAME};
use crate::support::process::Home;

const CANARY: &str = "AAcanary0token1that2nobody3must4see";

fn token() -> String {
    format!("{BOT}:{CANARY}")
}

fn holds_the_canary(bytes: &[u8]) -> bool {
    bytes.windows(CANARY.len()).any(|window| window == CANARY.as_bytes())
}

#[tokio::test(flavor = "multi_thread")]
async fn no_log_at_any_level_and_no_row_holds_it_whatever_goes_wrong() {
    let machine = Machine::new(false).await;
    let rig = &machine.rig;
    rig.fake.add_bot(BOT, &token());
    let home = Home::new(&super::process::config(rig))
        .env("BOT_TOKEN", &token())
        .env("INBOXD_LOG", "trace");
    rig.fake.client_starts();
    let gateway = home.start();
    rig.push_texts(1);
    rig.drained().await;
    let told = |word: &'static str| {
        wait_for(word, async move || {
            let rows = rig.database.word("SELECT state FROM sources").await;
            rows.as_deref() == Some(word)
        })
    };
    let logged = |part: &'static str| {
        let line = |line: &str| line.contains(part).then_some(());
        gateway.log().wait_for(Duration::from_secs(60), line);
    };
    let strike = |action| {
        rig.fake.clear_faults();
        rig.fake.arm(Selector::any(), action);
    };
    strike(Action::Http(Http::Redirect("http://127.0.0.1:1/x".into())));
    rig.push_texts(1);
    told("network").await;
    strike(Action::Net(Net::Reset));
    logged("cannot be reached");
    // The log says what is the matter now, although something else was before.
    strike(Action::Api(Api::UNAUTHORIZED));
    told("unauthorized").await;
    logged("the token is not accepted");
    rig.fake.clear_faults();
    rig.fake.change(BOT, &Change::Webhook("https://example.org/".into()));
    told("webhook").await;
    let log = gateway.log().clone();
    assert!(gateway.terminate().success());
    assert!(log.wait_for_end(Duration::from_secs(10)));
    assert!(log.text().contains("bot support"), "{}", log.text());
    assert!(!holds_the_canary(&log.bytes()), "{}", log.text());

    let Database::Sqlite { file, .. } = &*rig.database else { unreachable!() };
    for folder in [home.dir(), file.parent().unwrap()] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            assert!(!holds_the_canary(&std::fs::read(&path).unwrap()), "{}", path.display());
        }
    }
    rig.assert_careful();
    let journal = rig.fake.journal();
    assert!(journal.requests().all(|(_, one)| one.headers.iter().all(|h| !h.1.contains(CANARY))));
    assert!(journal.requests().any(|(_, request)| request.target.contains(CANARY)));
}

#[tokio::test]
async fn no_debug_and_no_error_holds_it() {
    let bot = Telegram::new(NAME, Secret::new(token()));
    assert!(!format!("{bot:?}").contains(CANARY));
    let second = Duration::from_secs(1);
    let deadlines = Deadlines { connect: second, answer: second, scale: 1.0 };
    // Nobody listens on a port that was just given back.
    let port = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let url = format!("http://{port}").parse().unwrap();
    let api = BotApi::new(url, Secret::new(token()), deadlines).unwrap();
    assert!(!format!("{api:?}").contains(CANARY));
    let trouble = api.get_me().await.unwrap_err();
    assert_eq!(trouble, Trouble::Network("cannot connect"));
    for text in [format!("{trouble:?}"), format!("{:?}", words(&trouble, NAME))] {
        assert!(!text.contains(CANARY), "{text}");
    }
}
