//! The Telegram ingester against a server that deletes like the real one.
//!
//! Most tests run the pollers in this process, with fifty seconds of theirs and of the server's in
//! a real one; where the process matters, the real binary runs in real time. In every test the
//! fake's lint is on, and each confirmation is judged before its answer: the updates have to be
//! committed, and the offset has to be the one in the store.
//!
//! `INBOXD_KILLS` and `INBOXD_SOAK` set the number of kills and of updates.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "clippy knows tests, but not the functions that tests share"
)]

mod answers;
mod bytes;
mod database;
mod failures;
mod gaps;
mod gateways;
mod kills;
mod lease;
mod offsets;
mod pacing;
mod process;
mod rig;
mod secrecy;
mod sequences;
mod soak;
mod webhooks;

/// A number from the environment, for a longer or shorter run.
fn number_from_environment(name: &str, ordinary: usize) -> usize {
    std::env::var(name).ok().map_or(ordinary, |text| text.parse().expect("a number"))
}
