//! What workers did outside, recorded around the act: on SQLite.

use async_trait::async_trait;

use super::SqliteStore;
use crate::store::Effects;

#[async_trait]
impl Effects for SqliteStore {}
