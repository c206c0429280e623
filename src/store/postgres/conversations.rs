//! Conversations, the latest first: on PostgreSQL.

use async_trait::async_trait;

use super::PostgresStore;
use crate::store::Conversations;

#[async_trait]
impl Conversations for PostgresStore {}
