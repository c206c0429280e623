//! Bad answers: each is paced, told with its remedy, and recovered from.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use inboxd::config::Secret;
use inboxd::receive::telegram::answer::Trouble;
use inboxd::receive::telegram::bot_api::{BotApi, Deadlines};
use inboxd::simulate::bot_api::answer::{
    TERMINATED_BY_POLL, TERMINATED_BY_WEBHOOK, WEBHOOK_ACTIVE,
};
use inboxd::simulate::bot_api::fault::{Action, Api, Http, Net};
use inboxd::simulate::bot_api::selector::Selector;
use inboxd::simulate::bot_api::{FakeBotApi, Options, token};

use super::pacing::{recovers, requests_in_a_minute, started, started_hasty};
use super::rig::{BOT, NAME};

/// What is done to every request, the word for it and a part of the sentence.
#[derive(Clone)]
struct Case(Action, &'static str, &'static str);

/// Goes through one case from a good state to a good state.
async fn go_through(Case(action, word, part): Case) {
    let name = format!("{action:?}").chars().take(80).collect::<String>();
    let (rig, ingester) = match word {
        "network" => started_hasty().await,
        // On a busy machine an answer that is in time must not count as none.
        _ => started().await,
    };
    rig.fake.arm(Selector::any(), action);
    rig.push_texts(2);
    let detail = ingester.state_is(word).await;
    assert!(detail.contains(part), "{name}: {detail}");
    let requests = requests_in_a_minute(&rig).await;
    assert!(requests <= 30, "{name}: {requests} requests in a minute");
    assert_eq!(ingester.source(NAME).await.state.name, word, "{name}");
    recovers(&rig, ingester).await;
    rig.assert_pushed_is_stored().await;
}

/// Some at once, because each takes a minute of the server's; not all, because time runs fast here and
/// what waits for a core would seem to take long.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_is_paced_told_and_recovered_from() {
    let cases = [broken(), foreign(), misshapen(), errors(), requests_to_wait()].concat();
    for some in cases.chunks(12) {
        let tasks = some.iter().cloned().map(|case| tokio::spawn(go_through(case)));
        for done in join_all(tasks).await {
            done.unwrap();
        }
    }
}

fn network(action: Action) -> Case {
    Case(action, "network", "check")
}

/// Connections that break or say nothing.
fn broken() -> Vec<Case> {
    let nets = [
        Net::Reset,
        Net::Close,
        Net::ResetInHead(9),
        Net::ResetInBody(9),
        Net::Blackhole,
        Net::StallInBody(9),
        Net::Late(100.0),
        Net::Down(3.0),
    ];
    nets.into_iter().map(|net| network(Action::Net(net))).collect()
}

/// Answers that are not the server's.
fn foreign() -> Vec<Case> {
    let body = |status, text: &'static [u8]| Http::Json(status, Bytes::from_static(text));
    let foreign = [
        Http::Html(200),
        Http::Html(413),
        Http::Html(500),
        Http::Html(502),
        Http::Html(504),
        Http::ForeignNotFound,
        Http::Empty,
        Http::Truncated(true),
        Http::Truncated(false),
        Http::Gzip,
        Http::ByteOrderMark,
        body(200, b"[]"),
        body(401, b"{\"error\":\"denied\"}"),
    ];
    foreign.into_iter().map(|http| network(Action::Http(http))).collect()
}

/// Answers of another form.
fn misshapen() -> Vec<Case> {
    let odd = |http| Case(Action::Http(http), "odd_answer", "asked again");
    vec![
        odd(Http::no_result()),
        odd(Http::result("{}")),
        odd(Http::result("null")),
        odd(Http::result("\"x\"")),
        Case(Action::Http(Http::error_ok_true()), "server", "500"),
        Case(Action::Http(Http::ok_false()), "refused", "asked again"),
    ]
}

