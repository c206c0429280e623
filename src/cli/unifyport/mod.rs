//! `inboxd unifyport`: signed deliveries made, checked and posted by hand.

mod delivery;
mod secrets;
mod send;

use clap::{Args, Subcommand};

use self::delivery::{Delivery, SIGNATURE, TIMESTAMP, body};
use super::context::Context;
use super::output::print;
use crate::clock::{Clock, Time};
use crate::config::units::format_duration;
use crate::receive::unifyport::{signature, timestamp};

#[derive(Debug, Subcommand)]
pub(super) enum Unifyport {
    /// Print the headers that UnifyPort would send with a body.
    #[command(after_help = "Example: inboxd unifyport sign body.json > headers\n         \
                      curl -H @headers --data-binary @body.json http://127.0.0.1:8080/webhooks/unifyport/main")]
    Sign {
        #[command(flatten)]
        input: Input,
        #[command(flatten)]
        headers: Headers,
        /// Print them as one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Check a signature; the exit code is 0 if it is good, 1 if not.
    #[command(
        after_help = "Example: inboxd unifyport verify body.json --timestamp 2026-06-08T12:34:56Z \
                      --signature cc29f5…"
    )]
    Verify {
        #[command(flatten)]
        input: Input,
        /// The X-Device-Timestamp header, exactly as it was sent.
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        timestamp: String,
        /// The X-Device-Signature header, exactly as it was sent.
        #[arg(long, value_name = "HEX", allow_hyphen_values = true)]
        signature: String,
    },
    /// Sign a body and post it; the exit code is 0 if it was accepted, 1 if not.
    #[command(
        after_help = "Example: echo '{\"type\":\"message.received\"}' | inboxd unifyport send"
    )]
    Send {
        #[command(flatten)]
        input: Input,
        #[command(flatten)]
        headers: Headers,
        /// Where to; else the endpoint at the configuration's public address.
        #[arg(long, value_name = "URL")]
        url: Option<String>,
    },
}

/// What every one of these commands takes.
#[derive(Debug, Args)]
pub(super) struct Input {
    /// The file with the body; standard input if it is - or left out.
    file: Option<std::path::PathBuf>,
    /// The environment variable with the signing secret; else the endpoint's are taken.
    #[arg(long, value_name = "NAME")]
    secret_env: Option<String>,
    /// The endpoint of the configuration; else its first.
    #[arg(long, value_name = "NAME")]
    endpoint: Option<String>,
}

/// What is sent with a body.
#[derive(Debug, Args)]
pub(super) struct Headers {
    /// The X-Device-Timestamp header; else the time now.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    timestamp: Option<String>,
    /// The X-Device-Event-Id header; else the body's own id, or a fresh one.
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    event_id: Option<String>,
}

/// Runs one of these commands.
pub(super) async fn unifyport(command: Unifyport, context: &Context) -> anyhow::Result<()> {
    match command {
        Unifyport::Sign { input, headers, json } => {
            let secrets = secrets::of(&input, context)?;
            print(Delivery::new(body(&input)?, headers, secrets.first())?.shown(json)?).await
        }
        Unifyport::Verify { input, timestamp, signature } => {
            let secrets = secrets::of(&input, context)?;
            let keys = secrets.all.iter().map(|secret| secret.expose().as_bytes());
            let (body, signed_at) = (body(&input)?, timestamp.as_bytes());
            match signature::verify(keys, signed_at, &body, signature.as_bytes()) {
                Ok(position) => print(verified(&secrets, position, signed_at)).await,
                Err(error) => anyhow::bail!(
                    "not verified: {error} ({secrets}): {SIGNATURE}, {TIMESTAMP} and the body have \
                     to be exactly those of the delivery"
                ),
            }
        }
        Unifyport::Send { input, headers, url } => {
            let secrets = secrets::of(&input, context)?;
            let url = send::target(url, &input, context)?;
            send::send(&Delivery::new(body(&input)?, headers, secrets.first())?, &url).await
        }
    }
}

/// That a signature is good, and how old what it signs is: the rest of what `serve` looks at.
fn verified(secrets: &secrets::Secrets, position: usize, signed_at: &[u8]) -> String {
    let age = match timestamp::parse(signed_at) {
        Err(error) => format!("but {error}, so an endpoint refuses it"),
        Ok(signed_at) => {
            let (now, signed_at) = (Clock::wall().now(), Time::from_micros(signed_at));
            let (distance, way) = if signed_at > now {
                (signed_at.since(now), "ahead of")
            } else {
                (now.since(signed_at), "behind")
            };
            let seconds = std::time::Duration::from_secs(distance.as_secs());
            format!("its time is {} {way} this machine's clock", format_duration(seconds))
        }
    };
    format!("verified by {}; {age}\n", secrets.name(position))
}
