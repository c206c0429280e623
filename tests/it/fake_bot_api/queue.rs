//! What an offset deletes, and which ids updates get.

use std::time::{Duration, Instant};

use inboxd::simulate::bot_api::change::{Change, Start};
use inboxd::simulate::bot_api::odd;
use inboxd::simulate::bot_api::queue::{Pushed, Refusal};
use inboxd::simulate::bot_api::update::Update;

use super::{BOT, Brought, NO_IDS, Server};

const BASE: i32 = 500_000_000;
const TAIL: i32 = BASE + 3;

/// One row of V1: a poll with three queued, then three pushes while it is held or, where it was
/// answered, before it is repeated; then what is left.
fn offset_against_three(offset: i32) -> (Vec<i32>, Vec<i32>, Vec<i32>) {
    let mut server = Server::with(BASE, 3, 0.0);
    let offset = offset.to_string();
    let args = [("offset", offset.as_str()), ("timeout", "30")];
    let first = server.send(1.0, &args);
    let at_once = server.answer(first).map(|(_, brought)| brought);
    server.push(3, 10.0);
    server.run_to(11.0);
    let (at_once, then) = match at_once {
        Some(Brought::Ids(ids)) => {
            let second = server.send(20.0, &args);
            server.run_to(60.0);
            (ids, server.answer(second).unwrap().1)
        }
        _ => (Vec::new(), server.answer(first).unwrap().1),
    };
    let Brought::Ids(then) = then else { panic!("{then:?}") };
    (at_once, then, server.queued())
}

fn plus(numbers: std::ops::Range<i32>) -> Vec<i32> {
    numbers.map(|n| BASE + n).collect()
}

#[test]
fn v1_an_offset_up_to_ten_too_high_destroys_and_one_beyond_confirms_nothing() {
    let nothing = Vec::new;
    assert_eq!(offset_against_three(TAIL), (nothing(), plus(3..6), plus(3..6)));
    assert_eq!(offset_against_three(TAIL + 1), (nothing(), plus(4..6), plus(4..6)));
    assert_eq!(offset_against_three(TAIL + 5), (nothing(), nothing(), nothing()));
    assert_eq!(offset_against_three(TAIL + 10), (nothing(), nothing(), nothing()));
    assert_eq!(offset_against_three(TAIL + 11), (plus(0..3), nothing(), nothing()));
    assert_eq!(offset_against_three(TAIL + 50), (plus(0..3), plus(0..6), plus(0..6)));
}

#[test]
fn v1_an_offset_too_low_is_answered_from_the_head() {
    for below in [1, 100_000, 100_001, 5_000_000] {
        let (first, then, left) = offset_against_three(BASE - below);
        assert_eq!((first, then, left), (plus(0..3), plus(0..6), plus(0..6)), "{below} below");
    }
}

#[test]
fn v1_what_is_destroyed_unseen_is_written_down() {
    let mut server = Server::with(BASE, 0, 0.0);
    let offset = (BASE + 5).to_string();
    server.send(1.0, &[("offset", &offset), ("timeout", "30")]);
    server.push(2, 2.0);
    server.run_to(3.0);
    let journal = server.world.journal();
    let lost: Vec<i32> =
        journal.unexcused_losses().iter().flat_map(|loss| &loss.ids).copied().collect();
    assert_eq!(lost, plus(0..2));
}

#[test]
fn v2_a_negative_offset_keeps_only_the_last_so_many() {
    for (offset, kept) in [("-1", 4..5), ("-2", 3..5), ("-5", 0..5), ("-100", 0..5)] {
        let mut server = Server::with(BASE, 5, 0.0);
        assert_eq!(server.ids(1.0, &[("offset", offset)]), plus(kept.clone()), "{offset}");
        assert_eq!(server.queued(), plus(kept), "{offset}");
    }
}

#[test]
fn v3_an_offset_from_a_higher_sequence_repeats_the_batch_until_the_right_one() {
    let mut server = Server::with(117_314_199, 2, 0.0);
    let batch = vec![117_314_199, 117_314_200];
    assert_eq!(server.ids(1.0, &[("offset", "727334708")]), batch);
    assert_eq!(server.ids(10.0, &[("offset", "727334708")]), batch);
    assert_eq!(server.ids(20.0, &[("offset", "117314201")]), NO_IDS);
    server.push(1, 21.0);
    assert_eq!(server.ids(30.0, &[("offset", "117314201")]), [117_314_201]);
}

#[test]
fn v4_an_offset_from_a_lower_sequence_is_answered_from_the_head() {
    let mut server = Server::with(900_000_000, 2, 0.0);
    assert_eq!(server.ids(1.0, &[("offset", "117314200")]), [900_000_000, 900_000_001]);
    assert_eq!(server.queued().len(), 2);
}

#[test]
fn v5_a_queue_that_never_was_takes_any_offset() {
    let mut server = Server::new();
    let request = server.send(0.0, &[("offset", "5000"), ("timeout", "50")]);
    assert_eq!(server.answer(request), None);
    server.push(1, 1.0);
    server.run_to(2.0);
    let id = server.queued()[0];
    assert!((2_000_001..=1_000_000_000).contains(&id), "{id}");
    assert_eq!(server.answer(request).unwrap().1, Brought::Ids(vec![id]));
}