/// Errors of the server.
fn errors() -> Vec<Case> {
    let unauthorized = |api| Case(Action::Api(api), "unauthorized", "BotFather");
    let answer =
        |status, text: &'static [u8]| Action::Http(Http::Json(status, Bytes::from_static(text)));
    let conflict = |text| Action::Api(Api::Conflict(text));
    let webhook = "inboxd telegram delete-webhook support";
    vec![
        unauthorized(Api::UNAUTHORIZED),
        unauthorized(Api::NOT_FOUND),
        Case(Action::Api(Api::MISDIRECTED), "misdirected", "api_url"),
        Case(Action::Api(Api::LOGGED_OUT), "logged_out", "wait"),
        Case(Action::Api(Api::RESTARTING), "server", "500"),
        Case(Action::Api(Api::Error(403, "Forbidden")), "forbidden", "BotFather"),
        Case(
            answer(502, br#"{"ok":false,"error_code":502,"description":"Bad Gateway"}"#),
            "server",
            "502",
        ),
        Case(conflict(TERMINATED_BY_POLL), "conflict", "gaps list --source support"),
        Case(conflict(WEBHOOK_ACTIVE), "webhook", webhook),
        Case(conflict(TERMINATED_BY_WEBHOOK), "webhook", webhook),
    ]
}

/// Requests to wait, however they are put.
fn requests_to_wait() -> Vec<Case> {
    let cases = [
        (Some("5"), Some("5"), "", "5 s"),
        (Some("1"), None, "", "1 s"),
        (None, Some("7"), "", "7 s"),
        (None, None, "Too Many Requests: retry after 9", "9 s"),
        (Some("\"5\""), None, "", "5 s"),
        (Some("0"), None, "", "asks to wait"),
        (Some("-1"), None, "", "asks to wait"),
        (Some("1e9"), None, "", "asks to wait"),
        (Some("86400"), None, "", "asks to wait"),
        (None, None, "Too Many Requests", "asks to wait"),
    ];
    let case = |(parameter, header, description, part)| {
        let action = Action::Api(Api::TooMany { parameter, header, description });
        Case(action, "throttled", part)
    };
    cases.into_iter().map(case).collect()
}

#[tokio::test]
async fn an_answer_without_an_end_is_not_read_to_it() {
    let fake = FakeBotApi::start(Options::default()).await.unwrap();
    fake.add_bot(BOT, &token::example(BOT));
    fake.arm(Selector::any(), Action::Http(Http::Huge(20 << 20)));
    let long = Duration::from_secs(30);
    let deadlines = Deadlines { connect: long, answer: long, scale: 1.0 };
    let token = Secret::new(token::example(BOT));
    let api = BotApi::new(fake.api_url().parse().unwrap(), token, deadlines).unwrap();
    assert_eq!(api.get_me().await.unwrap_err(), Trouble::Odd("an answer of more than 16 MiB"));
    fake.shut_down().await;
}

#[tokio::test]
async fn a_server_that_is_gone() {
    let (rig, ingester) = started().await;
    rig.fake.refuse_connections().await;
    rig.fake.break_connections();
    let detail = ingester.state_is("network").await;
    assert!(detail.contains("cannot be reached"), "{detail}");
    assert_eq!(requests_in_a_minute(&rig).await, 0);
    recovers(&rig, ingester).await;
    rig.assert_pushed_is_stored().await;
}

#[tokio::test]
async fn a_token_that_is_refused_most_of_the_time_still_brings_everything() {
    let (rig, ingester) = started().await;
    let most = Selector::polls().pattern(18, 20).times(36);
    rig.fake.arm(most, Action::Api(Api::UNAUTHORIZED));
    for _ in 0..4 {
        rig.push_texts(30);
    }
    ingester.state_is("unauthorized").await;
    recovers(&rig, ingester).await;
    rig.assert_pushed_is_stored().await;
}

#[tokio::test]
async fn an_answer_that_is_lost_after_the_server_acted_changes_nothing() {
    let (rig, ingester) = started().await;
    for hidden in [Action::Http(Http::Html(502)), Action::Api(Api::RESTARTING)] {
        let lost = Action::AfterProcessing(Box::new(hidden));
        rig.fake.arm(Selector::polls().pattern(1, 2).times(3), lost);
        rig.push_texts(150);
        rig.drained().await;
        rig.fake.clear_faults();
    }
    recovers(&rig, ingester).await;
    rig.assert_pushed_is_stored().await;
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = FakeBotApi::start(Options::default()).await.unwrap();
    let (rig, ingester) = started().await;
    rig.fake.arm(Selector::any(), Action::Http(Http::Redirect(elsewhere.api_url())));
    rig.push_texts(1);
    ingester.state_is("network").await;
    requests_in_a_minute(&rig).await;
    recovers(&rig, ingester).await;
    assert_eq!(elsewhere.journal().requests().count(), 0, "no token goes there");
    elsewhere.shut_down().await;
}

/// A state says what is the matter now, not what was first.
#[tokio::test]
async fn one_trouble_after_another_is_told_each_time() {
    let (rig, ingester) = started().await;
    for (action, word) in [
        (Action::Http(Http::Html(502)), "network"),
        (Action::Api(Api::RESTARTING), "server"),
        (Action::Api(Api::UNAUTHORIZED), "unauthorized"),
        (Action::Http(Http::no_result()), "odd_answer"),
    ] {
        rig.fake.clear_faults();
        rig.fake.arm(Selector::any(), action);
        rig.push_texts(1);
        ingester.state_is(word).await;
    }
    recovers(&rig, ingester).await;
    rig.assert_pushed_is_stored().await;
}
