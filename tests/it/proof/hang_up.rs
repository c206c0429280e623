//! Clients that go away in the middle leave every connection to the store as if they had never
//! been there.

use futures_util::StreamExt;
use futures_util::stream;

use crate::support::condition::until;
use crate::support::delivery::Delivery;
use crate::support::http::{Connection, head, post};
use crate::support::place::{Kind, Place};
use crate::support::postgres;
use crate::support::process::Gateway;

const CLIENTS: usize = 1000;
/// More than there are connections to the store.
const AT_ONCE: usize = 50;
/// Enough to come upon every connection.
const ROUNDS: usize = 100;

/// A request that is broken off at one of five places, by an end or by a reset.
async fn hang_up(gateway: &Gateway, number: usize) {
    let delivery = Delivery::message(&format!("{number}-hangs-up"));
    let (address, request) = match number % 5 {
        0 => (gateway.public, delivery.head()),
        1 => {
            let mut request = delivery.request();
            request.truncate(request.len() - 10);
            (gateway.public, request)
        }
        2 | 3 => (gateway.public, delivery.request()),
        _ => {
            let body = br#"{"wait":"20s"}"#;
            let headers = [("Content-Type", "application/json")];
            let head = head("POST", "/v1/consumers/default/claim", &headers, body.len());
            (gateway.private, [head.as_bytes(), body].concat())
        }
    };
    let mut connection = Connection::open(address).await;
    connection.write(&request).await.unwrap();
    if number.is_multiple_of(2) {
        connection.reset();
    }
}

/// A delivery and a claim, again and again; none may fail.
async fn all_is_well(gateway: &Gateway) {
    for number in 0..ROUNDS {
        let delivery = Delivery::message(&format!("{number}-stays"));
        assert_eq!(delivery.send(gateway.public).await.status, 204);
        let json_type = [("Content-Type", "application/json")];
        let path = "/v1/consumers/default/claim";
        let claim = post(gateway.private, path, &json_type, br#"{"max":1,"lease":"1s"}"#).await;
        assert_eq!(claim.status, 200, "{claim:?}");
    }
}

async fn a_thousand_hang_up(kind: Kind) -> (Place, Gateway) {
    let place = Place::new(kind);
    let gateway = place.start();
    let clients = stream::iter(0..CLIENTS).map(|number| hang_up(&gateway, number));
    clients.buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
    all_is_well(&gateway).await;
    (place, gateway)
}

#[tokio::test]
async fn a_thousand_clients_hang_up_on_sqlite() {
    let (place, gateway) = a_thousand_hang_up(Kind::Sqlite).await;
    assert_eq!(gateway.terminate().code(), Some(0));
    assert!(place.events().await.len() >= ROUNDS);
}

#[tokio::test]
async fn a_thousand_clients_hang_up_on_postgres() {
    let (place, gateway) = a_thousand_hang_up(Kind::Postgres).await;
    let (_, database) = place.url.rsplit_once('/').unwrap();
    let left = format!(
        "SELECT pid, state, query FROM pg_stat_activity WHERE datname = '{database}'
         AND application_name = 'inboxd' AND state <> 'idle'"
    );
    // Whatever was left inside a transaction would stay there for a minute.
    until("every session is idle", async || {
        postgres::shared().sql("postgres", &left).is_empty().then_some(())
    })
    .await;
    assert_eq!(gateway.terminate().code(), Some(0));
    assert!(place.events().await.len() >= ROUNDS);
}
