//! Conversations, the latest first: on SQLite.

use async_trait::async_trait;

use super::SqliteStore;
use crate::store::Conversations;

#[async_trait]
impl Conversations for SqliteStore {}
