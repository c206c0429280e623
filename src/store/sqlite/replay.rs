//! Finished and dead work that becomes due again: on SQLite.

use async_trait::async_trait;

use super::SqliteStore;
use crate::store::Replays;

#[async_trait]
impl Replays for SqliteStore {}
