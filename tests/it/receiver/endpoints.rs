//! Endpoints that the store knows and the config no longer names: perhaps our own fault, so 503
//! until an operator says otherwise.

use super::{is_refused, on_each_store};
use crate::support::condition::until;
use crate::support::delivery::Delivery;
use crate::support::place::MAIN;

fn config(names: &[&str]) -> String {
    let table = |name: &&str| MAIN.replace("main", name);
    names.iter().map(table).collect()
}

#[tokio::test]
async fn an_endpoint_that_is_not_configured_any_more_until_it_is_forgotten() {
    on_each_store(&config(&["main", "second"]), async |place, first| {
        let to_second = Delivery::message("evt_1").to("/webhooks/unifyport/second");
        assert_eq!(to_second.send(first.public).await.status, 204);
        place.home.configure(&config(&["main"]));
        let gateway = place.start();
        for body in ["whatever", "is not looked at"] {
            let unsigned = Delivery { body: body.into(), ..to_second.clone() };
            let answer = unsigned.send(gateway.public).await;
            is_refused(&answer, 503, "endpoint_not_configured");
        }

        let store = place.store().await;
        let sources = store.sources().await.unwrap();
        let names: Vec<_> = sources.iter().map(|source| &*source.name).collect();
        assert_eq!(names, ["main", "second"]);
        store.forget_source(sources[1].id).await.unwrap();
        let answer = until("the gateway notices", async || {
            let answer = to_second.send(gateway.public).await;
            (answer.status != 503).then_some(answer)
        })
        .await;
        is_refused(&answer, 404, "not_found");
        assert_eq!(place.only_event().await.receipts, 1, "its events stay");

        // Configured again it is what it was: the same delivery is a duplicate.
        gateway.terminate();
        place.home.configure(&config(&["main", "second"]));
        let gateway = place.start();
        assert_eq!(to_second.send(gateway.public).await.status, 204);
        assert_eq!(place.only_event().await.receipts, 2);
    })
    .await;
}

#[tokio::test]
async fn two_endpoints_with_the_same_event_do_not_meet() {
    on_each_store(&config(&["main", "second"]), async |place, gateway| {
        let one = Delivery::message("evt_1");
        let other = one.clone().to("/webhooks/unifyport/second");
        let unnamed = Delivery::new("no id at all");
        for delivery in [&one, &other, &one, &unnamed] {
            assert_eq!(delivery.send(gateway.public).await.status, 204);
        }
        let unnamed = unnamed.to("/webhooks/unifyport/second/");
        assert_eq!(unnamed.send(gateway.public).await.status, 204);
        let events = place.events().await;
        let origins: Vec<_> = events.iter().map(|event| &*event.attributes.origin).collect();
        let [main, second] = ["/unifyport/main/acc_8c21d0", "/unifyport/second/acc_8c21d0"];
        assert_eq!(origins, [main, second, "/unifyport/main/-", "/unifyport/second/-"]);
        let store = place.store().await;
        let sources = store.sources().await.unwrap();
        let counts: Vec<_> = sources.iter().map(|it| (it.stored, it.duplicates)).collect();
        assert_eq!(counts, [(2, 1), (2, 0)]);
    })
    .await;
}
