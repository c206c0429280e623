//! Removing what is finished and old: on SQLite.

use async_trait::async_trait;

use super::SqliteStore;
use crate::store::Retention;

#[async_trait]
impl Retention for SqliteStore {}
