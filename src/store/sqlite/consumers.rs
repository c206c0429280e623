//! Consumers as operators see them and change them: on SQLite.

use async_trait::async_trait;

use super::SqliteStore;
use crate::store::Consumers;

#[async_trait]
impl Consumers for SqliteStore {}
