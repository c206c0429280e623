//! A served router of small handlers, and a client that speaks raw HTTP/1.1 to it.
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::extract::{ConnectInfo, FromRef, State};
use axum::routing::{get, post};
use inboxd::http::body::{BodyBudget, BodyLimits, read_body};
use inboxd::http::json::{Json, Query};
use inboxd::http::problem::{Refusal, with_problem_fallbacks};
use inboxd::http::server::{Limits, serve};
use inboxd::shutdown::Shutdown;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// Never reached by a test that works.
pub(super) const LONG: Duration = Duration::from_secs(60);
/// Reached soon by a test that waits for it.
pub(super) const SHORT: Duration = Duration::from_millis(50);

/// What the handlers share with the test.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) bodies: BodyLimits,
    /// A permit for each request to `/wait` that is running.
    pub(super) entered: Arc<Semaphore>,
    /// A permit lets one request to `/wait` end.
    pub(super) release: Arc<Semaphore>,
}

impl FromRef<Shared> for BodyLimits {
    fn from_ref(shared: &Shared) -> Self {
        shared.bodies.clone()
    }
}

pub(super) fn limits() -> Limits {
    Limits { header_timeout: LONG, write_timeout: LONG, max_connections: 100, shutdown_grace: LONG }
}

pub(super) fn bodies(max_body: u64, budget: u64) -> BodyLimits {
    BodyLimits { max_body, body_timeout: LONG, budget: BodyBudget::new(budget) }
}

/// A running server.
pub(super) struct Server {
    pub(super) address: SocketAddr,
    pub(super) shutdown: Shutdown,
    pub(super) shared: Shared,
    pub(super) task: JoinHandle<anyhow::Result<()>>,
}

pub(super) async fn start(limits: Limits, bodies: BodyLimits) -> Server {
    start_with(limits, bodies, |router| router).await
}

/// Starts the server with `change` made to its router.
pub(super) async fn start_with(
    limits: Limits,
    bodies: BodyLimits,
    change: impl FnOnce(Router) -> Router,
) -> Server {
    let entered = Arc::new(Semaphore::new(0));
    let shared = Shared { bodies, entered, release: Arc::new(Semaphore::new(0)) };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = Shutdown::new();
    let router = change(router(shared.clone()));
    let task = tokio::spawn(serve(listener, router, limits, shutdown.clone()));
    Server { address, shutdown, shared, task }
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Claim {
    max: Option<u32>,
}

fn router(shared: Shared) -> Router {
    let router = Router::new()
        .route("/healthz", get(async || "well"))
        .route("/length", post(length))
        .route("/unread", post(async |_body: Body| Refusal::Unverified))
        .route("/json", post(async |Json(claim): Json<Claim>| Json(claim)))
        .route("/query", get(async |Query(claim): Query<Claim>| Json(claim)))
        .route("/peer", get(async |ConnectInfo(peer): ConnectInfo<SocketAddr>| peer.to_string()))
        .route("/panic", get(async || -> String { panic!("for the test") }))
        .route("/wait", get(wait));
    with_problem_fallbacks(router).with_state(shared)
}

async fn length(State(shared): State<Shared>, body: Body) -> Result<String, Refusal> {
    Ok(read_body(body, &shared.bodies).await?.bytes.len().to_string())
}

async fn wait(State(shared): State<Shared>) -> &'static str {
    shared.entered.add_permits(1);
    shared.release.acquire().await.unwrap().forget();
    "waited"
}

impl Server {
    pub(super) async fn connect(&self) -> Client {
        Client { stream: TcpStream::connect(self.address).await.unwrap(), read: Vec::new() }
    }

    /// Answers one request on a connection of its own.
    pub(super) async fn ask(&self, head: &str, body: &str) -> Answer {
        self.connect().await.ask(head, body).await
    }

    /// Waits until one more request to `/wait` is running.
    pub(super) async fn entered(&self) {
        self.shared.entered.acquire().await.unwrap().forget();
    }

    /// Waits for the end of `serve`.
    pub(super) async fn ended(self) {
        tokio::time::timeout(LONG / 2, self.task).await.expect("no end").unwrap().unwrap();
    }
}

/// One connection.
pub(super) struct Client {
    pub(super) stream: TcpStream,
    /// Bytes read beyond the last answer.
    read: Vec<u8>,
}

/// One answer; header names in lower case.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: String,
}

impl Answer {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let line = |line: &'_ str| line.split_once(": ").is_some_and(|(key, _)| key == name);
        Some(self.head.lines().find(|text| line(text))?.split_once(": ")?.1)
    }

    /// The `code` of a problem.
    pub(super) fn code(&self) -> String {
        assert_eq!(self.header("content-type"), Some("application/problem+json"));
        let body: serde_json::Value = serde_json::from_str(&self.body).unwrap();
        assert_eq!(body["status"], self.status);
        body["code"].as_str().unwrap().to_owned()
    }

    /// The `field` of a problem.
    pub(super) fn field(&self) -> String {
        let body: serde_json::Value = serde_json::from_str(&self.body).unwrap();
        body["field"].as_str().unwrap().to_owned()
    }
}

impl Client {
    pub(super) async fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }

    /// Sends a request whose head is `head`'s lines, of which `Host` and `Content-Length` may be
    /// left out, and reads the answer.
    pub(super) async fn ask(&mut self, head: &str, body: &str) -> Answer {
        let (line, rest) = head.split_once('\n').unwrap_or((head, ""));
        let mut text = format!("{line} HTTP/1.1\r\n");
        if !rest.contains("Host:") {
            text.push_str("Host: localhost\r\n");
        }
        for line in rest.lines() {
            text.push_str(&format!("{}\r\n", line.trim()));
        }
        if !body.is_empty() {
            text.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        self.send(&format!("{text}\r\n{body}")).await;
        self.answer().await
    }

    pub(super) async fn answer(&mut self) -> Answer {
        let end = loop {
            if let Some(at) = self.read.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break at + 4;
            }
            self.read_more().await;
        };
        let head: Vec<u8> = self.read.drain(..end).collect();
        let (line, rest) = std::str::from_utf8(&head).unwrap().split_once("\r\n").unwrap();
        let status = line.split(' ').nth(1).unwrap().parse().unwrap();
        let mut answer = Answer { status, head: rest.to_owned(), body: String::new() };
        let length = answer.header("content-length").map_or(0, |text| text.parse().unwrap());
        while self.read.len() < length {
            self.read_more().await;
        }
        answer.body = String::from_utf8(self.read.drain(..length).collect()).unwrap();
        answer
    }

    async fn read_more(&mut self) {
        let read = tokio::time::timeout(LONG / 2, self.stream.read_buf(&mut self.read)).await;
        assert_ne!(read.expect("no answer").unwrap(), 0, "closed without an answer");
    }

    /// Waits until the server closes, and gives what it sent before that.
    pub(super) async fn closed(mut self) -> Vec<u8> {
        let read = self.stream.read_to_end(&mut self.read);
        tokio::time::timeout(LONG / 2, read).await.expect("still open").unwrap();
        self.read
    }
}

/// A body that never ends; `dropped` resolves when the server lets go of it.
pub(super) fn endless() -> (Body, tokio::sync::oneshot::Receiver<()>) {
    let (held, dropped) = tokio::sync::oneshot::channel::<()>();
    let stream = futures_util::stream::repeat_with(move || {
        let _held = &held;
        Ok::<_, std::io::Error>(bytes::Bytes::from_static(&[b'x'; 4096]))
    });
    let body = Body::from_stream(stream);
    assert!(body.size_hint().exact().is_none());
    (body, dropped)
}
