//! The OpenAPI document of the private API.
//!
//! Kept by hand in `openapi/`, one file a subject, because it says more than types do: bounds,
//! codes, roles, reasons. `tests/it/openapi` holds it against the router and against real answers.

use serde::Serialize;
use serde_json::{Map, Value};

/// Paths, one file a tag.
const PATHS: [&str; 6] = [
    include_str!("openapi/paths/work.json"),
    include_str!("openapi/paths/effects.json"),
    include_str!("openapi/paths/consumers.json"),
    include_str!("openapi/paths/events.json"),
    include_str!("openapi/paths/conversations.json"),
    include_str!("openapi/paths/gateway.json"),
];

/// Schemas, one file a tag, and those that all use.
const SCHEMAS: [&str; 7] = [
    include_str!("openapi/schemas/common.json"),
    include_str!("openapi/schemas/work.json"),
    include_str!("openapi/schemas/effects.json"),
    include_str!("openapi/schemas/consumers.json"),
    include_str!("openapi/schemas/events.json"),
    include_str!("openapi/schemas/conversations.json"),
    include_str!("openapi/schemas/gateway.json"),
];

/// An OpenAPI 3.1 document.
#[derive(Clone, Debug, Serialize)]
pub struct Document {
    openapi: &'static str,
    info: Map<String, Value>,
    tags: Value,
    paths: Map<String, Value>,
    components: Components,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Components {
    security_schemes: Value,
    parameters: Value,
    responses: Value,
    schemas: Map<String, Value>,
}

/// The document of this version.
///
/// # Errors
/// A part is no JSON, which a test excludes.
pub fn document() -> serde_json::Result<Document> {
    let mut info: Map<String, Value> = serde_json::from_str(include_str!("openapi/info.json"))?;
    info.insert("version".to_owned(), env!("CARGO_PKG_VERSION").into());
    Ok(Document {
        openapi: "3.1.0",
        info,
        tags: serde_json::from_str(include_str!("openapi/tags.json"))?,
        paths: joined(&PATHS)?,
        components: Components {
            security_schemes: serde_json::from_str(include_str!("openapi/security.json"))?,
            parameters: serde_json::from_str(include_str!("openapi/parameters.json"))?,
            responses: serde_json::from_str(include_str!("openapi/responses.json"))?,
            schemas: joined(&SCHEMAS)?,
        },
    })
}

/// The members of all these objects in one.
fn joined(parts: &[&str]) -> serde_json::Result<Map<String, Value>> {
    let mut all = Map::new();
    for part in parts {
        all.extend(serde_json::from_str::<Map<String, Value>>(part)?);
    }
    Ok(all)
}
