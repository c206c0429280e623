//! What happened, in order: the ground truth that a test compares the product with.

use std::collections::HashSet;

use bytes::Bytes;

use super::args::Args;
use super::bot::RequestId;
use super::queue::{Refusal, Removed};
use super::rules::Seconds;
use super::token::BotKey;

/// One happening.
#[derive(Clone, Debug)]
pub struct Entry {
    /// When.
    pub at: Seconds,
    /// What.
    pub what: What,
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct Received {
    /// Its number.
    pub request: RequestId,
    /// The bot it is for, if its token is known.
    pub bot: Option<BotKey>,
    /// In lower case; empty if the path names none.
    pub method: String,
    /// Path and query as sent, so **with the token**.
    pub target: String,
    /// Its arguments.
    pub args: Args,
    /// Its headers, names in lower case.
    pub headers: Vec<(String, String)>,
}

/// Updates deleted by an offset before any answer held them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The bot.
    pub bot: BotKey,
    /// Their ids.
    pub ids: Vec<i32>,
    /// The request that deleted them.
    pub request: RequestId,
    /// No client could have known better: it was the first call after a start, or the
    /// confirmation of a batch just received, with a rollback in between.
    pub excused: bool,
}

/// The kinds of happening.
#[derive(Clone, Debug)]
pub enum What {
    /// A request arrived.
    Received(Received),
    /// A push was left out by `allowed_updates`.
    Filtered {
        /// The bot.
        bot: BotKey,
        /// The kind left out.
        kind: String,
    },
    /// A push was refused.
    Refused {
        /// The bot.
        bot: BotKey,
        /// Why.
        reason: Refusal,
    },
    /// An offset deleted updates.
    Confirmed {
        /// The bot.
        bot: BotKey,
        /// Which, and how often each had been delivered.
        updates: Vec<Removed>,
        /// By which request.
        request: RequestId,
    },
    /// Those among the confirmed that nobody had seen.
    LostUnseen(Loss),
    /// A negative offset deleted updates.
    DeletedNegative {
        /// The bot.
        bot: BotKey,
        /// Which, and how often each had been delivered.
        updates: Vec<Removed>,
        /// By which request.
        request: RequestId,
    },
    /// Updates left the queue for a reason that the client cannot see.
    Removed {
        /// The bot.
        bot: BotKey,
        /// Which.
        ids: Vec<i32>,
        /// Why.
        cause: Cause,
    },
    /// The sequence goes on at another id than the one after its last.
    SequenceMoved {
        /// The bot.
        bot: BotKey,
        /// The id the next update gets; 0 for a random one.
        tail: i32,
    },
    /// The server put updates into an answer.
    Delivered {
        /// The bot.
        bot: BotKey,
        /// Which.
        ids: Vec<i32>,
        /// For which request.
        request: RequestId,
    },
    /// A fault was done to a request.
    Faulted {
        /// Which request.
        request: RequestId,
        /// Its class: `net`, `http`, `api`, `data`, `queue` or `barrier`.
        class: &'static str,
        /// What it did, for a person.
        name: String,
    },
    /// An answer goes to its client: noted just before the last of it is written.
    Answering {
        /// To which request.
        request: RequestId,
    },
    /// An answer has been written as far as it will be.
    Answered(Answered),
    /// The client closed its connection before it had an answer.
    ClientGone {
        /// Of which request.
        request: RequestId,
    },
}

/// An answer that was written.
#[derive(Clone, Debug)]
pub struct Answered {
    /// To which request.
    pub request: RequestId,
    /// Its status; 0 if not even the head was written.
    pub status: u16,
    /// The updates as they stood in it: each one's id in the queue and exact bytes.
    pub updates: Vec<(i32, Bytes)>,
    /// It was written to the end and a client can read it, if it lives.
    pub whole: bool,
}

/// Why updates left the queue unseen by the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Nobody fetched them in time.
    Expired,
    /// Another consumer confirmed them.
    Stolen,
    /// `drop_pending_updates`, `logOut`, or a queue that the server lost.
    Dropped,
    /// The server forgot them in a rollback.
    RolledBack,
    /// The ids ran out.
    Wrapped,
}

/// The entries so far.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    entries: Vec<Entry>,
    open: HashSet<RequestId>,
    busiest: usize,
}

impl Journal {
    /// Every entry in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// `getUpdates` requests that have arrived and whose answer is not under way.
    pub fn in_flight(&self) -> usize {
        self.open.len()
    }

    /// The most requests that were in flight at once.
    pub fn most_in_flight(&self) -> usize {
        self.busiest
    }

    pub(super) fn note(&mut self, at: Seconds, what: What) {
        match &what {
            What::Received(received) if received.method == "getupdates" => {
                self.open.insert(received.request);
                self.busiest = self.busiest.max(self.open.len());
            }
            What::Answering { request }
            | What::ClientGone { request }
            | What::Answered(Answered { request, .. }) => {
                self.open.remove(request);
            }
            _ => {}
        }
        self.entries.push(Entry { at, what });
    }

    /// Notes that updates left the queue, if any did.
    pub(super) fn note_removed(&mut self, at: Seconds, bot: BotKey, ids: Vec<i32>, cause: Cause) {
        if !ids.is_empty() {
            self.note(at, What::Removed { bot, ids, cause });
        }
    }
}
