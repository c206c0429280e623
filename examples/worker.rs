//! A worker: takes events out of the inbox, acts on them, and tells the inbox that they are done.
//!
//! ```text
//! INBOXD_URL=http://127.0.0.1:8081 INBOXD_TOKEN=… cargo run --example worker
//! ```
//!
//! With `--once` it ends after the first events. Act first, then ack: a worker that dies in between
//! gets the event again, so what it does should be safe to do twice.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use reqwest::{Client, RequestBuilder, StatusCode};
use serde_json::{Value, json};

const LONGEST_PAUSE: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() -> Result<()> {
    let once = std::env::args().any(|argument| argument == "--once");
    let inbox = Inbox::from_environment()?;
    let mut pause = Duration::from_secs(1);
    loop {
        // Waits up to 20 seconds for events, so an idle inbox costs next to nothing.
        let claim = json!({ "max": 10, "wait": "20s" });
        let deliveries = match inbox.call("claim", &claim).await? {
            Some(claimed) => claimed["deliveries"].as_array().cloned().unwrap_or_default(),
            None => {
                eprintln!("the inbox does not answer; trying again in {pause:?}");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
                continue;
            }
        };
        pause = Duration::from_secs(1);
        for delivery in &deliveries {
            act(delivery);
        }
        let receipts: Vec<&Value> = deliveries.iter().map(|one| &one["receipt"]).collect();
        if receipts.is_empty() {
            continue;
        }
        // If this does not arrive, the events come again when their lease has run out.
        if let Some(acked) = inbox.call("ack", &json!({ "receipts": receipts })).await? {
            for receipt in acked["stale"].as_array().into_iter().flatten() {
                eprintln!("{receipt} came too late: the event was given to somebody else");
            }
            if once {
                return Ok(());
            }
        }
    }
}

/// What this worker does with an event: prints it, escaped, because strangers wrote the texts.
fn act(delivery: &Value) {
    let (event, message) = (&delivery["event"], &delivery["message"]);
    let text = |value: &Value| value.as_str().unwrap_or("-").escape_debug().to_string();
    let sender = &message["sender"];
    let sender = if sender["name"].is_string() { &sender["name"] } else { &sender["id"] };
    let what = if message["text"].is_string() { &message["text"] } else { &event["type"] };
    println!("{}  {}  {}", text(&event["channel"]), text(sender), text(what));
}

/// The private API of a gateway, as one consumer sees it.
struct Inbox {
    client: Client,
    url: String,
    token: Option<String>,
}

impl Inbox {
    fn from_environment() -> Result<Inbox> {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let url = variable("INBOXD_URL").unwrap_or("http://127.0.0.1:8081".to_owned());
        let client = Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(Duration::from_secs(60));
        Ok(Inbox {
            client: client.build()?,
            url: format!("{}/v1/consumers/default", url.trim_end_matches('/')),
            token: variable("INBOXD_TOKEN"),
        })
    }

    /// Makes a call; `None` if the gateway cannot be reached or cannot do it now, which passes.
    async fn call(&self, name: &str, body: &Value) -> Result<Option<Value>> {
        let mut request: RequestBuilder = self.client.post(format!("{}/{name}", self.url));
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        let request = request.header("Content-Type", "application/json").body(body.to_string());
        let Ok(answer) = request.send().await else { return Ok(None) };
        let status = answer.status();
        if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
            return Ok(None);
        }
        let Ok(text) = answer.text().await else { return Ok(None) };
        if !status.is_success() {
            bail!("the inbox refuses to {name} ({status}): {text}");
        }
        Ok(Some(serde_json::from_str(&text).context("the answer is no JSON")?))
    }
}
