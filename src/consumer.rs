//! How a consumer stands, and where a new one begins.

use std::time::Duration;

use crate::clock::Time;
use crate::work::Consumer;

/// A consumer with unfinished work that nobody has claimed from for so long is warned of.
pub const UNCLAIMED: Duration = Duration::from_secs(3600);

/// Which events become work of a consumer that is added, beside all that come later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// None that is there.
    Now,
    /// All that are there.
    Beginning,
    /// Those that were received at this time or later.
    At(Time),
}

/// A consumer as it stood at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerState {
    /// Its settings.
    pub consumer: Consumer,
    /// When this was read, by the store's clock.
    pub at: Time,
    /// Whether claims are empty because an operator wants it so.
    pub paused: bool,
    /// Whether claims are empty because events that were there before it are still becoming its
    /// work.
    pub filling: bool,
    /// When it was added.
    pub created_at: Time,
    /// When a worker last asked for work, to about a minute.
    pub last_claim_at: Option<Time>,
    /// Unfinished and due, or behind what is due; a lease that ran out counts here.
    pub ready: i64,
    /// Unfinished and put off.
    pub delayed: i64,
    /// Held by a claim.
    pub leased: i64,
    /// Finished well and not removed yet.
    pub done: i64,
    /// Given up.
    pub dead: i64,
    /// For how long the longest due has been due.
    pub oldest_ready: Option<Duration>,
}

impl ConsumerState {
    /// Work that is not finished.
    pub fn unfinished(&self) -> i64 {
        self.ready + self.delayed + self.leased
    }

    /// What an operator should know, in a sentence with the remedy: work piles up and nobody takes
    /// it, which goes on for ever, because what is unfinished is never removed.
    pub fn warning(&self) -> Option<String> {
        let last = self.last_claim_at.unwrap_or(self.created_at);
        let idle = self.at.since(last) >= UNCLAIMED;
        if !idle || self.paused || self.filling || self.unfinished() == 0 {
            return None;
        }
        let since = match self.last_claim_at {
            Some(last) => format!("nobody has claimed from it since {last}"),
            None => format!("nobody has ever claimed from it since it was added at {last}"),
        };
        let name = &self.consumer.name;
        let waits = match self.unfinished() {
            1 => "1 event waits".to_owned(),
            count => format!("{count} events wait"),
        };
        Some(format!(
            "{waits} for the consumer {name} and {since}: what is unfinished is never \
             removed, paused or not, so start its workers, or let it go with `inboxd consumers remove {name}`"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::{Filter, Ordering};

    const HOUR: Duration = UNCLAIMED;

    fn state() -> ConsumerState {
        let consumer = Consumer {
            name: "crm".to_owned(),
            ordering: Ordering::Conversation,
            lease: HOUR,
            max_attempts: 20,
            backoff_first: HOUR,
            backoff_max: HOUR,
            filter: Filter::default(),
        };
        let at = Time::parse("2026-11-30T12:00:00Z").unwrap();
        ConsumerState {
            consumer,
            at,
            paused: false,
            filling: false,
            created_at: at - 9 * HOUR,
            last_claim_at: Some(at - HOUR),
            ready: 2,
            delayed: 1,
            leased: 0,
            done: 0,
            dead: 0,
            oldest_ready: None,
        }
    }

    #[test]
    fn what_nobody_claims_is_warned_of() {
        let warning = state().warning().unwrap();
        for part in ["3 events wait for the consumer crm", "since 2026-11-30T11:00:00Z", "remove"] {
            assert!(warning.contains(part), "{part}: {warning}");
        }
        let warning = ConsumerState { last_claim_at: None, ..state() }.warning().unwrap();
        assert!(warning.contains("ever claimed from it since it was added at 2026-11-30T03"));
    }

    #[test]
    fn what_is_claimed_or_empty_or_rests_is_not() {
        let late = |by: u64| Some(state().at - HOUR + Duration::from_micros(by));
        for fine in [
            ConsumerState { last_claim_at: late(1), ..state() },
            ConsumerState { last_claim_at: None, created_at: late(1).unwrap(), ..state() },
            ConsumerState { ready: 0, delayed: 0, dead: 9, done: 9, ..state() },
            ConsumerState { paused: true, ..state() },
            ConsumerState { filling: true, ..state() },
        ] {
            assert_eq!(fine.warning(), None, "{fine:?}");
        }
    }
}
