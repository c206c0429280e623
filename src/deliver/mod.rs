//! How events go out: workers claim, ack and nack them, people read them.

mod api;
mod attempts;
mod events;
mod json;
mod receipts;
mod work;

pub use api::{Api, routes};
pub use json::{dead_letter, detail, item};
