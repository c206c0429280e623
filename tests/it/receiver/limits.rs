//! Bodies that are too large, too slow or too many.

use super::is_refused;
use crate::support::condition::until;
use crate::support::delivery::{Delivery, SECRET, now};
use crate::support::http::Connection;
use crate::support::place::{Kind, MAIN, Place};

fn of_size(size: usize) -> Delivery {
    Delivery::signed(SECRET, &now().to_string(), vec![b'x'; size])
}

/// The request with its body in chunks, the last of which never comes if `whole` is false.
fn chunked(delivery: &Delivery, whole: bool) -> Vec<u8> {
    let delivery = delivery.clone().with("Transfer-Encoding", "chunked");
    let head = String::from_utf8(delivery.head()).unwrap();
    let length = format!("Content-Length: {}\r\n", delivery.body.len());
    let mut request = head.replace(&length, "").into_bytes();
    for chunk in delivery.body.chunks(100) {
        request.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        request.extend_from_slice(chunk);
        request.extend_from_slice(b"\r\n");
    }
    if whole {
        request.extend_from_slice(b"0\r\n\r\n");
    }
    request
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_at_once_or_when_it_exceeds_it() {
    let place = Place::with(Kind::Sqlite, &format!("max_body = \"1KiB\"\n{MAIN}"));
    let gateway = place.start();
    assert_eq!(of_size(1024).send(gateway.public).await.status, 204);
    is_refused(&of_size(1025).send(gateway.public).await, 413, "body_too_large");

    // Declared: no byte of it needs to come, and nobody is asked to send it.
    for delivery in [of_size(64 << 20), of_size(1025).with("Expect", "100-continue")] {
        let mut connection = Connection::open(gateway.public).await;
        connection.write(&delivery.head()).await.unwrap();
        let answer = connection.response().await.unwrap();
        is_refused(&answer, 413, "body_too_large");
        assert_eq!(answer.header("connection"), Some("close"));
        drop(connection);
    }

    // Not declared: as soon as it is exceeded, though it has not ended.
    let mut connection = Connection::open(gateway.public).await;
    connection.write(&chunked(&of_size(1024), true)).await.unwrap();
    assert_eq!(connection.response().await.unwrap().status, 204);
    connection.write(&chunked(&of_size(1025), false)).await.unwrap();
    is_refused(&connection.response().await.unwrap(), 413, "body_too_large");
    drop(connection);
    assert_eq!(place.only_event().await.receipts, 2);
}

#[tokio::test]
async fn a_body_that_does_not_come_in_time() {
    let place = Place::with(Kind::Sqlite, &format!("body_timeout = \"200ms\"\n{MAIN}"));
    let gateway = place.start();
    let delivery = Delivery::message("slow");
    let mut connection = Connection::open(gateway.public).await;
    connection.write(&delivery.head()).await.unwrap();
    connection.write(&delivery.body[..20]).await.unwrap();
    is_refused(&connection.response().await.unwrap(), 408, "body_timeout");
    assert_eq!(delivery.send(gateway.public).await.status, 204);
}

#[tokio::test]
async fn bodies_in_flight_over_their_limit() {
    let config = format!("max_body = \"1KiB\"\nmax_bodies = \"2KiB\"\n{MAIN}");
    let place = Place::with(Kind::Sqlite, &config);
    let gateway = place.start();
    let mut waiting = vec![];
    for _ in 0..2 {
        let mut connection = Connection::open(gateway.public).await;
        let delivery = of_size(1000).with("Expect", "100-continue");
        connection.write(&delivery.head()).await.unwrap();
        connection.interim().await;
        waiting.push(connection);
    }
    is_refused(&of_size(200).send(gateway.public).await, 503, "too_many_bodies");
    drop(waiting);
    until("there is room again", async || {
        (of_size(200).send(gateway.public).await.status == 204).then_some(())
    })
    .await;
}

#[tokio::test]
async fn one_body_may_take_all_there_is() {
    let config = format!("max_body = \"1KiB\"\nmax_bodies = \"1KiB\"\n{MAIN}");
    let place = Place::with(Kind::Sqlite, &config);
    let gateway = place.start();
    assert_eq!(of_size(1024).send(gateway.public).await.status, 204);
}

#[tokio::test]
async fn broken_requests_leave_no_trace() {
    let place = Place::new(Kind::Sqlite);
    let gateway = place.start();
    let delivery = Delivery::message("evt_1");
    let mut broken = chunked(&delivery, true);
    let size = broken.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    broken[size] = b'z';
    for request in [broken, b"POST\r\n\r\n".to_vec(), vec![0xff; 100]] {
        let mut connection = Connection::open(gateway.public).await;
        connection.write(&request).await.unwrap();
        if let Some(answer) = connection.response().await {
            assert!(matches!(answer.status, 400 | 408), "{answer:?}");
        }
    }
    assert_eq!(place.events().await, []);
    assert_eq!(delivery.send(gateway.public).await.status, 204);
}
