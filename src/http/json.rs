//! JSON and query strings as types, with refusals that name the field at fault.
use axum::extract::{FromRef, FromRequest, FromRequestParts, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Uri};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::error::Category;

use super::body::{BodyLimits, read_body};
use super::problem::Refusal;

/// A JSON body, of a request or of an answer.
///
/// As an extractor it refuses another content type (415), a body over the limits (413, 408,
/// 503), text that is no JSON (400), and unknown fields or values that do not fit (422); query
/// parameters too (422), because what was meant for the body would be passed over there. `T` should
/// say `#[serde(deny_unknown_fields)]`, and the router's state must hold [`BodyLimits`].
#[derive(Clone, Copy, Debug)]
pub struct Json<T>(pub T);

impl<T, S> FromRequest<S> for Json<T>
where
    T: DeserializeOwned,
    BodyLimits: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        no_query(request.uri())?;
        if !is_json(request.headers()) {
            return Err(Refusal::NotJson);
        }
        let body = read_body(request.into_body(), &BodyLimits::from_ref(state)).await?;
        parse(&body.bytes).map(Self)
    }
}

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        match serde_json::to_vec(&self.0) {
            Ok(bytes) => {
                let json = HeaderValue::from_static("application/json");
                ([(CONTENT_TYPE, json)], bytes).into_response()
            }
            Err(error) => {
                tracing::error!("an answer could not be written as JSON: {error}");
                Refusal::Internal.into_response()
            }
        }
    }
}

/// A query string as a type; unknown parameters (where `T` denies them) and values that do not
/// fit are refused with 422.
#[derive(Clone, Copy, Debug)]
pub struct Query<T>(pub T);

impl<T, S> FromRequestParts<S> for Query<T>
where
    T: DeserializeOwned,
    S: Send + Sync,
{
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Refusal> {
        let query = parts.uri.query().unwrap_or_default();
        let pairs = form_urlencoded::parse(query.as_bytes());
        serde_path_to_error::deserialize(serde_urlencoded::Deserializer::new(pairs))
            .map(Self)
            .map_err(|error| at_field(&error.path().to_string(), &error.inner().to_string()))
    }
}

/// For a call that takes no query parameters: one that is given is refused with 422.
#[derive(Clone, Copy, Debug)]
pub struct NoQuery;

impl<S: Send + Sync> FromRequestParts<S> for NoQuery {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Refusal> {
        no_query(&parts.uri).map(|()| Self)
    }
}

fn no_query(uri: &Uri) -> Result<(), Refusal> {
    let query = uri.query().unwrap_or_default();
    let Some((name, _)) = form_urlencoded::parse(query.as_bytes()).next() else { return Ok(()) };
    let detail = "this call takes no query parameters".to_owned();
    Err(Refusal::UnknownField { field: shortened(&name), detail })
}

/// Whether the one `Content-Type` is `application/json`, with or without parameters.
fn is_json(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return false };
    let essence = value.to_str().ok().and_then(|text| text.split(';').next());
    essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case("application/json"))
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Refusal> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let message = error.inner().to_string();
        match error.inner().classify() {
            Category::Data => at_field(&error.path().to_string(), &message),
            Category::Syntax | Category::Eof | Category::Io => malformed(&message),
        }
    })?;
    json.end().map_err(|error| malformed(&error.to_string()))?;
    // serde takes a list for a struct, field by field, and then no field has its name.
    if bytes.trim_ascii_start().starts_with(b"[") {
        return Err(Refusal::invalid("body", "must be a JSON object"));
    }
    Ok(value)
}

fn malformed(message: &str) -> Refusal {
    Refusal::Malformed(format!("the body is no JSON text: {}", shortened(message)))
}

/// The refusal for serde's `message` about the value at `path` (`.` is the whole).
fn at_field(path: &str, message: &str) -> Refusal {
    // serde names a field that is unknown, missing or repeated in its message only.
    let named = |prefix: &str| message.strip_prefix(prefix)?.split('`').next();
    let unknown = named("unknown field `");
    let name = unknown.or_else(|| named("missing field `")).or_else(|| named("duplicate field `"));
    let field = match (path, name) {
        (".", Some(name)) => name.to_owned(),
        (path, Some(name)) if path == name || path.ends_with(&format!(".{name}")) => {
            path.to_owned()
        }
        (path, Some(name)) => format!("{path}.{name}"),
        (".", None) => "body".to_owned(),
        (path, None) => path.to_owned(),
    };
    let (field, detail) = (shortened(&field), shortened(message));
    match unknown {
        Some(_) => Refusal::UnknownField { field, detail },
        None => Refusal::InvalidValue { field, detail },
    }
}

/// The client's own words come back in a refusal, but not by the megabyte.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 300;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Default, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only the refusals are looked at")]
    struct Claim {
        #[serde(default)]
        max: u32,
        ids: Vec<String>,
        filter: Option<Filter>,
        #[serde(default)]
        labels: BTreeMap<String, u8>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only the refusals are looked at")]
    struct Filter {
        kind: String,
    }

    fn refused(text: &str) -> (bool, String) {
        match parse::<Claim>(text.as_bytes()).unwrap_err() {
            Refusal::UnknownField { field, .. } => (true, field),
            Refusal::InvalidValue { field, .. } => (false, field),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn a_refusal_names_the_path_of_the_field() {
        let unknown = |field: &str| (true, field.to_owned());
        let invalid = |field: &str| (false, field.to_owned());
        assert_eq!(refused(r#"{"ids":[],"maxx":1}"#), unknown("maxx"));
        assert_eq!(refused(r#"{"ids":[],"filter":{"kinds":1}}"#), unknown("filter.kinds"));
        assert_eq!(refused(r#"{"ids":[],"max":"1"}"#), invalid("max"));
        assert_eq!(refused(r#"{"ids":[1]}"#), invalid("ids[0]"));
        assert_eq!(refused(r#"{"ids":[],"labels":{"a":256}}"#), invalid("labels.a"));
        assert_eq!(refused(r#"{"ids":[],"filter":{}}"#), invalid("filter.kind"));
        assert_eq!(refused("{}"), invalid("ids"));
        assert_eq!(refused(r#"{"ids":[],"ids":[]}"#), invalid("ids"));
        assert_eq!(refused("[1]"), invalid("body"));
        assert_eq!(refused(r#"[1,["a"],null,{}]"#), invalid("body"));
        assert_eq!(refused("null"), invalid("body"));
    }

    #[test]
    fn what_is_no_json_is_malformed() {
        for text in ["", "{", "{\"ids\":[]}x", "nul", "{\"ids\":[],}", "\u{feff}{}"] {
            let refusal = parse::<Claim>(text.as_bytes()).unwrap_err();
            assert!(matches!(refusal, Refusal::Malformed(_)), "{text}: {refusal:?}");
        }
    }

    #[test]
    fn a_long_field_name_is_cut_in_the_refusal() {
        let (_, field) = refused(&format!(r#"{{"ids":[],"{}":1}}"#, "é".repeat(5000)));
        assert_eq!(field.chars().count(), 301);
    }

    #[test]
    fn the_content_type_is_application_json_alone() {
        let is = |values: &[&'static str]| {
            let values = values.iter().map(|value| (CONTENT_TYPE, HeaderValue::from_static(value)));
            is_json(&HeaderMap::from_iter(values))
        };
        assert!(is(&["application/json"]) && is(&["Application/JSON; charset=utf-8"]));
        assert!(!is(&[]) && !is(&["text/plain"]) && !is(&["application/jsonx"]));
        assert!(!is(&["application/json", "text/plain"]));
    }
}
