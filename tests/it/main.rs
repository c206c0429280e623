//! The one integration-test binary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "clippy.toml allows them in test functions, and a test's helpers are no others"
)]
mod http;
mod shutdown;
