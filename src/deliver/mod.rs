//! How events go out: workers claim and ack them, people read them.

mod api;
mod events;
mod json;
mod stream;
mod work;

pub use api::{Api, routes};
pub use json::{detail, item};
