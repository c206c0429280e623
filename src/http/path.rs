//! The variable part of a path as text, with the refusal of a path that names nothing.
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;

use super::problem::Refusal;

/// The one variable segment of the route's path, decoded. What is not UTF-8 names nothing: 404,
/// where axum's own `Path` answers a 400 that is no problem. Nor does a text with a NUL, which
/// PostgreSQL takes for a fault of ours.
#[derive(Clone, Debug)]
pub struct Segment(pub String);

impl<S: Send + Sync> FromRequestParts<S> for Segment {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let segment = Path::<String>::from_request_parts(parts, state).await;
        let Ok(Path(text)) = segment else { return Err(Refusal::NotFound) };
        if text.contains('\0') { Err(Refusal::NotFound) } else { Ok(Self(text)) }
    }
}
