//! One durable inbox for Telegram updates and UnifyPort deliveries.

pub mod clock;
pub mod event;
pub mod source;
pub mod store;
pub mod work;
