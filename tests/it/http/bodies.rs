//! Bodies: slow, large, too many, broken, and as JSON.
use std::io::{Read, Write};
use std::net::SocketAddr;

use inboxd::http::body::BodyLimits;

use super::harness::{SHORT, bodies, limits, start};

const MIB: usize = 1024 * 1024;

#[tokio::test]
async fn a_body_is_read_chunked_or_not() {
    let server = start(limits(), bodies(100, 100)).await;
    let mut client = server.connect().await;
    assert_eq!(client.ask("POST /length\nContent-Encoding: gzip", "four").await.body, "4");
    client.send("POST /length HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n").await;
    client.send("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n").await;
    assert_eq!(client.answer().await.body, "5");
    assert_eq!(client.ask("POST /length", "").await.body, "0");
    assert_eq!(server.shared.bodies.budget.free(), 100);
}

#[tokio::test]
async fn a_body_that_does_not_arrive_in_time_is_a_408() {
    let server = start(limits(), BodyLimits { body_timeout: SHORT, ..bodies(100, 100) }).await;
    let mut client = server.connect().await;
    client.send("POST /length HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc").await;
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.code().as_str()), (408, "body_timeout"));
    assert_eq!(answer.header("connection"), Some("close"));
    assert_eq!(server.shared.bodies.budget.free(), 100);
    // The rest ends the request, and with it the connection.
    client.send("defghij").await;
    assert_eq!(client.closed().await, b"");
}

/// What a blocking client reads that first sends everything and fails if it cannot.
async fn send_all(address: SocketAddr, head: &'static str, body: Vec<u8>) -> String {
    tokio::task::spawn_blocking(move || {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&body).expect("the whole body is taken");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer, then a close");
        answer
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn a_blocking_client_that_declares_too_much_reads_its_413() {
    let server = start(limits(), bodies(1000, 1000)).await;
    let head = "POST /length HTTP/1.1\r\nHost: a\r\nContent-Length: 20971520\r\n\r\n";
    let answer = send_all(server.address, head, vec![b'x'; 20 * MIB]).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert!(answer.contains("\"code\":\"body_too_large\""), "{answer}");
    assert!(answer.contains("connection: close"), "{answer}");
}

#[tokio::test]
async fn a_blocking_client_that_chunks_too_much_reads_its_413() {
    let server = start(limits(), bodies(3 * MIB as u64, 100 * MIB as u64)).await;
    let head = "POST /length HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut body = Vec::new();
    for _ in 0..20 {
        body.extend_from_slice(format!("{MIB:x}\r\n").as_bytes());
        body.resize(body.len() + MIB, b'x');
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"0\r\n\r\n");
    let answer = send_all(server.address, head, body).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert_eq!(server.shared.bodies.budget.free(), 100 * MIB as u64);
}

#[tokio::test]
async fn a_refusal_before_the_body_reaches_a_blocking_client() {
    let server = start(limits(), bodies(1000, 1000)).await;
    let head = "POST /unread HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\
                Content-Length: 20971520\r\n\r\n";
    let answer = send_all(server.address, head, vec![b'x'; 20 * MIB]).await;
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
}

#[tokio::test]
async fn a_client_that_asks_first_is_not_told_to_send_too_much() {
    let server = start(limits(), bodies(1000, 1000)).await;
    let mut client = server.connect().await;
    let head = "POST /length HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n";
    client.send(&format!("{head}Content-Length: 1001\r\n\r\n")).await;
    assert_eq!(client.answer().await.status, 413);
    assert_eq!(client.closed().await, b"");
}

#[tokio::test]
async fn a_body_over_the_budget_is_a_503_until_there_is_room() {
    let server = start(limits(), bodies(10, 10)).await;
    let mut first = server.connect().await;
    let head = "POST /length HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n";
    first.send(&format!("{head}Content-Length: 8\r\n\r\n")).await;
    // Asked for only once its room is reserved.
    assert_eq!(first.answer().await.status, 100);

    let answer = server.ask("POST /length", "four").await;
    assert_eq!((answer.status, answer.code().as_str()), (503, "too_many_bodies"));
    let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=10).contains(&wait));
    assert_eq!(answer.header("connection"), Some("close"));
    assert_eq!(server.ask("POST /length", "ab").await.body, "2");

    first.send("complete").await;
    assert_eq!(first.answer().await.body, "8");
    assert_eq!(server.ask("POST /length", "four").await.body, "4");
}

#[tokio::test]
async fn broken_chunks_are_a_408() {
    let server = start(limits(), bodies(100, 100)).await;
    let mut client = server.connect().await;
    client.send("POST /length HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n").await;
    client.send("zz\r\n").await;
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.code().as_str()), (408, "body_incomplete"));
}

#[tokio::test]
async fn json_is_taken_or_refused_by_name() {
    let server = start(limits(), bodies(100, 1000)).await;
    let mut client = server.connect().await;
    let json = "POST /json\nContent-Type: application/json";
    let answer = client.ask(json, "{\"max\":3}").await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "{\"max\":3}"));
    assert_eq!(answer.header("content-type"), Some("application/json"));

    let answer = client.ask("POST /json\nContent-Type: text/plain", "{}").await;
    assert_eq!((answer.status, answer.code().as_str()), (415, "not_json"));
    let answer = client.ask(json, "{").await;
    assert_eq!((answer.status, answer.code().as_str()), (400, "malformed_json"));
    let answer = client.ask(json, "{\"maxx\":1}").await;
    assert_eq!((answer.status, answer.code().as_str()), (422, "unknown_field"));
    assert_eq!(answer.field(), "maxx");
    let answer = client.ask(json, "{\"max\":-1}").await;
    assert_eq!((answer.status, answer.code().as_str()), (422, "invalid_value"));
    assert_eq!(answer.field(), "max");
    let answer = client.ask(json, &" ".repeat(101)).await;
    assert_eq!((answer.status, answer.code().as_str()), (413, "body_too_large"));
}

#[tokio::test]
async fn a_query_is_taken_or_refused_by_name() {
    let server = start(limits(), bodies(100, 100)).await;
    let mut client = server.connect().await;
    assert_eq!(client.ask("GET /query?max=3", "").await.body, "{\"max\":3}");
    assert_eq!(client.ask("GET /query", "").await.body, "{\"max\":null}");
    let answer = client.ask("GET /query?maxx=3", "").await;
    assert_eq!((answer.status, answer.code().as_str()), (422, "unknown_field"));
    assert_eq!(answer.field(), "maxx");
    let answer = client.ask("GET /query?max=x", "").await;
    assert_eq!((answer.status, answer.code().as_str()), (422, "invalid_value"));
    assert_eq!(answer.field(), "max");
}
