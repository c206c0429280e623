//! Barriers, and the judgement of a confirmation before its answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use inboxd::simulate::bot_api::barrier::Point;
use inboxd::simulate::bot_api::journal::Journal;
use inboxd::simulate::bot_api::selector::Selector;
use inboxd::simulate::bot_api::token;
use inboxd::simulate::bot_api::update::Update;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{BOT, NOTHING, Rig, within};

/// A raw connection on which a poll has been sent.
async fn poll(rig: &Rig) -> TcpStream {
    let mut stream = TcpStream::connect(rig.fake.address()).await.unwrap();
    let path = format!("/bot{}/getUpdates", token::example(BOT));
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

async fn rig() -> Rig {
    let rig = Rig::new().await;
    rig.fake.push(BOT, &Update::text(7, 1, &"x".repeat(1000)));
    rig
}

fn whole(journal: &Journal) -> Vec<bool> {
    journal.answers().map(|answer| answer.whole).collect()
}

#[tokio::test]
async fn a_request_stops_at_each_point_and_goes_on_when_released() {
    for (point, delivered, answered) in [
        (Point::Received, false, false),
        (Point::BeforeReply, true, false),
        (Point::HalfBody, true, false),
        (Point::FullBody, true, true),
        (Point::AfterReply, true, true),
    ] {
        let rig = rig().await;
        let barrier = rig.fake.barrier(point, Selector::polls());
        let mut stream = poll(&rig).await;
        assert_eq!(within(barrier.reached()).await, Some(1), "{point:?}");
        let journal = rig.fake.journal();
        let queue = rig.fake.look(|world| {
            let queue = &world.find(BOT).unwrap().queue;
            queue.get(queue.head()).unwrap().delivered
        });
        assert_eq!(queue == 1, delivered, "{point:?}");
        assert_eq!(whole(&journal) == [true], answered, "{point:?}");
        barrier.release();
        let mut answer = String::new();
        within(stream.read_to_string(&mut answer)).await.unwrap();
        assert!(answer.ends_with("]}"), "{point:?}");
    }
}

#[tokio::test]
async fn half_a_body_is_half_a_body() {
    let rig = rig().await;
    let barrier = rig.fake.barrier(Point::HalfBody, Selector::polls());
    let mut stream = poll(&rig).await;
    within(barrier.reached()).await;
    let mut read = vec![0; 10_000];
    let mut length = 0;
    while !String::from_utf8_lossy(&read[..length]).contains("xxx") {
        length += within(stream.read(&mut read[length..])).await.unwrap();
    }
    assert!(!String::from_utf8_lossy(&read[..length]).contains("]}"));
    drop(stream);
    within(rig.fake.until(|world| world.journal().in_flight() == 0)).await;
    drop(barrier);
    within(rig.fake.until(|world| world.journal().answers().count() == 1)).await;
    assert_eq!(whole(&rig.fake.journal()), [false]);
}

#[tokio::test]
async fn after_a_reply_the_next_request_waits_on_whatever_connection() {
    let rig = rig().await;
    let barrier = rig.fake.barrier(Point::AfterReply, Selector::polls());
    assert_eq!(rig.ids("").await.len(), 1);
    within(barrier.reached()).await;
    let next = rig.ids("timeout=1");
    let release = async {
        within(rig.fake.until(|world| world.journal().in_flight() == 1)).await;
        assert_eq!(rig.fake.journal().answers().count(), 1);
        barrier.release();
    };
    assert_eq!(tokio::join!(next, release).0.len(), 1);
}

#[tokio::test]
async fn a_barrier_nobody_can_reach_any_more_says_so() {
    let rig = rig().await;
    let barrier = rig.fake.barrier(Point::Received, Selector::polls());
    rig.fake.clear_faults();
    assert_eq!(within(barrier.reached()).await, None);
}

#[tokio::test]
async fn a_confirmation_is_judged_before_its_answer_and_only_once() {
    let rig = rig().await;
    let judged = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&judged);
    rig.fake.on_confirm(move |confirmation| {
        assert!(!seen.swap(true, Ordering::SeqCst), "judged twice");
        let [(id, delivered)] = confirmation.updates[..] else { panic!("{confirmation:?}") };
        Err(format!("{id} was delivered {delivered} times"))
    });
    let id = rig.ids("").await[0];
    assert!(!judged.load(Ordering::SeqCst));
    assert_eq!(rig.ids(&format!("offset={}", id + 1)).await, NOTHING);
    assert!(judged.load(Ordering::SeqCst), "the answer came first");
    assert_eq!(rig.fake.violations(), [format!("request 2: {id} was delivered 1 times")]);
}

#[tokio::test]
async fn a_judge_that_panics_is_a_violation() {
    let rig = rig().await;
    rig.fake.on_confirm(|_| panic!("as this test wants it"));
    let id = rig.ids("").await[0];
    rig.ids(&format!("offset={}", id + 1)).await;
    assert_eq!(rig.fake.violations(), ["request 2: the check of a confirmation panicked"]);
}

#[tokio::test]
async fn a_client_that_leaves_does_not_free_the_slot() {
    let rig = Rig::new().await;
    let request = rig.client.get(rig.url("getUpdates?timeout=50"));
    let poll = tokio::spawn(request.send());
    within(rig.fake.until(|world| world.find(BOT).is_some_and(|bot| bot.is_held()))).await;
    poll.abort();
    within(rig.fake.until(|world| world.journal().in_flight() == 0)).await;
    assert!(rig.fake.look(|world| world.find(BOT).unwrap().is_held()));
    rig.fake.push(BOT, &Update::text(7, 1, "into nothing"));
    within(rig.fake.until(|world| world.journal().answers().count() == 1)).await;
    assert_eq!(whole(&rig.fake.journal()), [false]);
    assert_eq!(rig.ids("limit=5").await.len(), 1, "and it comes again");
}
