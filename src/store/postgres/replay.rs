//! Finished and dead work that becomes due again: on PostgreSQL.

use async_trait::async_trait;

use super::PostgresStore;
use crate::store::Replays;

#[async_trait]
impl Replays for PostgresStore {}
