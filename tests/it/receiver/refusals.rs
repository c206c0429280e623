//! 401: every reason of it, one answer for all, and what quarantine keeps of each.

use std::time::Duration;

use inboxd::source::QuarantineKind;

use super::{is_refused, on_each_store};
use crate::support::condition::until;
use crate::support::delivery::{Delivery, SECRET, message, now};
use crate::support::place::MAIN;

const SIGNATURE: &str = "X-Device-Signature";
const TIMESTAMP: &str = "X-Device-Timestamp";

fn good() -> Delivery {
    Delivery::message("evt_1")
}

fn resigned(signature: &str) -> Delivery {
    good().without(SIGNATURE).with(SIGNATURE, signature)
}

fn of(timestamp: &str) -> Delivery {
    Delivery::signed(SECRET, timestamp, message("evt_1"))
}

/// Every way to be turned away, with the reason that quarantine keeps.
fn refusals() -> Vec<(&'static str, Delivery)> {
    let real = good().headers.iter().find(|(name, _)| name == SIGNATURE).unwrap().1.clone();
    let stamp = now().to_string();
    let past = now() - Duration::from_secs(301);
    let future = now() + Duration::from_secs(330);
    let mut another_body = good();
    another_body.body.push(b' ');
    vec![
        ("signature missing", good().without(SIGNATURE)),
        ("signature repeated", good().with(SIGNATURE, &real)),
        ("signature malformed", resigned("")),
        ("signature malformed", resigned(&format!("sha256={real}"))),
        ("signature malformed", resigned(&real[..63])),
        ("signature malformed", resigned(&format!("{real}00"))),
        ("signature malformed", resigned(&"g".repeat(64))),
        ("signature matches no secret", resigned(&"0".repeat(64))),
        ("signature matches no secret", another_body),
        ("signature matches no secret", Delivery::signed("another", &stamp, message("evt_1"))),
        ("signature matches no secret", Delivery::signed("", &stamp, message("evt_1"))),
        (
            "signature matches no secret",
            good().without(TIMESTAMP).with(TIMESTAMP, "2026-06-08T12:34:56Z"),
        ),
        ("timestamp missing", good().without(TIMESTAMP)),
        ("timestamp repeated", good().with(TIMESTAMP, &stamp)),
        ("timestamp is not a time", of("")),
        ("timestamp is not a time", of("soon")),
        ("timestamp is not a time", of("NaN")),
        ("timestamp is not a time", of("-1")),
        ("timestamp is not a time", of("2026-02-30T00:00:00Z")),
        ("timestamp is not a time", of(&format!("{}.5", now().millis() / 1000))),
        ("timestamp is not a time", of(&now().micros().to_string())),
        ("timestamp outside the tolerance", of(&past.to_string())),
        ("timestamp outside the tolerance", of(&future.to_string())),
        ("timestamp outside the tolerance", of(&(past.millis() / 1000).to_string())),
        ("timestamp outside the tolerance", of(&future.millis().to_string())),
        ("timestamp outside the tolerance", of("0")),
        ("timestamp outside the tolerance", of("99999999999999")),
    ]
}

#[tokio::test]
async fn every_reason_has_the_same_answer_and_is_kept_apart() {
    on_each_store(MAIN, async |place, gateway| {
        let refusals = refusals();
        let mut bodies = vec![];
        for (reason, delivery) in &refusals {
            // The token of somebody who is not asked for one.
            let delivery = delivery.clone().with("Authorization", "Bearer stray");
            let answer = delivery.send(gateway.public).await;
            assert_eq!(answer.status, 401, "{reason}: {delivery:?}");
            is_refused(&answer, 401, "unauthorized");
            bodies.push((answer.headers.len(), answer.body));
        }
        bodies.dedup();
        assert_eq!(bodies.len(), 1, "a prober learns nothing: {bodies:?}");
        assert_eq!(place.events().await, []);

        let store = place.store().await;
        let source = store.sources().await.unwrap()[0].id;
        let kept = until("all are in quarantine", async || {
            let kept = store.quarantined(source).await.unwrap();
            (kept.len() == refusals.len()).then_some(kept)
        })
        .await;
        for (reason, delivery) in &refusals {
            let found = kept.iter().filter(|kept| kept.reason == *reason);
            let count = refusals.iter().filter(|(is, _)| is == reason).count();
            assert_eq!(found.clone().count(), count, "{reason}");
            let stale = reason.contains("not a time") || reason.contains("outside");
            let kind = if stale { QuarantineKind::Stale } else { QuarantineKind::Unverified };
            let found: Vec<_> = found.filter(|kept| kept.body == delivery.body).collect();
            assert!(!found.is_empty(), "the bytes of {reason}");
            for kept in found {
                assert_eq!((kept.kind, &*kept.peer), (kind, "127.0.0.1"), "{reason}");
                assert!(kept.headers.contains("content-type"), "{}", kept.headers);
                assert!(!kept.headers.contains("stray"), "{}", kept.headers);
            }
        }
    })
    .await;
}

#[tokio::test]
async fn the_two_kinds_of_quarantine_do_not_evict_each_other() {
    let config = format!("[quarantine]\nrows = 3\n{MAIN}");
    on_each_store(&config, async |place, gateway| {
        let past = now() - Duration::from_secs(600);
        for number in 0..4 {
            let body = format!("stale {number}");
            let stale = Delivery::signed(SECRET, &past.to_string(), body);
            assert_eq!(stale.send(gateway.public).await.status, 401);
        }
        for number in 0..40 {
            let forged = Delivery::signed("forged", &now().to_string(), format!("{number}"));
            assert_eq!(forged.send(gateway.public).await.status, 401);
        }
        let store = place.store().await;
        let source = store.sources().await.unwrap()[0].id;
        until("the newest of each kind are left", async || {
            let kept = store.quarantined(source).await.unwrap();
            let of = |kind| kept.iter().filter(move |kept| kept.kind == kind);
            let stale = of(QuarantineKind::Stale).map(|kept| &kept.body[..]);
            (stale.eq([&b"stale 3"[..], b"stale 2", b"stale 1"])
                && of(QuarantineKind::Unverified).count() == 3)
                .then_some(())
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn what_was_turned_away_does_not_stand_in_the_way_of_what_is_authentic() {
    on_each_store(MAIN, async |place, gateway| {
        let mut forged = good();
        forged.headers.retain(|(name, _)| name != SIGNATURE);
        assert_eq!(forged.send(gateway.public).await.status, 401);
        assert_eq!(good().send(gateway.public).await.status, 204);
        assert_eq!(place.only_event().await.receipts, 1);
    })
    .await;
}
