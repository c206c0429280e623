//! UnifyPort deliveries: signed HTTP requests that are pushed to us.
//!
//! A delivery is judged in this order: [`signature`] over the bytes as they came, [`timestamp`]
//! against the tolerance, then [`identity`] and [`envelope`], because nothing in a body means
//! anything before its signature holds. [`endpoint`] is that judgement, [`routes`] commits and
//! answers.

pub mod endpoint;
mod endpoints;
pub mod envelope;
mod health;
pub mod identity;
mod routes;
pub mod signature;
pub mod timestamp;

pub use endpoints::Endpoints;
pub use routes::{Receiver, routes};
