//! `inboxd events tail`: the newest events, and those that come.

use std::time::Duration;

use anyhow::Context as _;

use super::filter::matches;
use super::list::Printer;
use crate::event::{Event, EventQuery, Sequence};
use crate::store::{Store, StoreError};
use crate::telemetry::Lasting;

/// How often the store is asked: nobody reads faster.
const PAUSE: Duration = Duration::from_millis(500);

/// Prints the newest events of `query`, so many or all behind a number, then what comes, until SIGINT.
pub(super) async fn tail(
    store: &dyn Store,
    query: &EventQuery,
    begin: (usize, Option<Sequence>),
    json: bool,
) -> anyhow::Result<()> {
    let interrupted = tokio::signal::ctrl_c();
    tokio::select! {
        ended = follow(store, query, begin, Printer::new(json)) => ended,
        signal = interrupted => signal.context("Ctrl-C cannot be waited for"),
    }
}

async fn follow(
    store: &dyn Store,
    query: &EventQuery,
    (limit, mut after): (usize, Option<Sequence>),
    mut printer: Printer,
) -> anyhow::Result<()> {
    if after.is_none() {
        // The last of all is asked for first, because what matches behind it is yet to be printed.
        let last = store.newest().await?;
        let first = newest(store, query, limit).await?;
        after = first.last().map(|event| event.sequence).max(Some(last));
        printer.print(&first).await?;
    }
    let outage = Lasting::new();
    loop {
        // Everything that comes is read, and filtered here, because the store would go through
        // what does not match again each time.
        let (limit, max_bytes) = (super::PAGE, super::PAGE_BYTES);
        let next = EventQuery { after, ascending: true, limit, max_bytes, ..EventQuery::default() };
        match store.events(next).await {
            Ok(page) => {
                outage.end("the store answers again");
                after = page.events.last().map(|event| event.sequence).or(after);
                let (more, events) = (page.more, page.events.into_iter());
                let events: Vec<Event> = events.filter(|event| matches(query, event)).collect();
                if !events.is_empty() {
                    printer.print(&events).await?;
                }
                if more {
                    continue;
                }
            }
            Err(StoreError::Unavailable(error)) => {
                outage.begin(format_args!("the store does not answer ({error}); trying again"));
            }
            Err(error) => return Err(error.into()),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// The newest `limit` events of `query`, oldest first.
async fn newest(store: &dyn Store, query: &EventQuery, limit: usize) -> anyhow::Result<Vec<Event>> {
    if limit == 0 {
        return Ok(Vec::new());
    }
    let query = EventQuery { limit, max_bytes: usize::MAX, ..query.clone() };
    let mut events = store.events(query).await?.events;
    events.reverse();
    Ok(events)
}
