//! The one integration-test binary.

mod fake_bot_api;
