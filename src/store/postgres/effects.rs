//! What workers did outside, recorded around the act: on PostgreSQL.

use async_trait::async_trait;

use super::PostgresStore;
use crate::store::Effects;

#[async_trait]
impl Effects for PostgresStore {}
