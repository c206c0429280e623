//! Every class of fault does what its name says.

use std::time::{Duration, Instant};

use inboxd::simulate::bot_api::answer;
use inboxd::simulate::bot_api::change::{Change, Start};
use inboxd::simulate::bot_api::fault::{Action, Api, Http, Ids, Net};
use inboxd::simulate::bot_api::selector::Selector;
use inboxd::simulate::bot_api::update::Update;
use inboxd::simulate::bot_api::{FakeBotApi, Options};

use super::{BOT, NOTHING, Rig, within};

async fn rig_with(action: Action) -> Rig {
    let rig = Rig::new().await;
    rig.fake.change(BOT, &Change::NewSequence(Start::At(500)));
    rig.fake.push_all(BOT, &[Update::text(7, 1, "a"), Update::text(7, 2, "b")]);
    rig.fake.arm(Selector::polls().once(), action);
    rig
}

/// Whether the request or its answer breaks off.
async fn breaks(rig: &Rig) -> bool {
    match rig.get("getUpdates").await {
        Ok(response) => within(response.bytes()).await.is_err(),
        Err(_) => true,
    }
}

#[tokio::test]
async fn connections_break_where_they_are_told_and_the_next_is_good() {
    for net in [
        Net::Reset,
        Net::Close,
        Net::ResetInHead(0),
        Net::ResetInHead(20),
        Net::ResetInBody(0),
        Net::ResetInBody(30),
    ] {
        let rig = rig_with(Action::Net(net)).await;
        assert!(breaks(&rig).await, "{net:?}");
        assert_eq!(rig.ids("offset=1").await, [500, 501], "{net:?}");
        let wholes: Vec<bool> = rig.fake.journal().answers().map(|answer| answer.whole).collect();
        assert_eq!(wholes, [false, true], "{net:?}");
        assert_eq!(rig.fake.journal().faults_by_class()["net"], 1);
    }
}

#[tokio::test]
async fn a_silent_server_is_left_by_its_client_and_the_request_is_then_over() {
    for net in [Net::Blackhole, Net::StallInBody(10)] {
        let rig = rig_with(Action::Net(net)).await;
        let request = rig.client.get(rig.url("getUpdates")).timeout(Duration::from_millis(150));
        let answer = async { request.send().await?.bytes().await };
        assert!(within(answer).await.unwrap_err().is_timeout(), "{net:?}");
        within(rig.fake.until(|world| world.journal().in_flight() == 0)).await;
    }
}

#[tokio::test]
async fn late_and_slow_answers_come_whole() {
    for net in [Net::Late(5.0), Net::Slow(100, 1.0)] {
        let rig = rig_with(Action::Net(net)).await;
        let start = Instant::now();
        assert_eq!(rig.ids("").await, [500, 501]);
        assert!(start.elapsed() >= Duration::from_millis(80), "{net:?}");
    }
}

#[tokio::test]
async fn a_repeated_request_throws_its_own_successor_out() {
    let rig = Rig::new().await;
    rig.fake.arm(Selector::polls().once(), Action::Net(Net::Twice));
    assert_eq!(rig.ids("timeout=4").await, NOTHING);
    let (status, body) = rig.json("getUpdates?timeout=50").await;
    assert_eq!((status, body["description"].as_str().unwrap()), (409, answer::TERMINATED_BY_POLL));
}

#[tokio::test]
async fn an_overtaken_request_is_processed_after_the_one_behind_it() {
    let rig = rig_with(Action::Net(Net::Overtaken)).await;
    let newer = async {
        within(rig.fake.until(|world| world.journal().in_flight() == 1)).await;
        rig.ids("limit=2&offset=501").await
    };
    let (older, newer) = tokio::join!(rig.ids("timeout=1"), newer);
    assert_eq!((older, newer), (vec![501], vec![501]));
}

#[tokio::test]
async fn nothing_listens_for_a_while_and_then_on_the_same_port() {
    let rig = rig_with(Action::Net(Net::Down(10.0))).await;
    assert!(breaks(&rig).await);
    let refused = async {
        loop {
            match tokio::net::TcpStream::connect(rig.fake.address()).await {
                Ok(_) => return,
                Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused),
            }
        }
    };
    within(refused).await;
    assert_eq!(rig.ids("").await, [500, 501]);

    rig.fake.refuse_connections().await;
    rig.fake.break_connections();
    assert!(breaks(&rig).await);
    rig.fake.accept_connections().await;
    rig.fake.refuse_next(1);
    assert!(tokio::net::TcpStream::connect(rig.fake.address()).await.is_ok());
    assert_eq!(rig.ids("offset=1").await, [500, 501]);
}

