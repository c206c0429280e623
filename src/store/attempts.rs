//! How attempts end other than well: nack, extend, and what became dead.

use async_trait::async_trait;

/// How attempts end other than well: nack, extend, and what became dead.
#[async_trait]
pub trait Attempts {}
