//! Paths and methods.

use super::is_refused;
use crate::support::delivery::{Delivery, SECRET, now};
use crate::support::http::{Connection, get};
use crate::support::place::{Kind, Place};

#[tokio::test]
async fn a_delivery_is_taken_with_and_without_a_slash_and_counted_when_it_comes_again() {
    let place = Place::new(Kind::Sqlite);
    let gateway = place.start();
    let delivery = Delivery::message("evt_1");
    for path in ["/webhooks/unifyport/main", "/webhooks/unifyport/main/"] {
        let answer = delivery.clone().to(path).send(gateway.public).await;
        assert_eq!(answer.status, 204);
        assert!(answer.body.is_empty());
    }
    assert_eq!(
        delivery.clone().to("/webhooks/unifyport/main?a=b").send(gateway.public).await.status,
        204
    );
    let event = place.only_event().await;
    assert_eq!((event.receipts, event.work.len()), (3, 1));
    assert_eq!(event.flags.names(), Vec::<&str>::new());
    assert_eq!(event.first_secret, Some(0));
    let headers: serde_json::Value = serde_json::from_str(&event.headers.unwrap()).unwrap();
    assert_eq!(headers["x-device-event-id"], "evt_1");
    let attributes = event.event.attributes;
    assert_eq!(attributes.event_type, "unifyport.message.received");
    assert_eq!(attributes.subject.unwrap(), "unifyport/main/acc_8c21d0/conversation/e");
}

#[tokio::test]
async fn what_is_not_there_and_what_is_not_a_post() {
    let place = Place::new(Kind::Sqlite);
    let gateway = place.start();
    let delivery = Delivery::message("evt_1");
    for path in [
        "/webhooks/unifyport/none",
        "/webhooks/unifyport/MAIN",
        "/webhooks/unifyport/%ff",
        "/webhooks/unifyport/%00",
        "/webhooks/unifyport/",
        "/webhooks/unifyport",
        "/webhooks/unifyport/main/x",
        "/webhooks//unifyport/main",
        "/webhooks/telegram/main",
        "/v1/events",
        "/readyz",
        "/",
    ] {
        is_refused(&delivery.clone().to(path).send(gateway.public).await, 404, "not_found");
    }
    let mut connection = Connection::open(gateway.public).await;
    for method in ["GET", "PUT", "DELETE", "OPTIONS", "PATCH"] {
        for path in ["/webhooks/unifyport/main", "/webhooks/unifyport/main/"] {
            let answer = connection.request(method, path, &[], b"").await.unwrap();
            is_refused(&answer, 405, "method_not_allowed");
            assert_eq!(answer.header("allow"), Some("POST"));
        }
    }
    assert_eq!(place.events().await, []);
    assert_eq!(get(gateway.public, "/healthz", &[]).await.status, 200);
}

#[tokio::test]
async fn headers_are_of_no_case_and_content_types_of_no_matter() {
    let place = Place::new(Kind::Sqlite);
    let gateway = place.start();
    for content_type in ["text/plain", "application/x-www-form-urlencoded", "nonsense"] {
        let delivery = Delivery::signed(SECRET, &now().to_string(), content_type);
        let mut delivery = delivery.without("Content-Type").with("Content-Type", content_type);
        for (name, _) in &mut delivery.headers {
            *name = name.to_ascii_uppercase();
        }
        assert_eq!(delivery.send(gateway.public).await.status, 204);
        assert_eq!(delivery.without("CONTENT-TYPE").send(gateway.public).await.status, 204);
    }
    assert_eq!(place.events().await.len(), 3);
}