#[test]
fn v6_expired_updates_leave_holes() {
    let mut server = Server::with(BASE, 0, 0.0);
    for lifetime in [1000.0, 31.0, 1000.0, 151.0, 1000.0] {
        server.world.push(BOT, &Update::text(7, 1, "x").living(lifetime), 0.0);
    }
    assert_eq!(server.ids(200.0, &[]), [BASE, BASE + 2, BASE + 4]);
    assert_eq!(server.queued(), [BASE, BASE + 2, BASE + 4]);
    assert_eq!(
        server.world.push(BOT, &Update::text(7, 1, "x").living(0.0), 200.0),
        Pushed::Refused(Refusal::Expired)
    );
}

#[test]
fn v7_a_full_queue_refuses_the_newest_and_that_many_pushes_are_quick() {
    let mut server = Server::with(BASE, 0, 0.0);
    let update = Update::text(7, 1, "x");
    let start = Instant::now();
    for _ in 0..100_000 {
        assert!(server.world.push(BOT, &update, 0.0).id().is_some());
    }
    // A scan of the queue at each push would take minutes.
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    assert_eq!(server.world.push(BOT, &update, 0.0), Pushed::Refused(Refusal::Full));
    assert_eq!(server.world.find(BOT).unwrap().queue.tail(), BASE + 100_000);
}

#[test]
fn v7_an_update_of_512_kib_is_queued_and_a_byte_more_is_not() {
    let mut server = Server::with(BASE, 0, 0.0);
    let largest = odd::sized(1, 1 << 19);
    assert_eq!(server.world.push(BOT, &largest, 0.0), Pushed::Stored(BASE));
    let larger = odd::sized(1, (1 << 19) + 1);
    assert_eq!(server.world.push(BOT, &larger, 0.0), Pushed::Refused(Refusal::TooLarge));
    let nothing = Update::raw("message", "");
    assert_eq!(server.world.push(BOT, &nothing, 0.0), Pushed::Refused(Refusal::Empty));
}

#[test]
fn v7_a_queue_of_128_mib_is_full() {
    let mut server = Server::with(BASE, 0, 0.0);
    let largest = odd::sized(1, 1 << 19);
    for _ in 0..256 {
        assert!(server.world.push(BOT, &largest, 0.0).id().is_some());
    }
    let small = Update::text(7, 1, "x");
    assert_eq!(server.world.push(BOT, &small, 0.0), Pushed::Refused(Refusal::Full));
}

#[test]
fn v7_a_batch_ends_at_4_mib_though_more_is_queued() {
    let mut server = Server::with(BASE, 0, 0.0);
    for n in 0..9 {
        server.world.push(BOT, &odd::sized(n, 1 << 19), 0.0);
    }
    assert_eq!(server.ids(1.0, &[]), plus(0..7));
}

#[test]
fn v8_a_dropped_queue_keeps_its_sequence() {
    let mut server = Server::with(BASE, 2, 0.0);
    server.world.change(BOT, &Change::Drop, 1.0);
    assert_eq!(server.queued(), NO_IDS);
    server.push(1, 2.0);
    assert_eq!(server.queued(), [BASE + 2]);
}

#[test]
fn v9_when_the_ids_run_out_the_queue_is_lost_and_a_random_one_begins() {
    let mut server = Server::with(1_999_999_997, 2, 0.0);
    assert_eq!(server.queued(), [1_999_999_997, 1_999_999_998]);
    server.push(1, 1.0);
    let left = server.queued();
    assert_eq!(left.len(), 1);
    assert!((2_000_001..=1_000_000_000).contains(&left[0]), "{left:?}");
}

#[test]
fn v17_after_a_rollback_an_offset_sent_again_destroys_and_one_left_out_does_not() {
    for (explicit, survives) in [(true, false), (false, true)] {
        let mut server = Server::with(BASE, 20, 0.0);
        let offset = (BASE + 20).to_string();
        assert_eq!(server.ids(1.0, &[]).len(), 20);
        assert_eq!(server.ids(10.0, &[("offset", &offset)]), NO_IDS);
        server.world.change(BOT, &Change::RollBack(5), 11.0);
        let mut received = Vec::new();
        for n in 0..5 {
            let now = 20.0 + 10.0 * f64::from(n);
            let mut args = vec![("timeout", "50")];
            let confirm = received.last().map(|id: &i32| (id + 1).to_string());
            if explicit {
                args.push(("offset", &offset));
            } else if let Some(confirm) = &confirm {
                args.push(("offset", confirm));
            }
            let request = server.send(now, &args);
            server.push(1, now + 5.0);
            server.run_to(now + 6.0);
            let Some((_, Brought::Ids(ids))) = server.answer(request) else { panic!("no batch") };
            received.extend(ids);
        }
        let expected = if survives { plus(15..20) } else { Vec::new() };
        assert_eq!(received, expected, "explicit: {explicit}");
    }
}

#[test]
fn a_new_sequence_begins_where_it_is_told() {
    let mut server = Server::with(BASE, 4, 0.0);
    server.ids(1.0, &[]);
    for (start, expected) in [
        (Start::BelowOffset(5), BASE - 1),
        (Start::At(77), 77),
        (Start::Higher, 78 + 50_000_000),
        (Start::Lower, (79 + 50_000_000) / 2),
    ] {
        server.world.change(BOT, &Change::NewSequence(start), 2.0);
        server.push(1, 2.0);
        assert_eq!(server.queued(), [expected], "{start:?}");
    }
}
