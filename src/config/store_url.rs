//! The URL of the store, which may hold a password.

use std::fmt;
use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret as _, SecretString};
use url::Url;

/// The parameters of a PostgreSQL URL that sqlx 0.9 knows. Others are refused, because it would
/// log them with their values.
const PARAMETERS: [&str; 18] = [
    "sslmode",
    "ssl-mode",
    "sslrootcert",
    "ssl-root-cert",
    "ssl-ca",
    "sslcert",
    "ssl-cert",
    "sslkey",
    "ssl-key",
    "statement-cache-capacity",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "password",
    "application_name",
    "options",
];

/// The database of the store. `Debug` and [`display`](StoreUrl::display) show no password.
#[derive(Clone)]
pub struct StoreUrl(Kind);

#[derive(Clone)]
enum Kind {
    Sqlite(PathBuf),
    Postgres {
        /// The whole URL.
        secret: SecretString,
        /// The URL without password and parameters.
        shown: String,
        has_password: bool,
    },
}

/// What kind of database a [`StoreUrl`] names. `Debug` shows no password.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Database<'a> {
    /// The SQLite file at this path, relative to the working directory.
    Sqlite(&'a Path),
    /// The PostgreSQL database of this URL, password included: never to be printed.
    Postgres(&'a str),
}

impl fmt::Debug for Database<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Database::Sqlite(path) => f.debug_tuple("Sqlite").field(path).finish(),
            Database::Postgres(_) => f.write_str("Postgres(..)"),
        }
    }
}

/// Why a text is no URL of a store, as one clause with its remedy. It repeats nothing of the text,
/// which may hold a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StoreUrlError(String);

impl StoreUrl {
    /// Reads `sqlite:PATH` or `sqlite://PATH`, whose path is taken as it stands, or a
    /// `postgres://` or `postgresql://` URL.
    pub fn parse(text: &str) -> Result<StoreUrl, StoreUrlError> {
        match text.split_once(':') {
            Some(("sqlite", path)) => sqlite(path),
            Some(("postgres" | "postgresql", _)) => postgres(text),
            _ => Err(error(
                "this is not the URL of a store; write \"sqlite:inboxd.db\" or \
                 \"postgres://user@host/database\"",
            )),
        }
    }

    /// The database, for whoever opens it.
    pub fn database(&self) -> Database<'_> {
        match &self.0 {
            Kind::Sqlite(path) => Database::Sqlite(path),
            Kind::Postgres { secret, .. } => Database::Postgres(secret.expose_secret()),
        }
    }

    /// The URL for people: without password and parameters.
    pub fn display(&self) -> String {
        match &self.0 {
            Kind::Sqlite(path) => format!("sqlite:{}", path.display()),
            Kind::Postgres { shown, .. } => shown.clone(),
        }
    }

    pub(super) fn has_password(&self) -> bool {
        matches!(self.0, Kind::Postgres { has_password: true, .. })
    }
}

impl Default for StoreUrl {
    fn default() -> StoreUrl {
        StoreUrl(Kind::Sqlite(PathBuf::from("inboxd.db")))
    }
}

impl PartialEq for StoreUrl {
    fn eq(&self, other: &StoreUrl) -> bool {
        self.database() == other.database()
    }
}

impl Eq for StoreUrl {}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreUrl({:?})", self.display())
    }
}

fn sqlite(path: &str) -> Result<StoreUrl, StoreUrlError> {
    let path = path.strip_prefix("//").unwrap_or(path);
    if path.contains('?') {
        return Err(error(
            "a SQLite URL takes no parameters, because inboxd sets them itself; take out what \
             begins at the question mark",
        ));
    }
    if path.is_empty() || path == ":memory:" {
        return Err(error(
            "an inbox in memory would lose every event; name a file, like \"sqlite:inboxd.db\"",
        ));
    }
    Ok(StoreUrl(Kind::Sqlite(PathBuf::from(path))))
}

fn postgres(text: &str) -> Result<StoreUrl, StoreUrlError> {
    let mut url = Url::parse(text).map_err(|reason| {
        error(format!(
            "this is not the URL of a PostgreSQL database ({reason}); write it like \
             \"postgres://user@host/database\", and a special character of a password as %XX"
        ))
    })?;
    // What a raw "/", "?" or "#" in a password leaves behind: the rest of the password would pass
    // for a database name and be shown.
    let rest_of_a_password = url.path().contains('@')
        || url.query().is_some_and(|query| query.contains('@'))
        || url.fragment().is_some();
    if rest_of_a_password || url.cannot_be_a_base() {
        return Err(error(
            "this URL has a part that no PostgreSQL URL has; write it like \
             \"postgres://user@host/database\", and a special character of a password as %XX",
        ));
    }
    for (key, _) in url.query_pairs() {
        if !PARAMETERS.contains(&key.as_ref()) && !key.starts_with("options[") {
            return Err(error(format!(
                "this URL has a parameter that is not known; the known ones are {}",
                PARAMETERS.join(", ")
            )));
        }
    }
    let has_password =
        url.password().is_some() || url.query_pairs().any(|(key, _)| key == "password");
    url.set_query(None);
    // It cannot fail where there was a password; where there is no host there was none.
    let _ = url.set_password(None);
    Ok(StoreUrl(Kind::Postgres {
        secret: SecretString::from(text.to_owned()),
        shown: url.into(),
        has_password,
    }))
}

fn error(message: impl Into<String>) -> StoreUrlError {
    StoreUrlError(message.into())
}
