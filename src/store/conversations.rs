//! Conversations, the latest first.

use async_trait::async_trait;

/// Conversations, the latest first.
#[async_trait]
pub trait Conversations {}
