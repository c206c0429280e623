//! How a listener ends.
use inboxd::http::server::Limits;
use tokio::net::TcpStream;

use super::harness::{SHORT, bodies, limits, start};

#[tokio::test]
async fn idle_connections_do_not_hold_up_the_drain() {
    let server = start(limits(), bodies(10, 10)).await;
    let silent = server.connect().await;
    // Connected later, so once it is answered the silent one was accepted.
    let mut idle = server.connect().await;
    assert_eq!(idle.ask("GET /healthz", "").await.body, "well");
    server.shutdown.trigger_soft();
    let address = server.address;
    server.ended().await;
    assert_eq!(idle.closed().await, b"");
    assert_eq!(silent.closed().await, b"");
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_request_in_flight_is_finished() {
    let server = start(limits(), bodies(10, 10)).await;
    let mut client = server.connect().await;
    client.send("GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    server.entered().await;
    server.shutdown.trigger_soft();
    server.shared.release.add_permits(1);
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "waited"));
    server.ended().await;
    assert_eq!(client.closed().await, b"");
}

#[tokio::test]
async fn a_request_that_does_not_end_is_dropped_after_the_grace() {
    let server = start(Limits { shutdown_grace: SHORT, ..limits() }, bodies(10, 10)).await;
    let mut client = server.connect().await;
    client.send("GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    server.entered().await;
    server.shutdown.trigger_soft();
    server.ended().await;
    assert_eq!(client.closed().await, b"");
}

#[tokio::test]
async fn the_hard_stage_waits_for_nothing() {
    let server = start(limits(), bodies(10, 10)).await;
    let mut client = server.connect().await;
    client.send("GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    server.entered().await;
    server.shutdown.trigger_soft();
    server.shutdown.trigger_hard();
    server.ended().await;
    assert_eq!(client.closed().await, b"");
}

#[tokio::test]
async fn dropping_the_server_drops_its_connections() {
    let server = start(limits(), bodies(10, 10)).await;
    let mut client = server.connect().await;
    client.send("GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    server.entered().await;
    server.task.abort();
    assert_eq!(client.closed().await, b"");
}
