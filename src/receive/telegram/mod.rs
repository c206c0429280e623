//! Telegram updates: fetched by us with `getUpdates`.

pub mod update;
