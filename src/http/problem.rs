//! Refusals, and the only table from a refusal to what the client reads:
//! `application/problem+json` (RFC 9457) with a `code` that clients may rely on.
use std::borrow::Cow;
use std::time::Duration;

use axum::Router;
use axum::http::header::{CONNECTION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::inbox::StoreError;

/// Why a request is not done. [`Refusal::problem`] is its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A delivery that is not authentic, or not of now. Which check failed is not told, because
    /// that would help a forger.
    Unverified,
    /// No bearer token, or one that is not configured.
    Unauthenticated,
    /// The token's role may not do this.
    Role,
    /// The token may not act for the consumer of this name.
    Consumer(String),
    /// Without tokens: a `Host` that is no loopback name, so perhaps a rebound DNS name.
    Host,
    /// Without tokens: an `Origin` that is not this listener, so a foreign page in a browser.
    Origin,
    /// No such path, endpoint or object.
    NotFound,
    /// No consumer of this name.
    UnknownConsumer(String),
    /// The path exists with other methods; axum's router adds `Allow`.
    MethodNotAllowed,
    /// The body did not arrive in time.
    BodyTimeout,
    /// The body broke off, or its framing is broken. 408, because senders retry that.
    BodyIncomplete,
    /// The receipt is no longer good.
    StaleReceipt,
    /// A newer token of the same effect was given, or the effect has ended otherwise.
    StaleToken,
    /// The body is over the limit, in bytes.
    BodyTooLarge(u64),
    /// `Content-Type` is not `application/json`.
    NotJson,
    /// The body is no JSON text; says where.
    Malformed(String),
    /// A field or query parameter that does not exist.
    UnknownField {
        /// Its path, such as `filter.chanels`.
        field: String,
        /// What exists there.
        detail: String,
    },
    /// A field or query parameter that is missing or has a value it cannot have.
    InvalidValue {
        /// Its path, such as `lease`.
        field: String,
        /// What is wrong with it.
        detail: String,
    },
    /// The peer had too many unauthenticated failures; good again after this time.
    TooManyFailures(Duration),
    /// A fault of ours that no retry cures by itself.
    Internal,
    /// A passing fault of ours.
    Unavailable(Unavailable),
}

/// Why we cannot do now what we could do later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// The store is down, full, locked or failing.
    Store,
    /// Too much waits for the store already.
    QueueFull,
    /// Bodies in flight are over their limit.
    TooManyBodies,
    /// Not committed within the answer timeout.
    AnswerTimeout,
    /// The process drains.
    ShuttingDown,
    /// The store knows this endpoint, the config no longer does.
    EndpointNotConfigured,
}

impl Refusal {
    /// A field whose value cannot be.
    pub fn invalid(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::InvalidValue { field: field.into(), detail: detail.into() }
    }

    /// The table. Nothing that may be our own fault is a 4xx other than 408 and 429, because
    /// UnifyPort drops an event on any other (interface of the public listener).
    pub fn problem(self) -> Problem {
        use StatusCode as S;
        match self {
            Self::Malformed(detail) => Problem::new(S::BAD_REQUEST, "malformed_json", detail),
            Self::Unverified => {
                Problem::new(S::UNAUTHORIZED, "unauthorized", "this delivery was not accepted")
            }
            Self::Unauthenticated => {
                let detail = "a valid bearer token is required: Authorization: Bearer <token>";
                Problem::new(S::UNAUTHORIZED, "unauthenticated", detail)
                    .header(WWW_AUTHENTICATE, "Bearer realm=\"inboxd\"")
            }
            Self::Role => {
                let detail = "this call needs a token with the operator role";
                Problem::new(S::FORBIDDEN, "role_forbidden", detail)
            }
            Self::Consumer(name) => {
                let detail = format!("this token may not act for consumer {name:?}");
                Problem::new(S::FORBIDDEN, "consumer_forbidden", detail)
            }
            Self::Host => {
                let detail = "without tokens only a loopback Host is answered; \
                              configure [[token]] to use another name";
                Problem::new(S::FORBIDDEN, "host_forbidden", detail)
            }
            Self::Origin => {
                let detail = "without tokens pages of another origin are not answered";
                Problem::new(S::FORBIDDEN, "origin_forbidden", detail)
            }
            Self::NotFound => Problem::new(S::NOT_FOUND, "not_found", "nothing is here"),
            Self::UnknownConsumer(name) => {
                let detail = format!("there is no consumer {name:?}");
                Problem::new(S::NOT_FOUND, "unknown_consumer", detail)
            }
            Self::MethodNotAllowed => {
                let detail = "this path takes only the methods that Allow lists";
                Problem::new(S::METHOD_NOT_ALLOWED, "method_not_allowed", detail)
            }
            Self::BodyTimeout => {
                let detail = "the request body did not arrive in time";
                Problem::new(S::REQUEST_TIMEOUT, "body_timeout", detail).closing()
            }
            Self::BodyIncomplete => {
                let detail = "the request body did not arrive whole";
                Problem::new(S::REQUEST_TIMEOUT, "body_incomplete", detail).closing()
            }
            Self::StaleReceipt => {
                let detail =
                    "the receipt is stale: its work was finished, given back, or claimed again";
                Problem::new(S::CONFLICT, "stale_receipt", detail)
            }
            Self::StaleToken => {
                let detail = "the token is stale: a newer one was given, or the effect has ended";
                Problem::new(S::CONFLICT, "stale_token", detail)
            }
            Self::BodyTooLarge(limit) => {
                let detail = format!("the request body is over {limit} bytes");
                Problem::new(S::PAYLOAD_TOO_LARGE, "body_too_large", detail).closing()
            }
            Self::NotJson => {
                let detail = "the body must be JSON, with Content-Type: application/json";
                Problem::new(S::UNSUPPORTED_MEDIA_TYPE, "not_json", detail)
            }
            Self::UnknownField { field, detail } => {
                Problem::new(S::UNPROCESSABLE_ENTITY, "unknown_field", detail).field(field)
            }
            Self::InvalidValue { field, detail } => {
                Problem::new(S::UNPROCESSABLE_ENTITY, "invalid_value", detail).field(field)
            }
            Self::TooManyFailures(wait) => {
                let detail = "too many requests of this peer failed; wait";
                Problem::new(S::TOO_MANY_REQUESTS, "too_many_failures", detail).retry_after(wait)
            }
            Self::Internal => {
                let detail = "a fault of the gateway; its log says which";
                Problem::new(S::INTERNAL_SERVER_ERROR, "internal", detail)
            }
            Self::Unavailable(reason) => {
                let (code, detail) = reason.words();
                let problem = Problem::new(S::SERVICE_UNAVAILABLE, code, detail)
                    .retry_after(Duration::from_secs(rand::random_range(RETRY_SECONDS)));
                match reason {
                    Unavailable::TooManyBodies => problem.closing(),
                    _ => problem,
                }
            }
        }
    }
}

