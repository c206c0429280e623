//! HTTP as both listeners speak it: connections, limits, bodies, access and refusals. It serves
//! any axum `Router`, and knows nothing of stores, receivers or workers.
//!
//! [`server`] accepts and drains, `drain` lets an early answer reach its client, [`body`] reads
//! a body within limits, [`json`] turns it into types, [`path`] reads what a path names, [`bearer`]
//! says who asks, and [`problem`] is the only table from a refusal to its status.
pub mod bearer;
pub mod body;
pub mod json;
pub mod path;
pub mod problem;
pub mod server;

mod accept;
mod drain;
mod loopback;
mod stall;
