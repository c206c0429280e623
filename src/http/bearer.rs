//! Who may use the private listener: the holders of bearer tokens, or, with none configured,
//! whoever passes the checks of `loopback`.
use std::sync::{Arc, PoisonError, RwLock};

use axum::extract::{FromRequestParts, Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

use super::loopback::{check_loopback, sole};
use super::problem::Refusal;

/// Paths that need no token, because probes have none.
const OPEN_PATHS: [&str; 2] = ["/healthz", "/readyz"];

/// What a token allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// Everything.
    Operator,
    /// The calls of consumers: of those named, or of all.
    Worker {
        /// Names of consumers; `None` is all.
        consumers: Option<Arc<[String]>>,
    },
}

/// One configured token. Only the SHA-256 of its secret is kept, so nothing can print it.
#[derive(Clone, Debug)]
pub struct Token {
    principal: Principal,
    digest: [u8; 32],
}

impl Token {
    /// The token of this configured name.
    pub fn new(name: &str, secret: &[u8], role: Role) -> Self {
        Self { principal: Principal { name: name.into(), role }, digest: digest(secret) }
    }
}

/// All configured tokens; with none, the listener is open.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// The tokens, in the order of the configuration.
    pub tokens: Vec<Token>,
}

impl Access {
    /// Who asks.
    ///
    /// # Errors
    /// Nobody who may: 401 for a token that is missing or wrong, 403 for a `Host` or `Origin`
    /// that an open listener does not answer.
    pub fn identify(&self, uri: &Uri, headers: &HeaderMap) -> Result<Principal, Refusal> {
        if self.tokens.is_empty() {
            check_loopback(uri, headers)?;
            return Ok(Principal { name: "open".into(), role: Role::Operator });
        }
        let secret = bearer_secret(headers).ok_or(Refusal::Unauthenticated)?;
        self.holder(secret).cloned().ok_or(Refusal::Unauthenticated)
    }

    /// Whose token this is, in a time that depends on neither the secret nor the place: digests
    /// of equal length are compared, all of them, and a hash tells nothing by its first bytes.
    fn holder(&self, secret: &[u8]) -> Option<&Principal> {
        let presented = digest(secret);
        let mut found = Choice::from(0);
        let mut position = 0_u64;
        for (index, token) in (0_u64..).zip(&self.tokens) {
            let same = token.digest.ct_eq(&presented);
            position.conditional_assign(&index, same);
            found |= same;
        }
        let token = self.tokens.get(usize::try_from(position).ok()?)?;
        bool::from(found).then_some(&token.principal)
    }
}

/// The access of a running listener, to be replaced without a restart; clones share one.
#[derive(Clone, Debug, Default)]
pub struct SharedAccess(Arc<RwLock<Arc<Access>>>);

impl SharedAccess {
    /// Starts with `access`.
    pub fn new(access: Access) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(access))))
    }

    /// From now on requests are judged by `access`; those under way are not disturbed.
    ///
    /// Whoever replaces tokens by none opens the listener, so a reload must hold to the rule
    /// that an open listener is a loopback address.
    pub fn replace(&self, access: Access) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(access);
    }

    fn current(&self) -> Arc<Access> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Middleware for the whole private router
/// (`axum::middleware::from_fn_with_state(shared, authenticate)`): lets through who may, with a
/// [`Principal`] in the request's extensions. `/healthz` and `/readyz` need no token.
pub async fn authenticate(
    State(access): State<SharedAccess>,
    mut request: Request,
    next: Next,
) -> Response {
    let access = access.current();
    // An open listener looks at the `Host` of a probe as of anything else.
    let needs_none = !access.tokens.is_empty() && OPEN_PATHS.contains(&request.uri().path());
    if !needs_none {
        match access.identify(request.uri(), request.headers()) {
            Ok(principal) => request.extensions_mut().insert(principal),
            Err(refusal) => return refusal.into_response(),
        };
    }
    next.run(request).await
}

/// Who asks; an extractor behind [`authenticate`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// The token's name, `open` where none is configured.
    pub name: Arc<str>,
    /// What it allows.
    pub role: Role,
}

impl Principal {
    /// # Errors
    /// 403 for any role but the operator's.
    pub fn require_operator(&self) -> Result<(), Refusal> {
        match self.role {
            Role::Operator => Ok(()),
            Role::Worker { .. } => Err(Refusal::Role),
        }
    }

    /// # Errors
    /// 403 for a worker that may not act for this consumer.
    pub fn require_consumer(&self, name: &str) -> Result<(), Refusal> {
        match &self.role {
            Role::Operator | Role::Worker { consumers: None } => Ok(()),
            Role::Worker { consumers: Some(names) } if names.iter().any(|own| own == name) => {
                Ok(())
            }
            Role::Worker { .. } => Err(Refusal::Consumer(name.to_owned())),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Principal {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Refusal> {
        // Absent only where the router lacks the middleware, and then nobody may in.
        parts.extensions.get::<Self>().cloned().ok_or(Refusal::Unauthenticated)
    }
}

fn digest(secret: &[u8]) -> [u8; 32] {
    Sha256::digest(secret).into()
}

/// The secret of `Authorization: Bearer …` (RFC 6750; the scheme is case-insensitive).
fn bearer_secret(headers: &HeaderMap) -> Option<&[u8]> {
    let (scheme, secret) = sole(headers, &AUTHORIZATION)?.split_at_checked(7)?;
    let secret = secret.trim_ascii();
    // An empty secret is none, even if one was configured by mistake.
    (scheme.eq_ignore_ascii_case(b"bearer ") && !secret.is_empty()).then_some(secret)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;

    fn headers(pairs: &[(HeaderName, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    #[test]
    fn a_token_is_known_by_its_whole_secret() {
        let worker = Role::Worker { consumers: Some(Arc::new(["crm".to_owned()])) };
        let access = Access {
            tokens: vec![
                Token::new("ops", b"first secret", Role::Operator),
                Token::new("crm-workers", b"second secret", worker),
            ],
        };
        let ask = |value: &'static str| {
            access.identify(&Uri::from_static("/"), &headers(&[(AUTHORIZATION, value)]))
        };
        assert_eq!(&*ask("Bearer first secret").unwrap().name, "ops");
        let worker = ask("bearer second secret").unwrap();
        assert_eq!(worker.require_operator(), Err(Refusal::Role));
        assert_eq!(worker.require_consumer("crm"), Ok(()));
        assert_eq!(worker.require_consumer("x"), Err(Refusal::Consumer("x".to_owned())));
        for value in ["Bearer first", "Bearer ", "Bearer", "Basic first secret", "first secret"] {
            assert_eq!(ask(value).unwrap_err(), Refusal::Unauthenticated, "{value}");
        }
        let none = access.identify(&Uri::from_static("/"), &HeaderMap::new());
        assert_eq!(none.unwrap_err(), Refusal::Unauthenticated);
        assert!(!format!("{access:?}").contains("secret"));
    }
}
