//! One durable inbox for Telegram updates and UnifyPort deliveries.

pub mod clock;
pub mod event;
pub mod json;
pub mod receive;
pub mod source;
pub mod store;
pub mod view;
pub mod work;
pub mod config;
pub mod http;
pub mod shutdown;
pub mod telemetry;
