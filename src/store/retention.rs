//! Removing what is finished and old.

use async_trait::async_trait;

/// Removing what is finished and old.
#[async_trait]
pub trait Retention {}
