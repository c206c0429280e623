//! How events go out: workers claim and ack them, people read them.

mod api;
mod conversations;
mod events;
mod json;
mod messages;
mod work;

pub use api::{Api, routes};
pub use json::{detail, item};
