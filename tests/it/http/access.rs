//! Who may use a listener behind `authenticate`.
use std::sync::Arc;

use axum::Router;
use axum::extract::Path;
use axum::middleware::from_fn_with_state;
use axum::routing::get;
use inboxd::http::bearer::{Access, Principal, Role, SharedAccess, Token, authenticate};
use inboxd::http::problem::Refusal;

use super::harness::{Server, bodies, limits, start_with};

async fn guarded(shared: &SharedAccess) -> Server {
    let shared = shared.clone();
    start_with(limits(), bodies(10, 10), |router| with_access(router, shared)).await
}

fn with_access(router: Router, shared: SharedAccess) -> Router {
    router
        .route("/who", get(async |principal: Principal| principal.name.to_string()))
        .route("/operate", get(async |principal: Principal| principal.require_operator()))
        .route("/consumers/{name}", get(claim))
        .layer(from_fn_with_state(shared, authenticate))
}

async fn claim(principal: Principal, Path(name): Path<String>) -> Result<(), Refusal> {
    principal.require_consumer(&name)
}

fn access(tokens: &[(&str, &str, Role)]) -> Access {
    let token = |(name, secret, role): &(&str, &str, Role)| {
        Token::new(name, secret.as_bytes(), role.clone())
    };
    Access { tokens: tokens.iter().map(token).collect() }
}

#[tokio::test]
async fn a_token_is_required_and_its_role_holds() {
    let worker = Role::Worker { consumers: Some(Arc::new(["crm".to_owned()])) };
    let any = Role::Worker { consumers: None };
    let tokens = [
        ("ops", "o-secret", Role::Operator),
        ("crm", "c-secret", worker),
        ("any", "a-secret", any),
    ];
    let server = guarded(&SharedAccess::new(access(&tokens))).await;
    let mut client = server.connect().await;

    for head in ["GET /who", "GET /who\nAuthorization: Bearer wrong", "GET /nowhere"] {
        let answer = client.ask(head, "").await;
        assert_eq!((answer.status, answer.code().as_str()), (401, "unauthenticated"));
        assert!(answer.header("www-authenticate").unwrap().starts_with("Bearer"));
    }
    // Any host and origin: the token is what counts.
    let foreign = "GET /who\nHost: inbox.example\nOrigin: http://evil.example";
    let answer = client.ask(&format!("{foreign}\nAuthorization: Bearer o-secret"), "").await;
    assert_eq!(answer.body, "ops");

    let mut status = async |path: &str, secret: &str| {
        client.ask(&format!("GET {path}\nAuthorization: Bearer {secret}"), "").await.status
    };
    assert_eq!(status("/operate", "o-secret").await, 200);
    assert_eq!(status("/consumers/crm", "o-secret").await, 200);
    assert_eq!(status("/operate", "c-secret").await, 403);
    assert_eq!(status("/consumers/crm", "c-secret").await, 200);
    assert_eq!(status("/consumers/other", "c-secret").await, 403);
    assert_eq!(status("/operate", "a-secret").await, 403);
    assert_eq!(status("/consumers/other", "a-secret").await, 200);
    assert_eq!(client.ask("GET /healthz\nHost: probe.example", "").await.body, "well");
}

#[tokio::test]
async fn tokens_change_while_the_listener_runs() {
    let shared = SharedAccess::new(access(&[("old", "old-secret", Role::Operator)]));
    let server = guarded(&shared).await;
    let mut client = server.connect().await;
    let (old, new) = (
        "GET /who\nAuthorization: Bearer old-secret",
        "GET /who\nAuthorization: Bearer new-secret",
    );
    assert_eq!(client.ask(old, "").await.body, "old");
    assert_eq!(client.ask(new, "").await.status, 401);
    shared.replace(access(&[("new", "new-secret", Role::Operator)]));
    assert_eq!(client.ask(old, "").await.status, 401);
    assert_eq!(client.ask(new, "").await.body, "new");
}

#[tokio::test]
async fn an_open_listener_answers_loopback_names_and_its_own_origin_alone() {
    let server = guarded(&SharedAccess::default()).await;
    let mut client = server.connect().await;
    let mut ask = async |lines: &str| client.ask(&format!("GET /who\n{lines}"), "").await;
    for lines in
        ["Host: localhost:8081", "Host: 127.0.0.1", "Host: [::1]:8081\nOrigin: http://[::1]:8081"]
    {
        assert_eq!(ask(lines).await.body, "open", "{lines}");
    }
    for (lines, code) in [
        ("Host: rebound.example", "host_forbidden"),
        ("Host: localhost\nOrigin: http://evil.example", "origin_forbidden"),
        ("Host: localhost\nOrigin: null", "origin_forbidden"),
    ] {
        let answer = ask(lines).await;
        assert_eq!((answer.status, answer.code().as_str()), (403, code), "{lines}");
    }
    assert_eq!(client.ask("GET /healthz\nHost: rebound.example", "").await.status, 403);
}
