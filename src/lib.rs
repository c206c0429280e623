//! One durable inbox for Telegram updates and UnifyPort deliveries.
pub mod http;
pub mod shutdown;
pub mod telemetry;
