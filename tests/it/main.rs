//! The one integration-test binary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on should stop at that line; the helpers are part of the tests"
)]

mod architecture;
mod cli;
mod config;
mod consumers;
mod conversations;
mod demo;
mod fake_bot_api;
mod golden;
mod http;
mod json;
mod json_reference;
mod openapi;
mod proof;
mod receipt_facts;
mod receiver;
mod replay;
mod retention;
mod shutdown;
mod signature;
mod store;
mod stream;
mod support;
mod telegram;
mod timestamp;
mod view;
mod waiting;
mod worker;
mod worker_attempts;
mod worker_effects;
