//! One durable inbox for Telegram updates and UnifyPort deliveries.

pub mod clock;
pub mod config;
pub mod event;
pub mod http;
pub mod inbox;
pub mod json;
pub mod receive;
pub mod shutdown;
pub mod source;
pub mod store;
pub mod telemetry;
pub mod view;
pub mod work;
