//! One durable inbox for Telegram updates and UnifyPort deliveries.

pub mod json;
pub mod receive;
pub mod view;
