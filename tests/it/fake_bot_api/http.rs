//! Requests and answers byte for byte, over real HTTP.

use inboxd::simulate::bot_api::args::{Args, lenient_integer};
use inboxd::simulate::bot_api::bot::Status;
use inboxd::simulate::bot_api::change::{Change, Start};
use inboxd::simulate::bot_api::kind::KINDS;
use inboxd::simulate::bot_api::sample::sample;
use inboxd::simulate::bot_api::token;
use inboxd::simulate::bot_api::update::Update;
use inboxd::simulate::bot_api::{odd, token::BotKey};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{BOT, Rig, within};

#[test]
fn v10_integers_are_read_up_to_the_first_odd_byte_and_wrap() {
    for (text, value) in [
        ("12abc", 12),
        ("abc", 0),
        (" 5", 0),
        ("+5", 0),
        ("1e9", 1),
        ("123.0", 123),
        ("null", 0),
        ("-7", -7),
        ("3000000000", -1_294_967_296),
        ("4294967295", -1),
        ("4294967301", 5),
        ("2147483648", i32::MIN),
    ] {
        assert_eq!(lenient_integer(text), value, "{text}");
    }
}

#[test]
fn v10_arguments_are_clamped_and_the_first_of_a_name_wins() {
    let json = br#"{"limit":"7","timeout":5,"list":["a", 1],"limit":9}"#;
    let (args, fault) = Args::read("limit=500&offset=", "application/json", json);
    assert_eq!(fault, None);
    assert_eq!(args.integer("limit", 100, 1..=100), 100);
    assert_eq!(args.integer("offset", 0, i32::MIN..=i32::MAX), 0);
    assert_eq!(args.get("timeout"), Some("5"));
    assert_eq!(args.get("list"), Some(r#"["a", 1]"#));
}

#[test]
fn v10_a_body_that_cannot_be_read_gives_what_stood_before_the_fault() {
    let (args, fault) = Args::read("", "application/json", br#"{"limit":3,"offset":"#);
    assert_eq!((args.get("limit"), args.get("offset")), (Some("3"), None));
    assert!(fault.is_some());
    let (args, fault) = Args::read("", "text/plain", b"limit=3");
    assert_eq!(args.get("limit"), None);
    assert!(fault.is_some());
}

#[test]
fn v10_forms_are_read_in_both_encodings() {
    let form = "application/x-www-form-urlencoded";
    let (args, _) = Args::read("a=1%202", form, b"b=x+y&a=2");
    assert_eq!((args.get("a"), args.get("b")), (Some("1 2"), Some("x y")));
    let body = b"--B\r\nContent-Disposition: form-data; name=\"offset\"\r\n\r\n12\r\n--B--\r\n";
    let (args, fault) = Args::read("", "multipart/form-data; boundary=B", body);
    assert_eq!((args.get("offset"), fault), (Some("12"), None));
}

#[tokio::test]
async fn v10_an_offset_that_wraps_deletes_all_but_the_last() {
    let rig = Rig::new().await;
    let ids = rig.fake.push_all(BOT, &[Update::text(7, 1, "a"), Update::text(7, 2, "b")]);
    assert_eq!(rig.ids("offset=4294967295").await, [i64::from(ids[1])]);
    assert_eq!(rig.fake.violations().len(), 2, "{:?}", rig.fake.violations());
}

#[tokio::test]
async fn v11_callback_data_that_is_not_utf8_goes_out_raw() {
    let rig = Rig::new().await;
    rig.fake.push(BOT, &odd::raw_callback_data(1));
    let (_, body) = rig.body("getUpdates").await;
    assert!(std::str::from_utf8(&body).is_err());
    let raw = b"\"a\xff\xfe\\u0000z\"";
    assert!(body.windows(raw.len()).any(|window| window == raw));
}

#[tokio::test]
async fn an_update_stands_in_a_batch_as_the_real_server_writes_it() {
    let rig = Rig::new().await;
    rig.fake.change(BOT, &Change::NewSequence(Start::At(874_199_392)));
    rig.fake.push(BOT, &Update::new("poll", &serde_json::json!({ "question": "ü🦀" })));
    rig.fake.push(BOT, &Update::raw("poll", r#""poll":{}"#));
    let (_, body) = rig.body("getUpdates").await;
    assert_eq!(
        String::from_utf8(body).unwrap(),
        "{\"ok\":true,\"result\":[{\"update_id\":874199392,\n\"poll\":{\"question\":\"\\u00fc\\ud83e\
         \\udd80\"}},{\"update_id\":874199393,\n\"poll\":{}}]}"
    );
}

#[tokio::test]
async fn every_kind_has_a_sample_that_is_json_and_every_odd_update_is_sent() {
    let rig = Rig::new().await;
    let all: Vec<&str> = KINDS.to_vec();
    rig.fake.change(BOT, &Change::Allow(serde_json::to_string(&all).unwrap()));
    for kind in KINDS {
        assert!(rig.fake.push(BOT, &sample(kind, 1)).id().is_some(), "{kind}");
    }
    let (_, body) = rig.json("getUpdates").await;
    for (update, kind) in body["result"].as_array().unwrap().iter().zip(KINDS) {
        assert!(update[kind].is_object(), "{update}");
        assert_eq!(update.as_object().unwrap().len(), 2);
        assert!(update[kind]["n"].is_null(), "{kind} has a sample of its own");
    }
    rig.fake.change(BOT, &Change::Drop);
    let odd = odd::all(1);
    for (name, update) in &odd {
        assert!(rig.fake.push(BOT, update).id().is_some(), "{name}");
    }
    rig.body("getUpdates?offset=1").await;
    let journal = rig.fake.journal();
    assert_eq!(journal.answers().last().unwrap().updates.len(), odd.len());
}

#[tokio::test]
async fn bad_tokens_and_paths_are_answered_as_in_the_error_table() {
    let rig = Rig::new().await;
    let base = rig.fake.api_url();
    let cases = [
        ("bot1:short/getMe", 401, "Unauthorized"),
        (
            "bot0123:AAAAAAAAAAAAAAAAAAAAAAAAAAAA/getMe",
            401,
            "Unauthorized: invalid token specified",
        ),
        ("botnonsense/getMe", 401, "Unauthorized: invalid token specified"),
        ("bot77:AAAAAAAAAAAAAAAAAAAAAAAAAAAA/getMe", 401, "Unauthorized"),
        ("bot77:AAAAAAAAAAAAAAAAAAAAAAAAAAAA", 404, "Not Found"),
        ("elsewhere", 404, "Not Found"),
    ];
    for (path, status, description) in cases {
        let response = within(rig.client.get(format!("{base}/{path}")).send()).await.unwrap();
        assert_eq!(response.status().as_u16(), status, "{path}");
        assert_eq!(super::description(&response.bytes().await.unwrap()), description, "{path}");
    }
    assert_eq!(rig.json("getNothing").await.1["description"], "Not Found: method not found");
    let put = within(rig.client.put(rig.url("getMe")).send()).await.unwrap();
    assert_eq!((put.status().as_u16(), put.content_length()), (501, Some(0)));
}

#[tokio::test]
async fn a_bot_that_is_not_served_says_why() {
    let rig = Rig::new().await;
    for (status, code, description) in [
        (Status::Unauthorized, 401, "Unauthorized"),
        (Status::LoggedOut, 400, "Logged out"),
        (Status::Closing, 500, "Internal Server Error: restart"),
        (Status::Filtered, 421, "Misdirected Request: unallowed token specified"),
    ] {
        rig.fake.act(|world, now| world.bot(BOT, now).status = status);
        let (got, body) = rig.json("getUpdates").await;
        assert_eq!((got, body["description"].as_str().unwrap()), (code, description));
    }
}

#[tokio::test]
async fn webhooks_are_set_shown_and_deleted() {
    let rig = Rig::new().await;
    let described = |body: serde_json::Value| body["description"].as_str().unwrap().to_owned();
    rig.fake.push(BOT, &Update::text(7, 1, "x"));
    let set = "setWebhook?url=https://example.org/h";
    assert_eq!(described(rig.json(set).await.1), "Webhook was set");
    assert_eq!(described(rig.json(set).await.1), "Webhook is already set");
    assert_eq!(rig.json("getWebhookInfo").await.1["result"]["url"], "https://example.org/h");
    assert_eq!(rig.json("getUpdates").await.0, 409);
    assert_eq!(described(rig.json("deleteWebhook").await.1), "Webhook was deleted");
    assert_eq!(described(rig.json("deleteWebhook").await.1), "Webhook is already deleted");
    assert_eq!(rig.json("getWebhookInfo").await.1["result"]["pending_update_count"], 1);
    rig.json("deleteWebhook?drop_pending_updates=true").await;
    assert_eq!(rig.fake.pending(BOT), 0);
}

#[tokio::test]
async fn a_rotated_token_is_the_same_bot_and_a_test_bot_is_another() {
    let rig = Rig::new().await;
    let second = "4242:BBBBBBBBBBBBBBBBBBBBBBBBBBBBBB";
    rig.fake.add_bot(BOT, second);
    let test_bot = BotKey { id: BOT, test_dc: true };
    rig.fake.add_bot(test_bot, &token::example(BOT));
    rig.fake.push(BOT, &Update::text(7, 1, "x"));
    let base = rig.fake.api_url();
    let body = async |url: String| {
        within(rig.client.get(url).send()).await.unwrap().bytes().await.unwrap()
    };
    assert!(body(format!("{base}/bot{second}/getUpdates")).await.len() > 50);
    assert_eq!(&body(rig.url("test/getUpdates")).await[..], br#"{"ok":true,"result":[]}"#);
}

#[tokio::test]
async fn requests_may_be_posted_chunked_and_follow_each_other_on_one_connection() {
    let rig = Rig::new().await;
    let mut stream = tokio::net::TcpStream::connect(rig.fake.address()).await.unwrap();
    let path = format!("/bot{}/GETME", token::example(BOT));
    let chunked = format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
         Transfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n"
    );
    let last = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all((chunked + &last).as_bytes()).await.unwrap();
    let mut answers = String::new();
    within(stream.read_to_string(&mut answers)).await.unwrap();
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 2, "{answers}");
    assert_eq!(rig.fake.violations(), Vec::<String>::new());
}
