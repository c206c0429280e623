//! Slow, silent, many and broken connections.
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::routing::get;
use inboxd::http::server::Limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Barrier;

use super::harness::{LONG, SHORT, bodies, endless, limits, start, start_with};

#[tokio::test]
async fn a_connection_that_never_sends_a_byte_is_closed() {
    let server = start(Limits { header_timeout: SHORT, ..limits() }, bodies(10, 10)).await;
    assert_eq!(server.connect().await.closed().await, b"");
}

#[tokio::test]
async fn headers_that_trickle_in_do_not_move_the_timeout() {
    let server = start(Limits { header_timeout: SHORT, ..limits() }, bodies(10, 10)).await;
    let mut client = server.connect().await;
    client.send("GET /healthz HTTP/1.1\r\nX-Slow: ").await;
    let (mut reader, mut writer) = client.stream.into_split();
    let trickle = async {
        // Ends with an error once the server closes.
        while writer.write_all(b"x").await.is_ok() {
            tokio::time::sleep(SHORT / 10).await;
        }
    };
    let mut answer = Vec::new();
    let closed = async {
        // A reset is a close, too: the last `x` may come after it.
        let _ = reader.read_to_end(&mut answer).await;
    };
    let both = async { tokio::join!(trickle, closed) };
    tokio::time::timeout(LONG / 2, both).await.expect("still open");
    assert_eq!(answer, b"");
}

#[tokio::test]
async fn an_idle_keep_alive_connection_is_closed_after_the_header_timeout() {
    let server = start(Limits { header_timeout: SHORT, ..limits() }, bodies(10, 10)).await;
    let mut client = server.connect().await;
    assert_eq!(client.ask("GET /healthz", "").await.body, "well");
    assert_eq!(client.closed().await, b"");
}

#[tokio::test]
async fn a_request_may_take_longer_than_its_headers() {
    let server = start(Limits { header_timeout: SHORT, ..limits() }, bodies(10, 10)).await;
    let mut waiting = server.connect().await;
    waiting.send("GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    server.entered().await;
    // Connected later, so timed out later than the first would be.
    assert_eq!(server.connect().await.closed().await, b"");
    server.shared.release.add_permits(1);
    assert_eq!(waiting.answer().await.body, "waited");
}

#[tokio::test]
async fn a_client_that_does_not_read_is_dropped() {
    let (body, dropped) = endless();
    let body = Arc::new(Mutex::new(Some(body)));
    let handler = get(move || async move { body.lock().unwrap().take().unwrap() });
    let limits = Limits { write_timeout: SHORT, ..limits() };
    let server = start_with(limits, bodies(10, 10), |router| router.route("/endless", handler));
    let server = server.await;
    let mut client = server.connect().await;
    client.send("GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    let dropped = tokio::time::timeout(LONG / 2, dropped).await.expect("still held");
    assert!(dropped.is_err());
}

#[tokio::test]
async fn connections_over_the_limit_wait_for_a_place() {
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen = most.clone();
    // Each request ends only together with another one, so two places are really used.
    let pair = Arc::new(Barrier::new(2));
    let handler = get(move || async move {
        seen.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        pair.wait().await;
        running.fetch_sub(1, Ordering::SeqCst);
    });
    let limits = Limits { max_connections: 2, ..limits() };
    let server = start_with(limits, bodies(10, 10), |router| router.route("/gauge", handler)).await;
    let ask = async || server.ask("GET /gauge\nConnection: close", "").await.status;
    let answers = futures_util::future::join_all((0..16).map(|_| ask())).await;
    assert_eq!(answers, [200; 16]);
    assert_eq!(most.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_panic_is_a_500_and_the_connection_goes_on() {
    let server = start(limits(), bodies(10, 10)).await;
    let mut client = server.connect().await;
    let answer = client.ask("GET /panic", "").await;
    assert_eq!((answer.status, answer.code().as_str()), (500, "internal"));
    assert_eq!(client.ask("GET /healthz", "").await.body, "well");
}

#[tokio::test]
async fn a_handler_sees_the_peer() {
    let server = start(limits(), bodies(10, 10)).await;
    let mut client = server.connect().await;
    let own = client.stream.local_addr().unwrap().to_string();
    assert_eq!(client.ask("GET /peer", "").await.body, own);
}

#[tokio::test]
async fn unknown_paths_and_methods_are_problems() {
    let server = start(limits(), bodies(10, 10)).await;
    let mut client = server.connect().await;
    let answer = client.ask("GET /nowhere", "").await;
    assert_eq!((answer.status, answer.code().as_str()), (404, "not_found"));
    let answer = client.ask("GET /length", "").await;
    assert_eq!((answer.status, answer.code().as_str()), (405, "method_not_allowed"));
    assert_eq!(answer.header("allow"), Some("POST"));
}
