//! How attempts end other than well: nack, extend, and what became dead: on PostgreSQL.

use async_trait::async_trait;

use super::PostgresStore;
use crate::store::Attempts;

#[async_trait]
impl Attempts for PostgresStore {}
