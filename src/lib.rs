//! One durable inbox for Telegram updates and UnifyPort deliveries.
//!
//! Events come in by [`receive`], are committed by [`inbox`] to a [`store`], and go out by
//! [`deliver`]. [`run`] is the whole gateway; the command line, the tests and the demo use it alike.

pub mod cli;
pub mod clock;
pub mod config;
pub mod consumer;
pub mod conversation;
pub mod deliver;
pub mod effect;
pub mod event;
pub mod http;
pub mod inbox;
pub mod json;
pub mod openapi;
pub mod operate;
pub mod receive;
pub mod replay;
pub mod retry;
mod serve;
pub mod shutdown;
pub mod simulate;
pub mod source;
pub mod store;
pub mod telemetry;
pub mod view;
pub mod work;

pub use serve::{Listeners, open, run};
