//! `inboxd openapi`.

use super::output::print;
use crate::openapi::document;

/// Prints the document, indented for people.
pub(super) async fn openapi() -> anyhow::Result<()> {
    let mut text = serde_json::to_string_pretty(&document()?)?;
    text.push('\n');
    print(text).await
}
