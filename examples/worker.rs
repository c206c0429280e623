//! A worker: takes events out of the inbox, acts on them, and tells the inbox that they are done.
//!
//! ```text
//! INBOXD_URL=http://127.0.0.1:8081 INBOXD_TOKEN=… cargo run --example worker
//! ```
//!
//! It prints each event, which is safe to do twice: a worker that dies before its ack gets the event
//! again. With `ANSWERS=file` it also answers each message through an outside API, which is not:
//! there it records the act around it. With `--once` it ends after the first events, with
//! `--die-after-acting` where it hurts most.

use std::io::Write as _;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};

const LONGEST_PAUSE: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() -> Result<()> {
    let inbox = Inbox::from_environment()?;
    let mut pause = Duration::from_secs(1);
    loop {
        match work(&inbox).await {
            Ok(worked) if worked && has_argument("--once") => return Ok(()),
            Ok(_) => pause = Duration::from_secs(1),
            Err(Trouble::Refused(error)) => return Err(error),
            Err(Trouble::Unavailable | Trouble::Stale) => {
                eprintln!("the inbox does not answer; trying again in {pause:?}");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

fn has_argument(name: &str) -> bool {
    std::env::args().any(|argument| argument == name)
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Claims, acts and acks once; tells whether there was something to do.
async fn work(inbox: &Inbox) -> Result<bool, Trouble> {
    // Waits up to 20 seconds for events, so an idle inbox costs next to nothing.
    let claimed = inbox.call("claim", json!({ "max": 10, "wait": "20s" })).await?;
    let deliveries = claimed["deliveries"].as_array().cloned().unwrap_or_default();
    let (mut done, mut busy) = (Vec::new(), Vec::new());
    for delivery in &deliveries {
        let receipt = &delivery["receipt"];
        match act(inbox, delivery).await {
            Ok(true) => done.push(receipt),
            Ok(false) => busy.push(receipt),
            Err(Trouble::Stale) => tell_stale(receipt),
            Err(trouble) => return Err(trouble),
        }
    }
    if !busy.is_empty() {
        inbox.call("nack", json!({ "receipts": busy, "delay": "5s" })).await?;
    }
    if !deliveries.is_empty() {
        // If this does not arrive, the events come again when their lease has run out.
        let acked = inbox.call("ack", json!({ "receipts": done })).await?;
        acked["stale"].as_array().into_iter().flatten().for_each(tell_stale);
    }
    Ok(!deliveries.is_empty())
}

fn tell_stale(receipt: &Value) {
    eprintln!("{receipt} came too late: the event was given to somebody else");
}

/// What this worker does with an event: prints it, escaped, because strangers wrote the texts.
/// Tells whether the event is done.
async fn act(inbox: &Inbox, delivery: &Value) -> Result<bool, Trouble> {
    let (event, message) = (&delivery["event"], &delivery["message"]);
    let text = |value: &Value| value.as_str().unwrap_or("-").escape_debug().to_string();
    let sender = &message["sender"];
    let sender = if sender["name"].is_string() { &sender["name"] } else { &sender["id"] };
    let what = if message["text"].is_string() { &message["text"] } else { &event["type"] };
    println!("{}  {}  {}", text(&event["channel"]), text(sender), text(what));
    let to_us = message["kind"] == "message" && message["direction"] != "outbound";
    let Some(file) = variable("ANSWERS").filter(|_| to_us) else { return Ok(true) };
    let key = format!("answer:{}", event["id"].as_str().unwrap_or_default());
    let said = format!("You said: {}", what.as_str().unwrap_or_default());
    answer(inbox, &delivery["receipt"], &key, &Outside { file }, &said).await
}

/// Sends an answer once, whatever dies meanwhile. Tells whether it is sent.
async fn answer(
    inbox: &Inbox,
    receipt: &Value,
    key: &str,
    outside: &Outside,
    text: &str,
) -> Result<bool, Trouble> {
    let begin = json!({ "key": key, "receipt": receipt });
    let finish = |token: &Value, sent| json!({ "key": key, "token": token, "result": sent });
    let mut effect = inbox.call("effects/begin", begin.clone()).await?;
    if effect["state"] == "in_doubt" {
        // A worker began and was not heard of again. Only the outside knows whether it acted.
        let token = &effect["token"];
        if let Some(sent) = outside.find_sent(key)? {
            inbox.call("effects/finish", finish(token, sent)).await?;
        } else {
            inbox.call("effects/abandon", json!({ "key": key, "token": token })).await?;
            effect = inbox.call("effects/begin", begin).await?;
        }
    }
    if effect["state"] == "begun" {
        let sent = outside.send(key, text)?;
        if has_argument("--die-after-acting") {
            std::process::exit(9);
        }
        inbox.call("effects/finish", finish(&effect["token"], sent)).await?;
    }
    Ok(effect["state"] != "running")
}

/// The outside API of this example: a file of what was sent. A real one takes the key too, as its
/// idempotency key or in the message's own metadata.
struct Outside {
    file: String,
}

impl Outside {
    fn send(&self, key: &str, text: &str) -> Result<Value> {
        let sent = json!({ "key": key, "text": text });
        let mut file = std::fs::File::options().append(true).create(true).open(&self.file)?;
        file.write_all(format!("{sent}\n").as_bytes())?;
        Ok(sent)
    }

    /// What was sent under this key.
    fn find_sent(&self, key: &str) -> Result<Option<Value>> {
        if !std::fs::exists(&self.file)? {
            return Ok(None);
        }
        let sent = std::fs::read_to_string(&self.file)?;
        let mut sent = sent.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        Ok(sent.find(|sent| sent["key"] == key))
    }
}

/// Why a call came to nothing.
enum Trouble {
    /// The gateway cannot be reached, or cannot do it now: that passes.
    Unavailable,
    /// Somebody else has the event, or the effect, by now: it is not ours any more.
    Stale,
    /// No later call would go better.
    Refused(anyhow::Error),
}

impl From<anyhow::Error> for Trouble {
    fn from(error: anyhow::Error) -> Trouble {
        Trouble::Refused(error)
    }
}

/// The private API of a gateway, as one consumer sees it.
struct Inbox {
    client: Client,
    url: String,
    token: Option<String>,
}

impl Inbox {
    fn from_environment() -> Result<Inbox> {
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

    async fn call(&self, name: &str, body: Value) -> Result<Value, Trouble> {
        let mut request = self.client.post(format!("{}/{name}", self.url));
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        let request = request.header("Content-Type", "application/json").body(body.to_string());
        let answer = request.send().await.map_err(|_| Trouble::Unavailable)?;
        let status = answer.status();
        if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
            return Err(Trouble::Unavailable);
        }
        let text = answer.text().await.map_err(|_| Trouble::Unavailable)?;
        if status == StatusCode::CONFLICT {
            return Err(Trouble::Stale);
        }
        if !status.is_success() {
            return Err(anyhow!("the inbox refuses to {name} ({status}): {text}").into());
        }
        Ok(serde_json::from_str(&text).context("the answer is no JSON")?)
    }
}
