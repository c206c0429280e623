//! Waiting for what nobody announces: looked for again and again, up to a bound.

use std::time::Duration;

use tokio::time::Instant;

/// For whatever takes well under a second, on a machine that is busy.
const LIMIT: Duration = Duration::from_secs(60);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// What `look` finds once it finds something; the test fails if it does not for a minute.
pub(crate) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + LIMIT;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < end, "not within {LIMIT:?}: {what}");
        tokio::time::sleep(PAUSE).await;
    }
}

#[tokio::test]
async fn a_look_is_repeated_until_it_finds_something() {
    let mut looks = 0;
    let found = until("the third look", async || {
        looks += 1;
        (looks == 3).then_some("found")
    });
    assert_eq!(found.await, "found");
}