/// Spread, because all who were refused together would otherwise come back together.
const RETRY_SECONDS: std::ops::RangeInclusive<u64> = 2..=6;

impl Unavailable {
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Store => ("store_unavailable", "the store does not answer now"),
            Self::QueueFull => ("queue_full", "too much waits for the store now"),
            Self::TooManyBodies => ("too_many_bodies", "too many bodies are in flight now"),
            Self::AnswerTimeout => ("answer_timeout", "the commit took too long"),
            Self::ShuttingDown => ("shutting_down", "the gateway is shutting down"),
            Self::EndpointNotConfigured => {
                ("endpoint_not_configured", "this endpoint is not configured now")
            }
        }
    }
}

impl From<StoreError> for Refusal {
    /// What may pass by itself is a 503; what cannot is logged, because nobody else would see it.
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(_) => Self::Unavailable(Unavailable::Store),
            StoreError::UnknownConsumer(name) => Self::UnknownConsumer(name),
            StoreError::Refused(_)
            | StoreError::LeaseLost
            | StoreError::Schema(_)
            | StoreError::Unprepared(_) => {
                tracing::error!("a request failed in the store: {error}");
                Self::Internal
            }
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        self.problem().into_response()
    }
}

/// One `application/problem+json` answer.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The HTTP status.
    pub status: StatusCode,
    /// What clients branch on; never changes its meaning.
    pub code: &'static str,
    /// One sentence for a person.
    pub detail: Cow<'static, str>,
    /// The path of the field at fault.
    pub field: Option<String>,
    /// When to try again; sent as whole seconds, rounded up, at least one.
    pub retry_after: Option<Duration>,
    headers: Vec<(HeaderName, &'static str)>,
}

impl Problem {
    fn new(status: StatusCode, code: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        let detail = detail.into();
        Self { status, code, detail, field: None, retry_after: None, headers: Vec::new() }
    }

    fn field(self, field: String) -> Self {
        Self { field: Some(field), ..self }
    }

    fn retry_after(self, wait: Duration) -> Self {
        Self { retry_after: Some(wait), ..self }
    }

    fn header(mut self, name: HeaderName, value: &'static str) -> Self {
        self.headers.push((name, value));
        self
    }

    /// The rest of the request is not read, so the connection cannot carry another one.
    fn closing(self) -> Self {
        self.header(CONNECTION, "close")
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut body = serde_json::json!({
            "type": "about:blank",
            "title": self.status.canonical_reason(),
            "status": self.status.as_u16(),
            "code": self.code,
            "detail": self.detail,
        });
        if let Some(field) = self.field {
            body["field"] = field.into();
        }
        let mut response = (self.status, body.to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(wait) = self.retry_after {
            let seconds = wait.as_millis().div_ceil(1000).clamp(1, u128::from(u32::MAX)) as u32;
            headers.insert(RETRY_AFTER, seconds.into());
        }
        for (name, value) in self.headers {
            headers.insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

/// `router`, answering unknown paths (404) and methods (405 with `Allow`) with problems.
///
/// To be called after all routes were added.
pub fn with_problem_fallbacks<S>(router: Router<S>) -> Router<S>
where
    S: Clone + Send + Sync + 'static,
{
    router
        .fallback(async || Refusal::NotFound)
        .method_not_allowed_fallback(async || Refusal::MethodNotAllowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retry_is_asked_for_in_whole_seconds_of_at_least_one() {
        for (wait, seconds) in [(0, "1"), (1, "1"), (1000, "1"), (1001, "2"), (59_500, "60")] {
            let refusal = Refusal::TooManyFailures(Duration::from_millis(wait));
            let response = refusal.into_response();
            assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
            assert_eq!(response.headers()[RETRY_AFTER], seconds);
        }
    }

    #[test]
    fn every_passing_fault_is_a_503_that_asks_for_a_retry() {
        use Unavailable::*;
        for reason in
            [Store, QueueFull, TooManyBodies, AnswerTimeout, ShuttingDown, EndpointNotConfigured]
        {
            let response = Refusal::Unavailable(reason).into_response();
            assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
            assert!(response.headers().contains_key(RETRY_AFTER));
        }
    }
}
