//! How attempts end other than well: nack, extend, and what became dead: on SQLite.

use async_trait::async_trait;

use super::SqliteStore;
use crate::store::Attempts;

#[async_trait]
impl Attempts for SqliteStore {}
