//! `[store]` and `[quarantine]`: where events are kept, and for how long.

use std::time::Duration;

use super::node::{Node, Value};
use super::read::Table;
use super::secret;
use super::store_url::StoreUrl;

/// The URL of a store as an example.
const LIKE: &str = "\"sqlite:inboxd.db\"";

/// `[store]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    /// The database. `sqlite:inboxd.db`.
    pub url: StoreUrl,
    /// Finished events older than this are removed; unfinished and dead ones never. 30 days.
    pub retention: Duration,
    /// How long after its removal an event is still known, so that a duplicate is seen as one.
    /// 7 days.
    pub identity_retention: Duration,
    /// Whether to run on a PostgreSQL that may lose what it has committed. No.
    pub allow_unsafe_durability: bool,
}

impl Default for Store {
    fn default() -> Store {
        Store {
            url: StoreUrl::default(),
            retention: Duration::from_secs(30 * 86_400),
            identity_retention: Duration::from_secs(7 * 86_400),
            allow_unsafe_durability: false,
        }
    }
}

/// `[quarantine]`: how much is kept of what was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantine {
    /// Most deliveries kept for each endpoint and kind; zero keeps none. 1000.
    pub rows: u64,
    /// Most bytes kept for each endpoint and kind. 64 MiB.
    pub bytes: u64,
}

impl Default for Quarantine {
    fn default() -> Quarantine {
        Quarantine { rows: 1000, bytes: 64 << 20 }
    }
}

pub(super) fn read(mut table: Table<'_>) -> Store {
    let default = Store::default();
    if table.overriding("url").is_some()
        && let Some(node) = table.written("url")
        && let Value::Toml(toml) = node.value
        && let Some(text) = toml.as_str()
        && let Err(message) = literal(text)
    {
        // A password in the file is a fault even where a variable takes the place of the file's
        // URL.
        table.reader.fault(node.place, message);
    }
    let store = Store {
        url: table.or("url", default.url, url),
        retention: table.or("retention", default.retention, Node::duration_over_zero),
        identity_retention: table.or(
            "identity_retention",
            default.identity_retention,
            Node::duration_over_zero,
        ),
        allow_unsafe_durability: table.or(
            "allow_unsafe_durability",
            default.allow_unsafe_durability,
            Node::boolean,
        ),
    };
    table.finish();
    store
}

pub(super) fn read_quarantine(mut table: Table<'_>) -> Quarantine {
    let default = Quarantine::default();
    let quarantine = Quarantine {
        rows: table.or("rows", default.rows, |node| node.number_within(0, 1_000_000_000)),
        bytes: table.or("bytes", default.bytes, Node::size),
    };
    table.finish();
    quarantine
}

/// A string without a password, or a secret that holds the whole URL.
fn url(node: &Node<'_>) -> Result<StoreUrl, String> {
    let parse = |text: &str| StoreUrl::parse(text).map_err(|error| error.to_string());
    match node.value {
        Value::Toml(toml) if toml.is_table() => parse(secret::read(node)?.expose()),
        Value::Toml(toml) if toml.is_str() => literal(node.text(LIKE)?),
        _ => parse(node.text(LIKE)?),
    }
}

/// The URL as it stands in the file, where a password is a fault.
fn literal(text: &str) -> Result<StoreUrl, String> {
    let url = StoreUrl::parse(text).map_err(|error| error.to_string())?;
    if url.has_password() {
        return Err(
            "a password is never written in the file; put the whole URL in an environment \
                    variable and write { env = \"NAME\" }, or set INBOXD_STORE_URL"
                .to_owned(),
        );
    }
    Ok(url)
}
