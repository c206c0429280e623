//! The one integration-test binary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "clippy.toml allows them in test functions, and a test's helpers are no others"
)]

mod architecture;
mod config;
mod http;
mod json;
mod json_reference;
mod receipt_facts;
mod shutdown;
mod signature;
mod store;
mod support;
mod timestamp;
mod view;