#[tokio::test]
async fn foreign_and_damaged_answers_have_the_shape_that_is_asked_for() {
    let html = |status| Action::Http(Http::Html(status));
    for (action, status, part) in [
        (html(502), 502, "<h1>502 Bad Gateway</h1>"),
        (html(504), 504, "504 Gateway Time-out"),
        (html(200), 200, "<html>"),
        (Action::Http(Http::ForeignNotFound), 404, "<!doctype html>"),
        (Action::Http(Http::ok_false()), 200, r#""ok":false"#),
        (Action::Http(Http::error_ok_true()), 500, r#""ok":true"#),
        (Action::Http(Http::no_result()), 200, r#"{"ok":true}"#),
        (Action::Http(Http::result("null")), 200, r#""result":null"#),
        (Action::Http(Http::instantly_empty()), 200, r#""result":[]"#),
        (Action::Http(Http::Empty), 200, ""),
        (Action::Http(Http::Truncated(true)), 200, r#"{"ok":true,"result":[{"#),
        (Action::Http(Http::Chunked), 200, r#""update_id":501"#),
        (Action::Http(Http::ByteOrderMark), 200, "\u{feff}{"),
        (Action::Http(Http::Gzip), 200, ""),
        (Action::Http(Http::Huge(3 << 20)), 200, "   ]}"),
    ] {
        let rig = rig_with(action.clone()).await;
        let (got, body) = rig.body("getUpdates").await;
        assert_eq!(got, status, "{action:?}");
        let body = String::from_utf8_lossy(&body);
        assert!(body.contains(part), "{action:?}");
        assert_eq!(rig.fake.pending(BOT), 2);
        assert_eq!(rig.fake.journal().faults_by_class()["http"], 1);
    }
}

#[tokio::test]
async fn a_wrong_length_breaks_off_and_gzip_is_gzip() {
    let rig = rig_with(Action::Http(Http::Truncated(false))).await;
    assert!(breaks(&rig).await);
    let rig = rig_with(Action::Http(Http::Gzip)).await;
    let response = rig.get("getUpdates").await.unwrap();
    assert_eq!(response.headers()["content-encoding"], "gzip");
    let body = within(response.bytes()).await.unwrap();
    // RFC 1952: magic, then after the one stored block and the last empty one the checksum of
    // what is inside and its length.
    let inside = &body[15..body.len() - 13];
    assert_eq!(body[..3], [0x1f, 0x8b, 8]);
    assert!(inside.starts_with(br#"{"ok":true"#) && inside.ends_with(b"]}"));
    let length = u32::try_from(inside.len()).unwrap();
    assert_eq!(body[body.len() - 4..], length.to_le_bytes());
}

#[tokio::test]
async fn a_redirect_points_elsewhere_and_a_careful_client_stays() {
    let elsewhere = FakeBotApi::start(Options::default()).await.unwrap();
    let rig = rig_with(Action::Http(Http::Redirect(elsewhere.api_url()))).await;
    let response = rig.get("getUpdates").await.unwrap();
    assert_eq!(response.status().as_u16(), 302);
    assert_eq!(response.headers()["location"], elsewhere.api_url().as_str());
    assert_eq!(elsewhere.journal().requests().count(), 0);
    elsewhere.shut_down().await;
}

#[tokio::test]
async fn an_answer_lost_after_processing_has_confirmed() {
    let lost = Action::AfterProcessing(Box::new(Action::Http(Http::Html(502))));
    let rig = rig_with(lost).await;
    assert_eq!(rig.body("getUpdates?offset=501").await.0, 502);
    assert_eq!(rig.fake.pending(BOT), 1);
}

#[tokio::test]
async fn errors_of_the_server_carry_what_they_are_told_to() {
    let rig = rig_with(Action::Api(Api::UNAUTHORIZED)).await;
    assert_eq!(rig.json("getUpdates").await.1["error_code"], 401);
    let too_many = |parameter, header| {
        Action::Api(Api::TooMany {
            parameter,
            header,
            description: "Too Many Requests: retry after 5",
        })
    };
    for (parameter, header) in [
        (Some("5"), Some("5")),
        (None, Some("3600")),
        (None, None),
        (Some("-1"), None),
        (Some("\"5\""), Some("0")),
    ] {
        rig.fake.arm(Selector::polls().once(), too_many(parameter, header));
        let response = rig.get("getUpdates").await.unwrap();
        assert_eq!(response.status().as_u16(), 429);
        let got = response.headers().get("retry-after").map(|v| v.to_str().unwrap().to_owned());
        assert_eq!(got.as_deref(), header);
        let body: serde_json::Value =
            serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
        let expected = parameter.map(|text| serde_json::from_str(text).unwrap());
        assert_eq!(body["parameters"].get("retry_after"), expected.as_ref());
    }
}

#[tokio::test]
async fn injected_conflicts_have_the_real_delay() {
    let rig = Rig::new().await;
    let conflict = Action::Api(Api::Conflict(answer::TERMINATED_BY_POLL));
    rig.fake.arm(Selector::polls().times(2), conflict);
    let start = Instant::now();
    assert_eq!(rig.body("getUpdates").await.0, 409);
    assert_eq!(rig.body("getUpdates").await.0, 409);
    // 3 s at a scale of 0.02.
    assert!(start.elapsed() >= Duration::from_millis(60));
}

#[tokio::test]
async fn ids_are_spoilt_as_told() {
    for (ids, expected) in [
        (Ids::Missing, r#"[{"message""#),
        (Ids::Json("\"7\""), "[{\"update_id\":\"7\",\n"),
        (Ids::Json("2147483648"), "[{\"update_id\":2147483648,\n"),
        (Ids::Duplicate, "[{\"update_id\":500,\n"),
        (Ids::Descending, "[{\"update_id\":501,\n"),
    ] {
        let rig = rig_with(Action::Ids(ids)).await;
        let (_, body) = rig.body("getUpdates").await;
        let body = String::from_utf8(body).unwrap();
        assert!(body.contains(expected), "{ids:?}: {body}");
        serde_json::from_str::<serde_json::Value>(&body).unwrap();
        let sent = rig.fake.journal().answers().last().unwrap().updates.len();
        assert_eq!(sent, if matches!(ids, Ids::Duplicate) { 3 } else { 2 });
    }
}

#[tokio::test]
async fn the_queue_changes_just_before_the_request_is_looked_at() {
    for (change, left) in [
        (Change::ExpireNow, vec![]),
        (Change::Thief(1), vec![501]),
        (Change::Drop, vec![]),
        (Change::RollBack(1), vec![500]),
        (Change::Repeat, vec![500, 501, 502]),
        (Change::Restart { keep_queue: true }, vec![500, 501]),
        (Change::Restart { keep_queue: false }, vec![]),
        (Change::NewSequence(Start::At(9)), vec![]),
    ] {
        let rig = rig_with(Action::Queue(change.clone())).await;
        assert_eq!(rig.ids("").await, left, "{change:?}");
    }
}

#[tokio::test]
async fn a_snapshot_brings_back_what_was_confirmed() {
    let rig = Rig::new().await;
    let id = rig.fake.push(BOT, &Update::text(7, 1, "a")).id().unwrap();
    let snapshot = rig.fake.act(|world, now| world.snapshot(BOT, now));
    assert_eq!(rig.ids(&format!("offset={}", id + 1)).await, NOTHING);
    rig.fake.change(BOT, &Change::Restore(snapshot));
    assert_eq!(rig.ids("").await, [i64::from(id)]);
}

#[tokio::test]
async fn a_restart_answers_the_held_poll_and_a_full_queue_is_full() {
    let rig = Rig::new().await;
    let restart = async {
        within(rig.fake.until(|world| world.find(BOT).is_some_and(|bot| bot.is_held()))).await;
        rig.fake.change(BOT, &Change::Restart { keep_queue: true });
    };
    let (answer, ()) = tokio::join!(rig.json("getUpdates?timeout=50"), restart);
    assert_eq!(answer.1["parameters"]["retry_after"], 5);
    rig.fake.change(BOT, &Change::Fill);
    assert_eq!(rig.fake.pending(BOT), 100_000);
}

#[tokio::test]
async fn selectors_strike_the_requests_they_name() {
    let error = || Action::Api(Api::NOT_FOUND);
    let cases: [(Selector, [u16; 5]); 6] = [
        (Selector::method("getMe").nth(2), [200, 404, 200, 200, 200]),
        (Selector::method("getMe").every(2), [404, 200, 404, 200, 404]),
        (Selector::method("getMe").pattern(2, 3), [404, 404, 200, 404, 404]),
        (Selector::any().times(2), [404, 404, 200, 200, 200]),
        (Selector::any().with(|args| args.get("n") == Some("3")), [200, 200, 200, 404, 200]),
        (Selector::polls(), [200, 200, 200, 200, 200]),
    ];
    for (selector, expected) in cases {
        let rig = Rig::new().await;
        rig.fake.arm(selector.clone(), error());
        let mut got = Vec::new();
        for n in 0..5 {
            got.push(rig.body(&format!("getMe?n={n}")).await.0);
        }
        assert_eq!(got, expected, "{selector:?}");
    }
    let rig = Rig::new().await;
    rig.fake.arm(Selector::any().chance(0.5), error());
    let mut struck = 0;
    for _ in 0..40 {
        struck += u32::from(rig.body("getMe").await.0 == 404);
    }
    assert!((8..=32).contains(&struck), "{struck}");
    rig.fake.clear_faults();
    assert_eq!(rig.body("getMe").await.0, 200);
}
