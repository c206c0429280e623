//! The one integration-test binary.

mod json;
mod json_reference;
mod receipt_facts;
mod signature;
mod timestamp;
mod view;
mod config;
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "clippy.toml allows them in test functions, and a test's helpers are no others"
)]
mod http;
mod shutdown;
