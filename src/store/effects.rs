//! What workers did outside, recorded around the act.

use async_trait::async_trait;

/// What workers did outside, recorded around the act.
#[async_trait]
pub trait Effects {}
