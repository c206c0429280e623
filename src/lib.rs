//! One durable inbox for Telegram updates and UnifyPort deliveries.

pub mod simulate;
