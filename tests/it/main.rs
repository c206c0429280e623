//! The one integration-test binary.

mod json;
mod json_reference;
mod receipt_facts;
mod signature;
mod timestamp;
mod view;
mod config;
