//! Following the inbox: events in order of receipt, as they come. A commit of this process is seen at
//! once, another's within a short look.

use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

use super::{Inbox, StoreError};
use crate::event::{Event, EventQuery, Sequence};

/// Between two looks for events that nobody announced.
const LOOK: Duration = Duration::from_millis(200);
/// Numbers that one statement goes through: a filter that matches nothing must not make it long.
const STRETCH: Sequence = 20_000;

impl Inbox {
    /// The number of the newest event; zero if there is none.
    pub async fn newest(&self) -> Result<Sequence, StoreError> {
        self.store.newest().await
    }

    /// The next events behind `after` that `query` names, and the number to go on behind. Waits up to
    /// `wait` for one to come, and for a store that is away; then there are none. `None` once the
    /// process drains.
    pub async fn next_events(
        &self,
        query: &EventQuery,
        mut after: Sequence,
        wait: Duration,
    ) -> Result<Option<(Vec<Event>, Sequence)>, StoreError> {
        let end = Instant::now() + wait;
        let mut commits = self.wake.commits();
        loop {
            if self.shutdown.is_soft() {
                return Ok(None);
            }
            // Only later commits call.
            commits.mark_unchanged();
            match self.look(query, &mut after, end).await {
                Ok(events) if !events.is_empty() => return Ok(Some((events, after))),
                Ok(_) | Err(StoreError::Unavailable(_)) => {}
                Err(error) => return Err(error),
            }
            tokio::select! {
                _ = commits.changed() => {}
                () = sleep(LOOK) => {}
                () = sleep_until(end) => return Ok(Some((Vec::new(), after))),
                () = self.shutdown.soft() => return Ok(None),
            }
        }
    }

    /// What is there behind `after`, which goes on to where the look ended.
    async fn look(
        &self,
        query: &EventQuery,
        after: &mut Sequence,
        end: Instant,
    ) -> Result<Vec<Event>, StoreError> {
        let newest = self.store.newest().await?;
        while *after < newest {
            let through = newest.min(after.saturating_add(STRETCH));
            let stretch = EventQuery {
                after: Some(*after),
                through: Some(through),
                ascending: true,
                ..query.clone()
            };
            let page = self.store.events(stretch).await?;
            let last = page.events.last().map(|event| event.sequence);
            *after = last.filter(|_| page.more).unwrap_or(through);
            if last.is_some() || Instant::now() >= end {
                return Ok(page.events);
            }
        }
        Ok(Vec::new())
    }
}
