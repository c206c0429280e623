//! `inboxd events`: the inbox as it stands.

mod filter;
mod list;
pub(super) mod show;
mod tail;

use std::num::NonZeroUsize;
use std::str::FromStr;

use clap::Subcommand;
use uuid::Uuid;

pub(super) use self::filter::Filter;
use super::context::Context;
use super::output::print;
use crate::event::{EventDetail, EventQuery, Sequence};
use crate::store::Store;

/// At most so many bytes of bodies are in memory at a time, but always one event.
const PAGE_BYTES: usize = 16 << 20;
/// At most so many events.
const PAGE: usize = 500;

#[derive(Debug, Subcommand)]
pub(super) enum Events {
    /// List events, newest first.
    #[command(after_help = "Example: inboxd events list --channel whatsapp --since 2h")]
    List {
        #[command(flatten)]
        filter: Filter,
        /// At most so many.
        #[arg(long, value_name = "N", default_value = "50")]
        limit: NonZeroUsize,
        /// Print one JSON object a line: the event as CloudEvents has it, and its message.
        #[arg(long)]
        json: bool,
    },
    /// Show all that is known about one event.
    #[command(after_help = "Example: inboxd events show 42")]
    Show {
        /// The event's id, or its number in the first column of `events list`.
        id: EventId,
        /// Print it as one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Write the bytes of one event exactly as they were received, and nothing else.
    #[command(after_help = "Example: inboxd events raw 42 > body.json")]
    Raw {
        /// The event's id, or its number in the first column of `events list`.
        id: EventId,
    },
    /// Print the newest events, oldest first, and then each that comes; Ctrl-C ends it.
    #[command(after_help = "Example: inboxd events tail --source main\n\n\
        A program that resumes passes the `sequence` of the last event it had as --after.")]
    Tail {
        #[command(flatten)]
        filter: Filter,
        /// Begin with so many.
        #[arg(long, value_name = "N", default_value_t = 10)]
        limit: usize,
        /// Begin with all behind the event of this number instead.
        #[arg(long, value_name = "NUMBER", conflicts_with = "limit")]
        after: Option<Sequence>,
        /// Print one JSON object a line: the event as CloudEvents has it, and its message.
        #[arg(long)]
        json: bool,
    },
}

/// How an event is named on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventId {
    Id(Uuid),
    Number(Sequence),
}

impl FromStr for EventId {
    type Err = String;

    fn from_str(text: &str) -> Result<EventId, String> {
        let number = text.parse().map(EventId::Number).ok();
        let id = || Uuid::try_parse(text).map(EventId::Id).ok();
        number.or_else(id).ok_or_else(|| {
            "write the id of an event, or its number, as `inboxd events list` shows it".to_owned()
        })
    }
}

impl std::fmt::Display for EventId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            EventId::Id(id) => write!(f, "the id {id}"),
            EventId::Number(number) => write!(f, "the number {number}"),
        }
    }
}

/// Runs one of these commands.
pub(super) async fn events(command: Events, context: &Context) -> anyhow::Result<()> {
    let config = context.config_to_look()?;
    context
        .with_store(&config, async |store| match command {
            Events::List { filter, limit, json } => {
                list::list(&*store, filter.query(), limit.get(), json).await
            }
            Events::Show { id, json } => print(show::shown(&find(&*store, id).await?, json)?).await,
            Events::Raw { id } => print(find(&*store, id).await?.event.body).await,
            Events::Tail { filter, limit, after, json } => {
                tail::tail(&*store, &filter.query(), (limit, after), json).await
            }
        })
        .await
}

/// The event that is named so.
pub(super) async fn find(store: &dyn Store, event: EventId) -> anyhow::Result<EventDetail> {
    let found = store.event(id(store, event).await?).await?;
    found.ok_or_else(|| missing(event))
}

/// The id of the event that is named; by its number it must be there.
pub(super) async fn id(store: &dyn Store, event: EventId) -> anyhow::Result<Uuid> {
    let number = match event {
        EventId::Id(id) => return Ok(id),
        EventId::Number(number) => number,
    };
    let query = EventQuery {
        after: Some(number.saturating_sub(1)),
        ascending: true,
        limit: 1,
        ..EventQuery::default()
    };
    let found = store.events(query).await?.events.into_iter().next();
    let found = found.filter(|found| found.sequence == number);
    found.map(|found| found.id).ok_or_else(|| missing(event))
}

fn missing(event: EventId) -> anyhow::Error {
    anyhow::anyhow!(
        "there is no event with {event}: it was removed, or never here; `inboxd events list` \
         shows what is"
    )
}
