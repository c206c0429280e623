//! Stand-ins for the outside world, for the demo, the examples and the tests.
//!
//! Nothing here is used when `inboxd serve` runs, and nothing here uses another module of ours but
//! the clock and the signature, which is held by published vectors: what checks the product must
//! not share its mistakes.

pub mod bot_api;
pub mod unifyport;
