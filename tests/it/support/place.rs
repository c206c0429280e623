//! A gateway's home together with its store, which the test looks at from beside it.

use std::path::PathBuf;
use std::sync::Arc;

use inboxd::clock::Clock;
use inboxd::event::{Event, EventDetail, EventQuery};
use inboxd::store::{self, Options, Store};

use super::delivery::SECRET;
use super::postgres;
use super::process::{Gateway, Home};

/// The database under a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Sqlite,
    Postgres,
}

/// The endpoint `main`, for the end of a config.
pub(crate) const MAIN: &str =
    "[[unifyport]]\nname = \"main\"\nsecrets = [{ env = \"UNIFYPORT_SECRET\" }]\n";

/// Where a gateway lives: its home and its store.
pub(crate) struct Place {
    pub(crate) home: Home,
    /// As `store::open` takes it.
    pub(crate) url: String,
}

impl Place {
    /// The endpoint `main` on a fresh store: a file in the home, or a database of the shared server.
    pub(crate) fn new(kind: Kind) -> Place {
        Place::with(kind, MAIN)
    }

    /// The same under another config, which goes on inside `[server]`.
    pub(crate) fn with(kind: Kind, config: &str) -> Place {
        let home = Home::new(config);
        let url = match kind {
            Kind::Sqlite => format!("sqlite:{}", home.dir().join("inboxd.db").display()),
            Kind::Postgres => postgres::shared().create_database(),
        };
        Place::of(home, &url)
    }

    /// On the store of that URL.
    pub(crate) fn on(url: &str, config: &str) -> Place {
        Place::of(Home::new(config), url)
    }

    fn of(home: Home, url: &str) -> Place {
        let home = home.env("INBOXD_STORE_URL", url).env("UNIFYPORT_SECRET", SECRET);
        Place { home, url: url.to_owned() }
    }

    /// With one more variable in the gateway's environment.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Place {
        self.home = self.home.env(name, value);
        self
    }

    /// The gateway, up and listening; a second time it is a restart.
    pub(crate) fn start(&self) -> Gateway {
        self.home.start()
    }

    /// The SQLite file.
    pub(crate) fn file(&self) -> PathBuf {
        self.url.strip_prefix("sqlite:").expect("a place on SQLite").into()
    }

    /// The store, opened beside the gateway.
    pub(crate) async fn store(&self) -> Arc<dyn Store> {
        let options =
            Options { migrate: false, allow_unsafe_durability: false, clock: Clock::wall() };
        store::open(&self.url, options).await.unwrap()
    }

    /// All events, in order of receipt, after a look for faults in the store.
    pub(crate) async fn events(&self) -> Vec<Event> {
        let store = self.store().await;
        assert_eq!(store.audit().await.unwrap(), Vec::<String>::new());
        let events = events(store.as_ref()).await;
        store.close().await;
        events
    }

    /// The only event there is, with all that is known of it.
    pub(crate) async fn only_event(&self) -> EventDetail {
        let events = self.events().await;
        assert_eq!(events.len(), 1, "{events:?}");
        let store = self.store().await;
        let detail = store.event(events[0].id).await.unwrap().unwrap();
        store.close().await;
        detail
    }
}

/// All events, in order of receipt.
pub(crate) async fn events(store: &dyn Store) -> Vec<Event> {
    let mut events: Vec<Event> = vec![];
    loop {
        let after = events.last().map(|event| event.sequence);
        let query = EventQuery {
            after,
            ascending: true,
            limit: 500,
            max_bytes: 32 << 20,
            ..EventQuery::default()
        };
        let page = store.events(query).await.unwrap();
        events.extend(page.events);
        if !page.more {
            return events;
        }
    }
}
