//! `GET /v1/openapi.json`: what this API is.

use axum::Router;
use axum::routing::get;

use crate::http::bearer::Principal;
use crate::http::json::{Json, NoQuery};
use crate::http::problem::Refusal;
use crate::openapi::{Document, document};

/// The route, to be put behind `http::bearer::authenticate`.
pub(super) fn routes() -> Router {
    Router::new().route("/v1/openapi.json", get(read))
}

async fn read(_principal: Principal, _: NoQuery) -> Result<Json<Document>, Refusal> {
    document().map(Json).map_err(|error| {
        tracing::error!("a part of the OpenAPI document is no JSON: {error}");
        Refusal::Internal
    })
}
