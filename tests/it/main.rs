//! The one integration-test binary.

mod config;
