//! What the UnifyPort receiver answers, keeps and never mixes up: every row of the table that its
//! senders rely on, on the real binary.

mod answers;
mod bodies;
mod endpoints;
mod identity;
mod limits;
mod refusals;
mod times;

use crate::support::http::Response;
use crate::support::place::{Kind, Place};
use crate::support::process::Gateway;

/// Both stores, one after the other: a gateway under that config on each.
async fn on_each_store(config: &str, test: impl AsyncFn(&Place, &Gateway)) {
    for kind in [Kind::Sqlite, Kind::Postgres] {
        let place = Place::with(kind, config);
        let gateway = place.start();
        test(&place, &gateway).await;
        assert_eq!(gateway.terminate().code(), Some(0), "{kind:?}");
    }
}

/// Looks at a refusal: its status, its stable code, and that it says so as a problem.
fn is_refused(answer: &Response, status: u16, code: &str) {
    assert_eq!(answer.status, status, "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("application/problem+json"));
    assert_eq!(answer.json()["code"], code);
    assert_eq!(answer.json()["status"], status);
    assert_eq!(answer.header("retry-after").is_some(), status == 503, "{answer:?}");
}
