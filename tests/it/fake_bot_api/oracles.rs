//! The lint and the questions to the journal.

use inboxd::simulate::bot_api::change::{Change, Start};
use inboxd::simulate::bot_api::update::Update;

use super::{BOT, NOTHING, Rig, Server, within};

/// What the lint says of the second call, after a first one that brought update 500.
async fn complaints(query: &str) -> Vec<String> {
    let rig = Rig::new().await;
    rig.fake.change(BOT, &Change::NewSequence(Start::At(500)));
    rig.fake.push(BOT, &Update::text(7, 1, "x"));
    assert_eq!(rig.ids("offset=90000").await, [500], "a first call may hold anything");
    settled(&rig, 1).await;
    rig.body(&format!("getUpdates?limit=2&{query}")).await;
    rig.fake.violations()
}

/// Waits until `count` answers are written down, which happens after their clients have them.
async fn settled(rig: &Rig, count: usize) {
    within(rig.fake.until(|world| world.journal().answers().count() == count)).await;
}

#[tokio::test]
async fn the_lint_is_silent_about_a_careful_client() {
    for query in ["offset=501", "offset=500", "timeout=1", r#"allowed_updates=["message","poll"]"#]
    {
        assert_eq!(complaints(query).await, Vec::<String>::new(), "{query}");
    }
}

#[tokio::test]
async fn the_lint_names_what_a_careful_client_never_sends() {
    for (query, part) in [
        ("offset=0501", "not a canonical"),
        ("timeout=5s", "not a canonical"),
        ("offset=", "not a canonical"),
        ("offset=-1", "outside"),
        ("offset=2000000000", "outside"),
        ("offset=502", "highest that a batch justifies"),
        ("allowed_updates=message", "not an array of strings"),
        (r#"allowed_updates=["massage"]"#, "no kind of update"),
        ("offset=500&offset=501", "given twice"),
    ] {
        let complaints = complaints(query).await;
        assert!(complaints.iter().any(|text| text.contains(part)), "{query}: {complaints:?}");
    }
}

#[tokio::test]
async fn the_lint_looks_at_headers_and_bodies() {
    let rig = Rig::new().await;
    let post = |kind: &'static str, body: &'static str| {
        rig.client.post(rig.url("getUpdates")).header("content-type", kind).body(body)
    };
    for request in [
        post("text/plain", "offset=1"),
        post("application/json", "[1]"),
        post("application/json", "{}").header("Referer", "http://x/"),
        post("application/json", "{}").header("Cookie", "a=b"),
    ] {
        within(request.send()).await.unwrap();
    }
    assert_eq!(rig.fake.violations().len(), 4, "{:?}", rig.fake.violations());
}

#[tokio::test]
async fn a_fresh_confirmation_after_a_rollback_is_excused_and_a_stale_one_is_not() {
    for (confirmed_before, excused) in [(false, true), (true, false)] {
        let rig = Rig::new().await;
        rig.fake.change(BOT, &Change::NewSequence(Start::At(500)));
        rig.fake.push_all(BOT, &vec![Update::text(7, 1, "x"); 5]);
        assert_eq!(rig.ids("timeout=4").await.len(), 5);
        if confirmed_before {
            assert_eq!(rig.ids("offset=505").await, NOTHING);
            settled(&rig, 2).await;
        } else {
            settled(&rig, 1).await;
        }
        rig.fake.change(BOT, &Change::RollBack(3));
        rig.fake.push(BOT, &Update::text(7, 2, "never seen"));
        assert_eq!(rig.ids("offset=505&limit=9").await, NOTHING);
        let journal = rig.fake.journal();
        let losses: Vec<_> =
            journal.losses().map(|loss| (loss.ids.clone(), loss.excused)).collect();
        assert_eq!(losses, [(vec![502], excused)]);
        assert_eq!(journal.unexcused_losses().is_empty(), excused);
    }
}

#[tokio::test]
async fn gaps_are_the_ids_that_vanished_between_two_received_ones() {
    let rig = Rig::new().await;
    rig.fake.change(BOT, &Change::NewSequence(Start::At(500)));
    let push = |count: usize| rig.fake.push_all(BOT, &vec![Update::text(7, 1, "x"); count]);
    push(2);
    rig.fake.change(BOT, &Change::Thief(1));
    assert_eq!(rig.ids("").await, [501]);
    push(3);
    rig.fake.change(BOT, &Change::Thief(2));
    push(1);
    rig.fake.change(BOT, &Change::ExpireNow);
    push(1);
    assert_eq!(rig.ids("offset=502").await, [506]);
    push(1);
    rig.fake.change(BOT, &Change::Drop);
    rig.fake.change(BOT, &Change::NewSequence(Start::At(900)));
    push(1);
    assert_eq!(rig.ids("offset=507").await, [900]);
    settled(&rig, 3).await;
    let gaps = rig.fake.journal().gaps(BOT);
    // 500 came before the first received and 507 after the last: no client can see those.
    assert_eq!(gaps, [vec![], vec![502..=505], vec![]]);
}

#[tokio::test]
async fn what_was_sent_is_known_byte_for_byte() {
    let rig = Rig::new().await;
    rig.fake.change(BOT, &Change::NewSequence(Start::At(500)));
    rig.fake.push(BOT, &Update::raw("poll", r#""poll":{}"#));
    rig.ids("").await;
    settled(&rig, 1).await;
    let expected = "{\"update_id\":500,\n\"poll\":{}}";
    let journal = rig.fake.journal();
    assert_eq!(journal.whole_updates().iter().collect::<Vec<_>>(), [expected]);
    assert_eq!(journal.sent_updates(), journal.whole_updates());
}

#[tokio::test]
async fn requests_are_counted_and_overlaps_seen() {
    let rig = Rig::new().await;
    let second = async {
        within(rig.fake.until(|world| world.journal().in_flight() == 1)).await;
        rig.ids("timeout=5&offset=9").await
    };
    let (first, _) = tokio::join!(rig.body("getUpdates?timeout=50"), second);
    assert_eq!(first.0, 409);
    rig.body("getMe").await;
    let journal = rig.fake.journal();
    assert_eq!(journal.busiest_window(1e9), 3);
    assert_eq!(journal.requests_between(0.0, rig.fake.now()), 3);
    assert_eq!(journal.most_in_flight(), 2);
    let overlaps = journal.overlaps(0.0);
    assert_eq!((overlaps[0].older, overlaps[0].newer, overlaps.len()), (1, 2, 1));
    assert_eq!(journal.overlaps(50.0), []);
    assert_eq!(journal.allowed_lists(), [None, None]);
}

#[test]
fn times_of_requests_are_counted_by_window() {
    let mut server = Server::with(500, 1, 0.0);
    for now in [0.0, 10.0, 11.0, 12.0, 40.0] {
        server.ids(now, &[]);
    }
    // Requests without a socket are not in the journal; what they did is.
    assert_eq!(server.world.journal().busiest_window(5.0), 0);
    assert!(server.world.journal().entries().len() >= 5);
}
