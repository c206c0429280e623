//! Consumers as operators see them and change them: on PostgreSQL.

use async_trait::async_trait;

use super::PostgresStore;
use crate::store::Consumers;

#[async_trait]
impl Consumers for PostgresStore {}
