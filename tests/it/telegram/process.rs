//! The real binary as the client of a fake in real time.

use std::time::Duration;

use inboxd::simulate::bot_api::barrier::Point;
use inboxd::simulate::bot_api::token;

use super::database::Database;
use super::rig::{BOT, NAME, Rig};
use crate::support::process::{Gateway, Home};

/// A fake, an inbox and a home for the binary that brings the one to the other.
pub(super) struct Machine {
    pub(super) rig: Rig,
    pub(super) home: Home,
}

impl Machine {
    /// With the inbox in a file of the home, or on PostgreSQL.
    pub(super) async fn new(on_postgres: bool) -> Machine {
        let home = Home::new("").env("BOT_TOKEN", &token::example(BOT));
        let database = if on_postgres {
            Database::postgres().await
        } else {
            Database::at(home.dir().join("inboxd.db"), None)
        };
        let rig = Rig::scaled(database, 1.0, 1).await;
        home.configure(&config(&rig));
        Machine { rig, home }
    }

    /// Starts the binary; it is up on return, and at its first poll perhaps.
    pub(super) fn start(&self) -> Gateway {
        self.rig.fake.client_starts();
        self.home.start()
    }

    /// The lease of a process that is dead for certain need not be waited for; that it runs out by
    /// itself is another test.
    pub(super) async fn free_the_lease(&self) {
        if matches!(*self.rig.database, Database::Postgres { .. }) {
            self.rig.database.execute("UPDATE pollers SET lease_until = 0").await;
        }
    }
}

/// The configuration of a gateway for the rig's bot and database.
pub(super) fn config(rig: &Rig) -> String {
    format!(
        "[store]\nurl = \"{}\"\n[[telegram]]\nname = \"{NAME}\"\ntoken = {{ env = \"BOT_TOKEN\" }}\n\
         api_url = \"{}\"\n",
        rig.database.url(),
        rig.fake.api_url(),
    )
}

/// Waits until the database is as wanted.
pub(super) async fn wait_for(what: &str, is_so: impl AsyncFn() -> bool) {
    let start = std::time::Instant::now();
    while !is_so().await {
        assert!(start.elapsed() < Duration::from_secs(60), "never {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// The points at which a request stops before its answer is whole.
pub(super) const EARLY: [Point; 3] = [Point::Received, Point::BeforeReply, Point::HalfBody];
