//! What operators look at: the receivers' states and the process's health.

mod health;
mod sources;

pub use health::{Health, private, public};
pub use sources::{routes, shown};
