//! `inboxd consumers add`.

use std::str::FromStr;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use crate::cli::context::Usage;
use crate::cli::output::print;
use crate::cli::time::When;
use crate::clock::Clock;
use crate::config::units::{UnitError, parse_duration_over_zero, parse_duration_within};
use crate::config::{self, Config, LONGEST_LEASE, MOST_ATTEMPTS, SHORTEST_LEASE, names};
use crate::consumer::Start;
use crate::store::Store;

/// Events in one transaction: few enough that a gateway on the same store hardly waits.
const EVENTS: usize = 500;

#[derive(Debug, Args)]
pub(in crate::cli) struct Add {
    /// The name in /v1/consumers/NAME.
    #[arg(value_parser = name)]
    name: String,
    /// Which events of the inbox it begins with: `now` for none, `beginning` for all, or those
    /// received since a time, RFC 3339 or how long ago, such as 2h.
    #[arg(long, value_name = "now|beginning|TIME", default_value = "now")]
    from: Beginning,
    /// Whether the events of a conversation wait for each other.
    #[arg(long, default_value = "conversation", value_parser = ["conversation", "none"])]
    ordering: String,
    /// How long a claim holds its work; 60s if left out.
    #[arg(long, value_name = "DURATION", value_parser = lease)]
    lease: Option<Duration>,
    /// How many attempts before work is dead; 20 if left out.
    #[arg(long, value_name = "NUMBER",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_ATTEMPTS)))]
    max_attempts: Option<u32>,
    /// How long work waits after its first failed attempt; 1s if left out.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration_over_zero)]
    backoff_first: Option<Duration>,
    /// How long it waits at the most; 15m if left out.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration_over_zero)]
    backoff_max: Option<Duration>,
    /// Only events of this channel, such as telegram; may be given several times.
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    channel: Vec<String>,
    /// Only events by receivers of this configured name; may be given several times.
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    source: Vec<String>,
    /// Only events of this type, such as telegram.message; may be given several times.
    #[arg(long = "type", value_name = "TYPE", value_parser = NonEmptyStringValueParser::new())]
    event_type: Vec<String>,
}

/// Where to begin, durations not counted back yet.
#[derive(Clone, Copy, Debug)]
enum Beginning {
    Now,
    First,
    At(When),
}

impl FromStr for Beginning {
    type Err = String;

    fn from_str(text: &str) -> Result<Beginning, String> {
        match text {
            "now" => Ok(Beginning::Now),
            "beginning" => Ok(Beginning::First),
            text => text
                .parse()
                .map(Beginning::At)
                .map_err(|error: String| format!("write now, beginning, or a time: {error}")),
        }
    }
}

fn name(text: &str) -> Result<String, String> {
    names::check(text).map(|()| text.to_owned())
}

fn lease(text: &str) -> Result<Duration, UnitError> {
    parse_duration_within(text, SHORTEST_LEASE, LONGEST_LEASE)
}

/// Adds the consumer, and makes its work what it is to begin with.
pub(super) async fn add(store: &dyn Store, config: &Config, add: Add) -> anyhow::Result<()> {
    let start = match add.from {
        Beginning::Now => Start::Now,
        Beginning::First => Start::Beginning,
        Beginning::At(when) => Start::At(when.time(&Clock::wall())),
    };
    let name = add.name.clone();
    let consumer = crate::serve::consumer(&settings(add)?);
    let added = store.add_consumer(consumer, start).await;
    let added = added.with_context(|| format!("{name} is not added, since the store failed"))?;
    anyhow::ensure!(
        added,
        "there is a consumer {name} already, which is left as it is; choose another name, or remove \
         that one first"
    );
    let what = if start == Start::Now {
        "its work is what comes from now on".to_owned()
    } else {
        super::repeat(async || store.fill_consumers(EVENTS).await).await.with_context(|| {
            format!(
                "{name} is added but not filled to the end, since the store failed; `serve` goes on \
                 with it"
            )
        })?;
        let state = super::find(store, &name).await?;
        let made = state.unfinished() + state.done + state.dead;
        format!("{made} events of the inbox are its work, and so is what comes from now on")
    };
    let config = match config.consumers.iter().any(|configured| configured.name == name) {
        true => {
            "the configuration names it too, and its settings there replace these at the next start \
             or SIGHUP of `serve`"
        }
        false => {
            "its settings stand in the store; a [[consumer]] table of this name in the configuration \
             would replace them at the next start or SIGHUP of `serve`"
        }
    };
    print(format!("{name} is added: {what}\n{config}\n")).await
}

fn settings(add: Add) -> Result<config::Consumer, Usage> {
    let default = config::Consumer::new(add.name);
    let backoff = config::Backoff {
        first: add.backoff_first.unwrap_or(default.backoff.first),
        max: add.backoff_max.unwrap_or(default.backoff.max),
    };
    backoff.check().map_err(|error| Usage(format!("the backoff's {error}")))?;
    Ok(config::Consumer {
        ordering: match &*add.ordering {
            "none" => config::Ordering::None,
            _ => config::Ordering::Conversation,
        },
        lease: add.lease.unwrap_or(default.lease),
        max_attempts: add.max_attempts.unwrap_or(default.max_attempts),
        backoff,
        filter: config::Filter {
            channels: add.channel,
            sources: add.source,
            types: add.event_type,
        },
        ..default
    })
}
