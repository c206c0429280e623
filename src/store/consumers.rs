//! Consumers as operators see them and change them.

use async_trait::async_trait;

/// Consumers as operators see them and change them.
#[async_trait]
pub trait Consumers {}
