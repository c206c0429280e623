//! SQLite takes the machine's clock, and that may jump.

use std::time::Duration;

use super::fixture::{Fixture, LEASE, attempts, names, request};
use super::sample::{Vary, sample};

const YEAR: Duration = Duration::from_secs(365 * 86_400);

#[tokio::test]
async fn a_lease_that_began_in_the_future_is_over() {
    let fixture = Fixture::sqlite().await;
    let batch = ["a", "b"].map(|name| sample(fixture.main, name).in_chat("1"));
    fixture.stored(&batch).await;
    fixture.stored(&[sample(fixture.main, "c")]).await;
    assert_eq!(fixture.claim(10).await.len(), 3);
    fixture.clock().set(fixture.clock().now() - YEAR);
    let again = fixture.claim(10).await;
    assert_eq!((names(&again), attempts(&again)), (vec!["a", "b", "c"], vec![2, 1, 2]));
    assert_eq!(again[0].lease_until, fixture.clock().now() + LEASE);
    assert_eq!(fixture.ack(&again).await, [true; 3]);
    fixture.finish().await;
}

#[tokio::test]
async fn work_is_claimable_that_came_before_the_clock_went_back() {
    let mut fixture = Fixture::sqlite().await;
    let batch = [sample(fixture.main, "a").in_chat("1"), sample(fixture.main, "b")];
    fixture.stored(&batch).await;
    fixture.clock().set(fixture.clock().now() - YEAR);
    // Not noticed by a claim that fails, nor lost by it.
    assert!(fixture.store.claim("nobody", request(1)).await.is_err());
    fixture.stored(&[sample(fixture.main, "c").in_chat("1")]).await;
    assert_eq!(fixture.store.next_due("default").await.unwrap(), Some(Duration::ZERO));
    fixture.clock().set(fixture.clock().now() - YEAR);
    fixture.reopen().await;
    assert_eq!(names(&fixture.claim(10).await), ["a", "b", "c"]);
    fixture.finish().await;
}

#[tokio::test]
async fn work_that_comes_after_the_clock_went_back_keeps_its_place() {
    let fixture = Fixture::sqlite().await;
    fixture.stored(&[sample(fixture.main, "a").in_chat("1")]).await;
    let claimed = fixture.claim(1).await;
    fixture.clock().set(fixture.clock().now() - Duration::from_secs(5));
    fixture.stored(&[sample(fixture.main, "b").in_chat("1")]).await;
    assert_eq!(fixture.ack(&claimed).await, [true]);
    assert_eq!(names(&fixture.claim(10).await), ["b"]);
    fixture.finish().await;
}

#[tokio::test]
async fn after_a_leap_forwards_leases_are_over_and_nothing_else_happens() {
    let fixture = Fixture::sqlite().await;
    let batch = ["a", "b"].map(|name| sample(fixture.main, name).in_chat("1"));
    fixture.stored(&batch).await;
    let claimed = fixture.claim(1).await;
    fixture.clock().set(fixture.clock().now() + YEAR);
    assert_eq!(fixture.ack(&claimed).await, [true]);
    assert_eq!(names(&fixture.claim(10).await), ["b"]);
    fixture.finish().await;
}

#[tokio::test]
async fn a_closed_store_is_one_file() {
    let fixture = Fixture::sqlite().await;
    fixture.stored(&[sample(fixture.main, "a")]).await;
    fixture.store.consumers().await.unwrap();
    let file = fixture.raw.texts("SELECT file FROM pragma_database_list").await.remove(0);
    fixture.finish().await;
    assert!(!std::path::Path::new(&format!("{file}-wal")).exists());
}
