//! Refused deliveries: kept newest first, within their bounds.

use bytes::Bytes;
use inboxd::event::SourceId;
use inboxd::source::{QuarantineKind, QuarantineLimits, Refused, SourceKind};

use super::fixture::Fixture;
use super::sample::ARRIVAL;

super::conformance!(
    a_refused_delivery_is_kept_exactly,
    the_oldest_go_beyond_so_many_rows,
    the_oldest_go_beyond_so_many_bytes,
    the_newest_stays_whatever_its_size,
    kinds_and_endpoints_do_not_evict_each_other,
);

use QuarantineKind::{Stale, Unverified};

const ROOMY: QuarantineLimits = QuarantineLimits { rows: 1000, bytes: 1 << 26 };

/// A delivery known by its reason, of `size` bytes in all.
fn refused(source: SourceId, kind: QuarantineKind, reason: &str, size: usize) -> Refused {
    let headers = r#"{"x-device-timestamp":"yesterday"}"#.to_owned();
    Refused {
        source,
        kind,
        reason: reason.to_owned(),
        received_at: ARRIVAL,
        peer: "192.0.2.7:4711".to_owned(),
        body: Bytes::from(vec![0xff; size - headers.len()]),
        headers,
    }
}

async fn reasons(fixture: &Fixture, source: SourceId) -> Vec<String> {
    let kept = fixture.store.quarantined(source).await.unwrap();
    kept.into_iter().map(|refused| refused.reason).collect()
}

async fn a_refused_delivery_is_kept_exactly(fixture: &mut Fixture) {
    let one = Refused { body: "\0\u{ff}".into(), ..refused(fixture.main, Stale, "old", 100) };
    let empty = Refused { body: Bytes::new(), ..refused(fixture.main, Unverified, "none", 100) };
    fixture.store.quarantine(vec![one.clone(), empty.clone()], ROOMY).await.unwrap();
    fixture.store.quarantine(Vec::new(), ROOMY).await.unwrap();
    fixture.reopen().await;
    let kept = fixture.store.quarantined(fixture.main).await.unwrap();
    assert_eq!(kept.len(), 2);
    for (kept, refused) in kept.iter().zip([&empty, &one]) {
        assert_eq!((kept.source, kept.kind), (refused.source, refused.kind));
        assert_eq!((&kept.reason, &kept.peer), (&refused.reason, &refused.peer));
        assert_eq!((&kept.headers, &kept.body), (&refused.headers, &refused.body));
        assert_eq!(kept.received_at, refused.received_at);
    }
    assert_eq!(fixture.raw.number("SELECT count(*) FROM events").await, 0);
}

async fn the_oldest_go_beyond_so_many_rows(fixture: &mut Fixture) {
    let limits = QuarantineLimits { rows: 3, ..ROOMY };
    let keep = async |numbers: std::ops::Range<i32>| {
        let all = numbers.map(|number| refused(fixture.main, Stale, &number.to_string(), 64));
        fixture.store.quarantine(all.collect(), limits).await.unwrap();
    };
    keep(0..2).await;
    assert_eq!(reasons(fixture, fixture.main).await, ["1", "0"]);
    keep(2..4).await;
    assert_eq!(reasons(fixture, fixture.main).await, ["3", "2", "1"]);
    keep(4..9).await;
    assert_eq!(reasons(fixture, fixture.main).await, ["8", "7", "6"]);
}

async fn the_oldest_go_beyond_so_many_bytes(fixture: &mut Fixture) {
    let limits = QuarantineLimits { bytes: 1000, ..ROOMY };
    for (reason, size) in [("a", 400), ("b", 300), ("c", 300)] {
        let one = refused(fixture.main, Unverified, reason, size);
        fixture.store.quarantine(vec![one], limits).await.unwrap();
    }
    assert_eq!(reasons(fixture, fixture.main).await, ["c", "b", "a"], "exactly at the bound");
    let more = refused(fixture.main, Unverified, "d", 100);
    fixture.store.quarantine(vec![more], limits).await.unwrap();
    assert_eq!(reasons(fixture, fixture.main).await, ["d", "c", "b"]);
    // The oldest go first, even where leaving out a larger one would leave room for them.
    let large = refused(fixture.main, Unverified, "e", 950);
    fixture.store.quarantine(vec![large], limits).await.unwrap();
    assert_eq!(reasons(fixture, fixture.main).await, ["e"]);
}

async fn the_newest_stays_whatever_its_size(fixture: &mut Fixture) {
    let limits = QuarantineLimits { rows: 10, bytes: 100 };
    let all = ["a", "b"].map(|reason| refused(fixture.main, Stale, reason, 5000));
    fixture.store.quarantine(all.to_vec(), limits).await.unwrap();
    assert_eq!(reasons(fixture, fixture.main).await, ["b"]);
}

async fn kinds_and_endpoints_do_not_evict_each_other(fixture: &mut Fixture) {
    let second = fixture.store.register_source(SourceKind::UnifyPort, "second").await.unwrap();
    let limits = QuarantineLimits { rows: 2, bytes: 1000 };
    let precious = vec![
        refused(fixture.main, Stale, "stale", 900),
        refused(second, Unverified, "second", 900),
    ];
    fixture.store.quarantine(precious, limits).await.unwrap();
    for number in 0..20 {
        let flood = refused(fixture.main, Unverified, &number.to_string(), 900);
        fixture.store.quarantine(vec![flood], limits).await.unwrap();
    }
    assert_eq!(reasons(fixture, fixture.main).await, ["19", "stale"]);
    assert_eq!(reasons(fixture, second).await, ["second"]);
}
