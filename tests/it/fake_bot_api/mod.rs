//! The fake Bot API server against what is known of the real one.
//!
//! V1 to V17 are the answers that the real server's own queue code gave, or a model of its
//! timing rules; a test's name begins with the number.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "clippy knows tests, but not the functions that tests share"
)]

mod faults;
mod http;
mod oracles;
mod polls;
mod queue;
mod stops;

use std::time::Duration;

use inboxd::simulate::bot_api::answer::Reply;
use inboxd::simulate::bot_api::args::Args;
use inboxd::simulate::bot_api::bot::RequestId;
use inboxd::simulate::bot_api::change::{Change, Start};
use inboxd::simulate::bot_api::rules::Timing;
use inboxd::simulate::bot_api::update::Update;
use inboxd::simulate::bot_api::world::{Effect, World};
use inboxd::simulate::bot_api::{FakeBotApi, Options, token};

const BOT: i64 = 4242;

/// An empty batch, as [`Server`] and as [`Rig`] give it.
const NO_IDS: [i32; 0] = [];
const NOTHING: [i64; 0] = [];

/// The server without sockets, at real scale and with time as a number.
struct Server {
    world: World,
    requests: RequestId,
    /// Request, moment and what it brought.
    answers: Vec<(RequestId, f64, Brought)>,
}

#[derive(Clone, Debug, PartialEq)]
enum Brought {
    Ids(Vec<i32>),
    Error(u16, String),
}

impl Server {
    fn new() -> Self {
        Self { world: World::new(Timing::default(), 7), requests: 0, answers: Vec::new() }
    }

    /// A server whose queue begins at `first` with `count` messages.
    fn with(first: i32, count: i64, now: f64) -> Self {
        let mut server = Self::new();
        server.world.change(BOT, &Change::NewSequence(Start::At(first)), now);
        server.push(count, now);
        server
    }

    fn push(&mut self, count: i64, now: f64) {
        for n in 0..count {
            self.world.push(BOT, &Update::text(7, n, "x"), now);
        }
    }

    /// Sends a request at `now` and returns its number.
    fn send(&mut self, now: f64, args: &[(&str, &str)]) -> RequestId {
        self.run_to(now);
        self.requests += 1;
        let args: Args = args.iter().copied().collect();
        self.world.get_updates(BOT, self.requests, &args, now);
        self.run_to(now);
        self.requests
    }

    /// Lets the time pass up to `now`.
    fn run_to(&mut self, now: f64) {
        self.world.advance(now);
        for effect in self.world.take_effects() {
            let Effect::Answered(answer) = effect else { continue };
            let brought = match &answer.reply {
                Reply::Updates(updates) => Brought::Ids(updates.iter().map(|u| u.0).collect()),
                Reply::Plain(plain) => Brought::Error(plain.status, description(&plain.body)),
            };
            self.answers.push((answer.request, answer.at, brought));
        }
    }

    fn answer(&self, request: RequestId) -> Option<(f64, Brought)> {
        let found = self.answers.iter().find(|answer| answer.0 == request)?;
        Some((found.1, found.2.clone()))
    }

    /// Sends a request that is answered at once, and returns the ids.
    fn ids(&mut self, now: f64, args: &[(&str, &str)]) -> Vec<i32> {
        let request = self.send(now, args);
        match self.answer(request) {
            Some((_, Brought::Ids(ids))) => ids,
            other => panic!("not a batch: {other:?}"),
        }
    }

    fn queued(&self) -> Vec<i32> {
        self.world.find(BOT).map(|bot| bot.queue.ids().collect()).unwrap_or_default()
    }
}

fn description(body: &[u8]) -> String {
    let body: serde_json::Value = serde_json::from_slice(body).unwrap();
    body["description"].as_str().unwrap_or_default().to_owned()
}

/// A running fake with one bot, and a client for it.
struct Rig {
    fake: FakeBotApi,
    client: reqwest::Client,
}

impl Rig {
    async fn new() -> Self {
        Self::scaled(0.02).await
    }

    async fn scaled(scale: f64) -> Self {
        let options = Options { timing: Timing::scaled(scale), ..Options::default() };
        let fake = FakeBotApi::start(options).await.unwrap();
        fake.add_bot(BOT, &token::example(BOT));
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .unwrap();
        Self { fake, client }
    }

    fn url(&self, method_and_query: &str) -> String {
        format!("{}/bot{}/{method_and_query}", self.fake.api_url(), token::example(BOT))
    }

    async fn get(&self, method_and_query: &str) -> reqwest::Result<reqwest::Response> {
        within(self.client.get(self.url(method_and_query)).send()).await
    }

    /// Status and body of a request that is answered.
    async fn body(&self, method_and_query: &str) -> (u16, Vec<u8>) {
        let response = self.get(method_and_query).await.unwrap();
        let status = response.status().as_u16();
        (status, within(response.bytes()).await.unwrap().to_vec())
    }

    /// Status and JSON of a request that is answered.
    async fn json(&self, method_and_query: &str) -> (u16, serde_json::Value) {
        let (status, body) = self.body(method_and_query).await;
        (status, serde_json::from_slice(&body).unwrap())
    }

    /// The ids that a poll brings.
    async fn ids(&self, query: &str) -> Vec<i64> {
        let (status, body) = self.json(&format!("getUpdates?{query}")).await;
        assert_eq!(status, 200, "{body}");
        body["result"]
            .as_array()
            .unwrap()
            .iter()
            .map(|u| u["update_id"].as_i64().unwrap())
            .collect()
    }
}

/// A limit that is met only if something hangs.
async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), future).await.expect("this hangs")
}
