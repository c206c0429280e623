//! A Telegram Bot API server on loopback to try `inboxd` without Telegram.
//!
//! ```text
//! cargo run --example fake_bot_api -- --updates-per-second 5
//! ```
//!
//! It prints the `api_url` and the token to configure. Each line typed becomes a text message.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use inboxd::simulate::bot_api::rules::Timing;
use inboxd::simulate::bot_api::update::Update;
use inboxd::simulate::bot_api::{FakeBotApi, Options, token};
use tokio::io::{AsyncBufReadExt, BufReader};

/// A fake Telegram Bot API server on the loopback interface.
#[derive(Parser)]
struct Arguments {
    /// Port to listen on; 0 is any free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Token of its only bot, as `<number>:<secret>`.
    #[arg(long, default_value_t = token::example(4242))]
    token: String,
    /// Real seconds in one of the server's seconds: below 1 everything is faster.
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Text messages to make up in each real second.
    #[arg(long, default_value_t = 0.0)]
    updates_per_second: f64,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    anyhow::ensure!(arguments.scale > 0.0, "--scale has to be above 0");
    let bot = token::bot_id(&arguments.token)
        .context("--token has to be a number, a colon and a secret")?;
    let timing = Timing::scaled(arguments.scale);
    let fake = FakeBotApi::start(Options { port: arguments.port, timing, seed: 1 })
        .await
        .with_context(|| format!("port {} cannot be listened on", arguments.port))?;
    fake.add_bot(bot, &arguments.token);
    print_setup(fake.address(), &arguments.token);
    tokio::select! {
        result = push_lines(&fake, bot) => result?,
        () = push_steadily(&fake, bot, arguments.updates_per_second) => {}
        result = tokio::signal::ctrl_c() => result.context("Ctrl-C cannot be waited for")?,
    }
    fake.shut_down().await;
    Ok(())
}

fn print_setup(address: SocketAddr, token: &str) {
    println!("api_url = \"http://{address}\"");
    println!("token   = \"{token}\"");
}

/// Ends only with an error: the fake serves on when its input has ended.
async fn push_lines(fake: &FakeBotApi, bot: i64) -> Result<()> {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut message_id = 1_000_000;
    while let Some(line) = lines.next_line().await.context("standard input cannot be read")? {
        message_id += 1;
        fake.push(bot, &Update::text(1001, message_id, &line));
    }
    std::future::pending().await
}

async fn push_steadily(fake: &FakeBotApi, bot: i64, per_second: f64) {
    if per_second <= 0.0 {
        return std::future::pending().await;
    }
    let mut pace = tokio::time::interval(Duration::from_secs_f64(1.0 / per_second));
    for n in 1.. {
        pace.tick().await;
        // A few chats, so that there is more than one conversation.
        fake.push(bot, &Update::text(1001 + n % 5, n, &format!("message {n}")));
    }
}
