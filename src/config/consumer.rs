//! `[[consumer]]`: the independent readers of the inbox.

use std::time::Duration;

use super::names::Taken;
use super::node::Node;
use super::read::Table;

/// Longest lease that can be asked for, here and by a claim.
pub const LONGEST_LEASE: Duration = Duration::from_secs(12 * 3600);

/// Shortest lease that a consumer can have.
pub const SHORTEST_LEASE: Duration = Duration::from_millis(1);

/// Most attempts that a consumer can have.
pub const MOST_ATTEMPTS: u32 = 1_000_000;

/// `[[consumer]]`: one reader of the inbox with work of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consumer {
    /// The name, unique among consumers.
    pub name: String,
    /// Whether the events of a conversation wait for each other. They do.
    pub ordering: Ordering,
    /// How long a claim holds its work, longer than zero, up to [`LONGEST_LEASE`]. 60 s.
    pub lease: Duration,
    /// How many attempts before work is dead, at least 1. 20.
    pub max_attempts: u32,
    /// How long work waits after a failed attempt.
    pub backoff: Backoff,
    /// Which events make work.
    pub filter: Filter,
}

/// In which order a consumer's events are handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ordering {
    /// Events of one conversation in the order of receipt, one claim at a time.
    Conversation,
    /// No event waits for another.
    None,
}

/// How long work waits after a failed attempt: `first`, then longer each time, up to `max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// After the first failure, longer than zero. 1 s.
    pub first: Duration,
    /// The longest wait, no less than `first`. 15 min.
    pub max: Duration,
}

/// Which events make work for a consumer: those that match every list that is not empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Channels, such as `telegram` or `whatsapp`.
    pub channels: Vec<String>,
    /// Names of bots and endpoints. They need not be configured, because the store may hold
    /// events of one that no longer is.
    pub sources: Vec<String>,
    /// Types, such as `telegram.message`.
    pub types: Vec<String>,
}

impl Consumer {
    /// A consumer with every default.
    pub fn new(name: impl Into<String>) -> Consumer {
        Consumer {
            name: name.into(),
            ordering: Ordering::Conversation,
            lease: Duration::from_secs(60),
            max_attempts: 20,
            backoff: Backoff::default(),
            filter: Filter::default(),
        }
    }
}

impl Backoff {
    /// Checks that the longest wait is not the shorter one. The error says what is wrong and what to
    /// write.
    pub fn check(&self) -> Result<(), String> {
        if self.first > self.max {
            return Err("max is shorter than first; write a max of at least first".to_owned());
        }
        Ok(())
    }
}

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff { first: Duration::from_secs(1), max: Duration::from_secs(15 * 60) }
    }
}

/// The consumers of the file, or `default` when it names none.
pub(super) fn read(tables: Vec<Table<'_>>) -> Vec<Consumer> {
    if tables.is_empty() {
        return vec![Consumer::new("default")];
    }
    let mut names = Taken::default();
    let mut consumers = Vec::new();
    for mut table in tables {
        let name = names.read(&mut table);
        let default = Consumer::new(name.clone().unwrap_or_default());
        let consumer = Consumer {
            name: default.name,
            ordering: table.or("ordering", default.ordering, |node| {
                node.choice(&[("conversation", Ordering::Conversation), ("none", Ordering::None)])
            }),
            lease: table.or("lease", default.lease, |node| {
                node.duration_within(SHORTEST_LEASE, LONGEST_LEASE)
            }),
            max_attempts: table.or("max_attempts", default.max_attempts, attempts),
            backoff: backoff(table.table("backoff")),
            filter: filter(table.table("filter")),
        };
        if name.is_some() {
            consumers.push(consumer);
        }
        table.finish();
    }
    consumers
}

fn attempts(node: &Node<'_>) -> Result<u32, String> {
    let number = node.number_within(1, u64::from(MOST_ATTEMPTS))?;
    u32::try_from(number).map_err(|error| error.to_string())
}

fn backoff(mut table: Table<'_>) -> Backoff {
    let default = Backoff::default();
    let first = table.or("first", default.first, Node::duration_over_zero);
    let max = table.or("max", default.max, Node::duration_over_zero);
    let backoff = Backoff { first, max };
    if let Err(message) = backoff.check() {
        let place = table.place_of("max");
        table.reader.fault(place, message);
    }
    table.finish();
    backoff
}

fn filter(mut table: Table<'_>) -> Filter {
    let mut list = |key, like: &str| table.or(key, Vec::new(), |node| node.texts(like));
    let filter = Filter {
        channels: list("channels", "[\"telegram\"]"),
        sources: list("sources", "[\"main\"]"),
        types: list("types", "[\"telegram.message\"]"),
    };
    table.finish();
    filter
}
