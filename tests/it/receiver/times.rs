//! Timestamps: every form that is a time, the tolerance both ways, and stale deliveries.

use std::time::Duration;

use inboxd::event::Flags;

use super::on_each_store;
use crate::support::delivery::{Delivery, SECRET, message, now};
use crate::support::place::{Kind, MAIN, Place};

fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(minutes * 60)
}

#[tokio::test]
async fn every_form_of_a_time_within_the_tolerance_is_taken() {
    let place = Place::new(Kind::Sqlite);
    let gateway = place.start();
    let second = now().micros() / 1_000_000 * 1_000_000;
    let utc = inboxd::clock::Time::from_micros(second).to_string();
    let naked = utc.strip_suffix('Z').unwrap();
    let moscow = (now() + minutes(180)).to_string();
    let moscow = moscow.split('.').next().unwrap().trim_end_matches('Z');
    let forms = [
        utc.clone(),
        format!("{naked}.000000001Z"),
        format!("{naked}.5+00:00"),
        format!("{naked}-00:00"),
        format!("{moscow}+03:00"),
        utc.to_lowercase(),
        (now().millis() / 1000).to_string(),
        now().millis().to_string(),
        (now() - minutes(4)).to_string(),
        (now() + minutes(4)).to_string(),
        ((now() - minutes(4)).millis() / 1000).to_string(),
        (now() + minutes(4)).millis().to_string(),
    ];
    for form in &forms {
        let delivery = Delivery::signed(SECRET, form, message(&format!("at {form}")));
        assert_eq!(delivery.send(gateway.public).await.status, 204, "{form}");
    }
    assert_eq!(place.events().await.len(), forms.len());
}

#[tokio::test]
async fn a_tolerance_of_any_length_is_kept_both_ways() {
    let long = MAIN.replace("secrets", "tolerance = \"365d\"\nsecrets");
    let place = Place::with(Kind::Sqlite, &long);
    let gateway = place.start();
    for (days, status) in [(364, 204), (366, 401)] {
        for at in [now() - minutes(days * 24 * 60), now() + minutes(days * 24 * 60)] {
            let delivery = Delivery::signed(SECRET, &at.to_string(), format!("{at}"));
            assert_eq!(delivery.send(gateway.public).await.status, status, "{at}");
        }
    }
}

#[tokio::test]
async fn stale_deliveries_are_accepted_up_to_the_identity_retention() {
    let accept = MAIN.replace("secrets", "stale = \"accept\"\nsecrets");
    let config = format!("[store]\nidentity_retention = \"2h\"\n{accept}");
    on_each_store(&config, async |place, gateway| {
        let cases = [
            (now(), 204, false),
            (now() - minutes(6), 204, true),
            (now() + minutes(6), 204, true),
            (now() - minutes(119), 204, true),
            (now() - minutes(121), 401, true),
            (now() + minutes(121), 401, true),
        ];
        let mut flags = vec![];
        for (at, status, stale) in cases {
            let body = message(&format!("of {at}"));
            let delivery = Delivery::signed(SECRET, &at.to_string(), body);
            assert_eq!(delivery.send(gateway.public).await.status, status, "{at}");
            if status == 204 {
                flags.push(stale);
            }
        }
        let store = place.store().await;
        for (event, stale) in place.events().await.iter().zip(&flags) {
            let detail = store.event(event.id).await.unwrap().unwrap();
            assert_eq!(detail.flags.contains(Flags::STALE), *stale);
        }
        let source = store.sources().await.unwrap()[0].id;
        crate::support::condition::until("both are in quarantine", async || {
            (store.quarantined(source).await.unwrap().len() == 2).then_some(())
        })
        .await;
    })
    .await;
}
