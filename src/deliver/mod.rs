//! How events go out: workers claim them, say how it went and record what they did; people read them.

mod api;
mod attempts;
mod consumers;
mod conversations;
mod effects;
mod events;
mod json;
mod messages;
mod receipts;
mod replay;
mod stream;
mod work;

pub use api::{Api, routes};
pub use consumers::{List, Shown, shown, shown_list};
pub use json::{dead_letter, detail, item};
