//! What operators look at: the receivers' states, possible losses, the process's health, and what
//! the API is.

mod gaps;
mod health;
mod openapi;
mod sources;

use std::sync::Arc;

use axum::Router;

use crate::inbox::Inbox;

pub use gaps::{ShownGap, gap};
pub use health::{Health, private, public};
pub use sources::{Shown, shown};

/// The routes, to be put behind `http::bearer::authenticate`.
pub fn routes(inbox: Arc<Inbox>) -> Router {
    sources::routes(inbox.clone()).merge(gaps::routes(inbox)).merge(openapi::routes())
}
