//! Telegram updates: pulled by long polls of `getUpdates`.
//!
//! [`bot_api`] asks, [`answer`] sorts what comes back, [`batch`] cuts and names updates, [`update`]
//! reads one, and a poller holds the lease, commits each batch with its offset and only then
//! confirms.

pub mod answer;
pub mod batch;
pub mod bot_api;
mod duty;
mod lease;
mod pace;
mod poller;
mod pollers;
pub mod state;
pub mod update;

pub use pace::Pace;
pub use pollers::Pollers;
