//! How events come in: one module a channel.

pub mod telegram;
pub mod unifyport;
