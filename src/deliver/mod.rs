//! How events go out: workers claim and ack them and record what they did, people read them.

mod api;
mod effects;
mod events;
mod json;
mod work;

pub use api::{Api, routes};
pub use json::{detail, item};
