//! The one integration-test binary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on should stop at that line; the helpers are part of the tests"
)]

mod architecture;
mod config;
mod http;
mod json;
mod json_reference;
mod receipt_facts;
mod shutdown;
mod signature;
mod support;
mod timestamp;
mod view;

mod fake_bot_api;
mod telegram;
