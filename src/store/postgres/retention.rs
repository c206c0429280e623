//! Removing what is finished and old: on PostgreSQL.

use async_trait::async_trait;

use super::PostgresStore;
use crate::store::Retention;

#[async_trait]
impl Retention for PostgresStore {}
