//! Dead letters: how work comes to be one, and reading them.

use std::time::Duration;

use inboxd::store::StoreError;
use inboxd::work::{Consumer, DeadPage, DeadQuery, LEASE_RAN_OUT, NACKED, Nacked};

use super::fixture::{Fixture, LEASE, attempts, consumer, names, receipts, request};
use super::sample::{Vary, as_read, sample};

super::conformance!(
    an_event_that_kills_its_worker_each_time_is_dead_in_the_end,
    what_is_nacked_for_the_last_time_is_dead_and_tells_why,
    pages_of_dead_letters_miss_none,
    a_page_is_bounded_by_bytes_but_never_empty,
    each_consumer_has_its_own,
    what_is_dead_survives_a_restart,
);

async fn page(fixture: &Fixture, after: Option<i64>, limit: usize) -> DeadPage {
    let query = DeadQuery { after, limit, max_bytes: usize::MAX };
    fixture.store.dead("default", query).await.unwrap()
}

fn letters(page: &DeadPage) -> Vec<&str> {
    page.letters.iter().map(|letter| &*letter.event.attributes.external_id).collect()
}

async fn an_event_that_kills_its_worker_each_time_is_dead_in_the_end(fixture: &mut Fixture) {
    let batch = ["poison", "next"].map(|name| sample(fixture.main, name).in_chat("a"));
    let sequences = fixture.stored(&batch).await;
    for attempt in 1..=3 {
        // The worker dies with all that it holds.
        let claimed = fixture.claim(10).await;
        assert_eq!(
            (names(&claimed), attempts(&claimed)),
            (vec!["poison", "next"], vec![attempt, 1])
        );
        assert_eq!(page(fixture, None, 10).await, DeadPage::default());
        fixture.advance(LEASE).await;
    }
    let rest = fixture.claim(10).await;
    assert_eq!((names(&rest), attempts(&rest)), (vec!["next"], vec![1]));
    assert_eq!(fixture.ack(&rest).await, [true]);
    let page = page(fixture, None, 10).await;
    let [letter] = &page.letters[..] else { panic!("{page:?}") };
    assert_eq!(letter.event, as_read(&batch[0], sequences[0], "main"));
    let told: Vec<_> = letter.attempts.iter().map(|one| (one.attempt, &*one.error)).collect();
    assert_eq!(told, [(1, LEASE_RAN_OUT), (2, LEASE_RAN_OUT), (3, LEASE_RAN_OUT)]);
    assert!(letter.attempts.iter().all(|one| one.at <= letter.died_at));
    assert_eq!(fixture.work_state(&batch[0]).await.attempts, letter.attempts);
    assert_eq!(fixture.work_state(&batch[0]).await.finished_at, Some(letter.died_at));
}

async fn what_is_nacked_for_the_last_time_is_dead_and_tells_why(fixture: &mut Fixture) {
    fixture.stored(&["1", "2"].map(|name| sample(fixture.main, name).in_chat("a"))).await;
    let claimed = fixture.claim(2).await;
    assert_eq!(fixture.nack(&claimed[..1], Duration::ZERO).await, [Nacked::Requeued]);
    fixture.claim(2).await;
    fixture.advance(LEASE).await;
    let claimed = fixture.claim(2).await;
    assert_eq!(attempts(&claimed), [3, 1]);
    assert_eq!(fixture.nack(&claimed[..1], Duration::ZERO).await, [Nacked::Dead]);
    let page = page(fixture, None, 10).await;
    let errors: Vec<_> = page.letters[0].attempts.iter().map(|one| &*one.error).collect();
    assert_eq!(errors, [NACKED, LEASE_RAN_OUT, NACKED]);
    assert_eq!(names(&fixture.claim(2).await), ["2"]);
}

async fn pages_of_dead_letters_miss_none(fixture: &mut Fixture) {
    let events: Vec<_> = (0..25)
        .map(|number| {
            let event = sample(fixture.main, &number.to_string());
            if number % 2 == 0 { event } else { event.in_chat(&(number % 3).to_string()) }
        })
        .collect();
    fixture.stored(&events).await;
    let claimed = fixture.claim(100).await;
    let (odd, even): (Vec<_>, Vec<_>) =
        claimed.into_iter().partition(|one| one.event.sequence % 2 == 1);
    // Those of one conversation go back together, so the others are acked first.
    fixture.ack(&even).await;
    fixture.bury(&odd).await;
    let expected: Vec<String> =
        odd.iter().map(|one| one.event.attributes.external_id.clone()).collect();
    let (mut after, mut seen) = (None, Vec::new());
    loop {
        let page = page(fixture, after, 4).await;
        assert!(page.letters.len() <= 4);
        seen.extend(letters(&page).into_iter().map(str::to_owned));
        after = page.letters.last().map(|letter| letter.place);
        if !page.more {
            break;
        }
    }
    assert_eq!(seen, expected, "oldest first");
}

async fn a_page_is_bounded_by_bytes_but_never_empty(fixture: &mut Fixture) {
    let large = |name: &str| sample(fixture.main, name).body(vec![b'x'; 10_000]);
    fixture.stored(&["1", "2", "3"].map(large)).await;
    let claimed = fixture.claim(3).await;
    fixture.bury(&claimed).await;
    for (max_bytes, count) in [(0, 1), (20_000, 2), (29_999, 2), (30_000, 3)] {
        let query = DeadQuery { after: None, limit: 10, max_bytes };
        let page = fixture.store.dead("default", query).await.unwrap();
        assert_eq!((page.letters.len(), page.more), (count, count < 3), "{max_bytes}");
    }
}

async fn each_consumer_has_its_own(fixture: &mut Fixture) {
    let second = Consumer { max_attempts: 1, ..consumer("second") };
    fixture.store.put_consumers(vec![second]).await.unwrap();
    fixture.stored(&["1", "2"].map(|name| sample(fixture.main, name))).await;
    let claimed = fixture.claim(1).await;
    fixture.bury(&claimed).await;
    fixture.store.claim("second", request(2)).await.unwrap();
    fixture.advance(LEASE).await;
    fixture.store.claim("second", request(2)).await.unwrap();
    let query = DeadQuery { after: None, limit: 10, max_bytes: usize::MAX };
    let of_second = fixture.store.dead("second", query).await.unwrap();
    assert_eq!(letters(&of_second), ["1", "2"]);
    assert_eq!(letters(&page(fixture, None, 10).await), ["1"]);
    let unknown = fixture.store.dead("nobody", query).await.unwrap_err();
    assert!(matches!(unknown, StoreError::UnknownConsumer(name) if name == "nobody"));
}

async fn what_is_dead_survives_a_restart(fixture: &mut Fixture) {
    fixture.stored(&["1", "2"].map(|name| sample(fixture.main, name).in_chat("a"))).await;
    let claimed = fixture.claim(2).await;
    fixture.bury(&claimed[..1]).await;
    let before = page(fixture, None, 10).await;
    fixture.reopen().await;
    assert_eq!(page(fixture, None, 10).await, before);
    assert_eq!(names(&fixture.claim(2).await), ["2"]);
    assert_eq!(fixture.store.ack("default", receipts(&claimed)).await.unwrap(), [false, false]);
}
