//! How events go out: workers claim and ack them, people read them.

mod api;
mod consumers;
mod events;
mod json;
mod work;

pub use api::{Api, routes};
pub use consumers::{List, Shown, shown, shown_list};
pub use json::{detail, item};
