//! Sends signed sample deliveries, as UnifyPort would, to an endpoint that you are trying out.
//!
//! ```text
//! INBOXD_UNIFYPORT_SECRET=… cargo run --example send_unifyport -- --count 5
//! ```

use anyhow::{Context, Result, ensure};
use clap::Parser;
use inboxd::clock::Clock;
use inboxd::receive::unifyport::signature::sign;
use serde_json::json;

/// Sends signed sample deliveries to a UnifyPort endpoint.
#[derive(Parser)]
struct Arguments {
    /// The endpoint.
    #[arg(long, default_value = "http://127.0.0.1:8080/webhooks/unifyport/main")]
    url: String,
    /// How many.
    #[arg(long, default_value_t = 3)]
    count: u64,
    /// The signing secret; better in the environment than on the command line.
    #[arg(long, env = "INBOXD_UNIFYPORT_SECRET", hide_env_values = true)]
    secret: String,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let client = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .build()?;
    for n in 1..=arguments.count {
        let now = Clock::wall().now();
        let id = format!("evt_{}_{n}", now.micros());
        let body = sample(n, &id, &now.to_string());
        let timestamp = now.to_string();
        let answer = client
            .post(&arguments.url)
            .header("Content-Type", "application/json")
            .header("X-Device-Event-Id", &id)
            .header("X-Device-Timestamp", &timestamp)
            .header(
                "X-Device-Signature",
                // Over the very bytes that are sent.
                sign(arguments.secret.as_bytes(), timestamp.as_bytes(), body.as_bytes()),
            )
            .body(body)
            .send()
            .await
            .map_err(reqwest::Error::without_url)
            .context("the endpoint does not answer; start `inboxd serve` or give another --url")?;
        println!("{id}  {}", answer.status());
        ensure!(answer.status().is_success(), "the endpoint did not accept the delivery");
    }
    Ok(())
}

/// A text message in one of two conversations.
fn sample(n: u64, id: &str, time: &str) -> String {
    let (number, name) = [("491701234567", "Ada"), ("8613912345678", "Jordan Lee")][n as usize % 2];
    json!({
        "id": id, "type": "message.received", "provider": "whatsapp", "account_id": "acc_sample",
        "occurred_at": time,
        "data": {
            "conversation": { "id": number, "type": "user", "title": name },
            "sender": { "id": number, "type": "user", "name": name },
            "message": {
                "id": format!("wamid.{n}"), "type": "text", "text": format!("Hello {n}"),
                "direction": "inbound", "sent_at": time,
            },
        },
    })
    .to_string()
}
