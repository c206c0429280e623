//! The whole configuration as types, and how it is loaded.
//!
//! A configuration is made of one TOML file, the environment over it, and defaults below it. All
//! faults are found at once, each with its place and remedy. Secrets never stand in the file: it
//! names the environment variables or files that hold them.
//!
//! `INBOXD_SERVER_<KEY>` and `INBOXD_STORE_<KEY>` override single values of those two tables.
//! `INBOXD_TELEGRAM_TOKEN` makes a bot named `telegram`, `INBOXD_UNIFYPORT_SECRET` an endpoint
//! named `main`, and `INBOXD_TOKEN` an operator token named `operator`, without a file or beside
//! one; a variable that the file names itself makes nothing more.

mod consumer;
mod env;
mod fault;
pub mod names;
mod node;
mod quick_start;
mod read;
mod secret;
mod server;
mod store;
mod store_url;
mod telegram;
mod token;
mod unifyport;
pub mod units;

use std::path::{Path, PathBuf};

use toml::de::DeTable;

use self::read::{Credentials, Reader};

pub use self::consumer::{
    Backoff, Consumer, Filter, LONGEST_LEASE, MOST_ATTEMPTS, Ordering, SHORTEST_LEASE,
};
pub use self::env::Env;
pub use self::fault::{Fault, Faults, Place};
pub use self::secret::Secret;
pub use self::server::Server;
pub use self::store::{Quarantine, Store};
pub use self::store_url::{Database, StoreUrl, StoreUrlError};
pub use self::telegram::{Telegram, UPDATE_KINDS, Updates};
pub use self::token::{Role, Token};
pub use self::unifyport::{Stale, Unifyport};

/// The configuration of one inboxd. `Debug` shows no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// `[server]`: the listeners.
    pub server: Server,
    /// `[store]`: the database.
    pub store: Store,
    /// `[quarantine]`: how much is kept of what was refused.
    pub quarantine: Quarantine,
    /// `[[telegram]]`: the bots, possibly none.
    pub telegram: Vec<Telegram>,
    /// `[[unifyport]]`: the webhook endpoints, possibly none.
    pub unifyport: Vec<Unifyport>,
    /// `[[consumer]]`: the readers, at least one.
    pub consumers: Vec<Consumer>,
    /// `[[token]]`: the bearer tokens. With none, the private API is open and on a loopback
    /// address.
    pub tokens: Vec<Token>,
}

impl Default for Config {
    /// No receiver, no token, and the consumer `default`.
    fn default() -> Config {
        Config {
            server: Server::default(),
            store: Store::default(),
            quarantine: Quarantine::default(),
            telegram: Vec::new(),
            unifyport: Vec::new(),
            consumers: vec![Consumer::new("default")],
            tokens: Vec::new(),
        }
    }
}

impl Config {
    /// The config file to load: `flag`, else the one that `INBOXD_CONFIG` names, else
    /// `inboxd.toml` of the working directory if it is there, else none. An empty variable names
    /// none.
    pub fn find(flag: Option<&Path>, env: &Env) -> Option<PathBuf> {
        find_below(flag, env, Path::new(""))
    }

    /// Loads `file`, if there is one, and the environment over it.
    ///
    /// # Errors
    /// Every fault there is. A file that cannot be read, or is not TOML, hides the rest.
    pub fn load(file: Option<&Path>, env: &Env) -> Result<Config, Faults> {
        load(file, env, Credentials::Needed)
    }

    /// Loads the same for a command that looks at the store and receives nothing: a bot's token, a
    /// signing secret or a bearer token that is not there is no fault, because whoever looks has not
    /// always what the gateway has. What stands in for it is good for nothing.
    ///
    /// # Errors
    /// As [`Config::load`], but for those.
    pub fn load_to_look(file: Option<&Path>, env: &Env) -> Result<Config, Faults> {
        load(file, env, Credentials::StoodIn)
    }
}

fn load(file: Option<&Path>, env: &Env, credentials: Credentials) -> Result<Config, Faults> {
    let text = file.map(text).transpose()?;
    let file = file.zip(text.as_deref());
    let document = file.map(|(path, text)| parse(path, text)).transpose()?;
    let reader = Reader::new(file, env, credentials);
    let config = read(&reader, document.as_ref());
    reader.finish()?;
    Ok(config)
}

fn find_below(flag: Option<&Path>, env: &Env, folder: &Path) -> Option<PathBuf> {
    let named = || env.get("INBOXD_CONFIG").filter(|name| !name.is_empty()).map(PathBuf::from);
    let usual = || {
        let path = folder.join("inboxd.toml");
        // A file that may be there but cannot be looked at is loaded, so that the user learns why
        // it is not used.
        (!matches!(path.try_exists(), Ok(false))).then_some(path)
    };
    flag.map(Path::to_owned).or_else(named).or_else(usual)
}

fn text(path: &Path) -> Result<String, Faults> {
    std::fs::read_to_string(path).map_err(|error| {
        let place = Place::File { file: path.to_owned(), line: None, key: String::new() };
        Faults::one(
            place,
            format!("the config file cannot be read ({error}); correct the path or the file"),
        )
    })
}

fn parse<'a>(path: &Path, text: &'a str) -> Result<DeTable<'a>, Faults> {
    let (document, errors) = DeTable::parse_recoverable(text);
    let faults = errors
        .iter()
        .map(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            let line = read::line_of(text, offset);
            let before = text.get(..offset).unwrap_or_default();
            let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
            Fault {
                place: Place::File {
                    file: path.to_owned(),
                    line: Some(line),
                    key: format!("column {column}"),
                },
                // The message of the parser only, because its `Display` prints the line.
                message: format!("this is not TOML ({}); correct it", error.message()),
            }
        })
        .collect();
    Faults::check(faults)?;
    Ok(document.into_inner())
}

fn read<'a>(reader: &'a Reader<'a>, document: Option<&'a DeTable<'a>>) -> Config {
    let mut root = reader.root(document);
    let server = root.table("server").overridden_by("INBOXD_SERVER_");
    let store = root.table("store").overridden_by("INBOXD_STORE_");
    let quarantine = root.table("quarantine");
    let telegram = root.tables("telegram");
    let unifyport = root.tables("unifyport");
    let consumers = root.tables("consumer");
    let tokens = root.tables("token");
    root.finish();

    let has_token_table = !tokens.is_empty();
    let consumers = consumer::read(consumers);
    let mut config = Config {
        server: Server::default(),
        store: store::read(store),
        quarantine: store::read_quarantine(quarantine),
        telegram: telegram::read(telegram),
        unifyport: unifyport::read(unifyport),
        tokens: token::read(tokens, &consumers),
        consumers,
    };
    // A token that is there but faulty has its own fault, and does not make the listener open.
    let open = !has_token_table && !reader.stands_alone(quick_start::TOKEN);
    config.server = server::read(server, open);
    quick_start::add(reader, &mut config);
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_file_is_found_only_where_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let unset = Env::from([("INBOXD_CONFIG", "")]);
        assert_eq!(find_below(None, &unset, folder.path()), None);
        let file = folder.path().join("inboxd.toml");
        std::fs::write(&file, "").unwrap();
        assert_eq!(find_below(None, &unset, folder.path()), Some(file));
        let env = Env::from([("INBOXD_CONFIG", "variable.toml")]);
        let named = PathBuf::from("variable.toml");
        assert_eq!(find_below(None, &env, folder.path()), Some(named));
        let flag = Path::new("flag.toml");
        assert_eq!(find_below(Some(flag), &env, folder.path()), Some(flag.to_owned()));
    }
}
