//! Finished and dead work that becomes due again.

use async_trait::async_trait;

/// Finished and dead work that becomes due again.
#[async_trait]
pub trait Replays {}
