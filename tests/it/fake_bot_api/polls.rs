//! When a poll is answered, and with which of the three conflicts.

use inboxd::simulate::bot_api::answer;
use inboxd::simulate::bot_api::change::Change;
use inboxd::simulate::bot_api::kind::{Allowed, KINDS};
use inboxd::simulate::bot_api::queue::Pushed;
use inboxd::simulate::bot_api::sample::sample;
use inboxd::simulate::bot_api::update::Update;

use super::{BOT, Brought, NO_IDS, Server};

/// What a request or an answer takes on its way, and a client to ask again.
const ONE_WAY: f64 = 0.01;
const PAUSE: f64 = 0.03;

fn conflict(text: &str) -> Brought {
    Brought::Error(409, text.to_owned())
}

/// A client that asks again as soon as it has an answer: the moments of its answers, up to
/// `until`. Its requests take no time on the way and `pause` seconds apart.
fn eager(server: &mut Server, args: &[(&str, &str)], pause: f64, until: f64) -> Vec<f64> {
    let mut times = Vec::new();
    let mut now = 0.0;
    while now < until {
        let request = server.send(now, args);
        let mut clock = now;
        while server.answer(request).is_none() {
            clock += 0.01;
            server.run_to(clock);
        }
        let (at, _) = server.answer(request).unwrap();
        times.push(at);
        now = at + pause;
    }
    times
}

fn assert_times(times: &[f64], expected: &[f64]) {
    assert!(times.len() >= expected.len(), "{times:?}");
    for (time, expected) in times.iter().zip(expected) {
        assert!((time - expected).abs() < 0.06, "{times:?} is not {expected:?}");
    }
}

#[test]
fn v12_an_offset_repeated_at_once_is_held_for_three_seconds() {
    let mut server = Server::with(500, 0, 0.0);
    let times = eager(&mut server, &[("timeout", "0")], 0.05, 7.0);
    assert_times(&times, &[0.0, 3.05, 3.1, 6.15]);
}

#[test]
fn v12_an_offset_repeated_within_half_a_second_brings_one_update() {
    let mut server = Server::with(500, 3, 0.0);
    let counts = [0.0, 0.2, 0.6, 1.2].map(|now| server.ids(now, &[]).len());
    assert_eq!(counts, [3, 1, 1, 3]);
}

#[test]
fn a_poll_is_held_for_fifty_seconds_at_most() {
    let mut server = Server::with(500, 0, 0.0);
    let request = server.send(0.0, &[("timeout", "300")]);
    server.run_to(49.9);
    assert_eq!(server.answer(request), None);
    server.run_to(51.0);
    assert_eq!(server.answer(request), Some((50.0, Brought::Ids(vec![]))));
}

#[test]
fn a_push_wakes_the_held_poll_and_a_burst_waits_two_milliseconds_at_most() {
    let mut server = Server::with(500, 0, 0.0);
    let request = server.send(0.0, &[("timeout", "50")]);
    for step in [0.0, 0.0008, 0.0016, 0.0019] {
        server.push(1, 1.0 + step);
    }
    server.run_to(2.0);
    let (at, brought) = server.answer(request).unwrap();
    assert!((at - 1.002).abs() < 1e-9, "{at}");
    assert_eq!(brought, Brought::Ids(vec![500, 501, 502, 503]));
}

/// V13: A polls at 0, B at 1; each asks again as soon as it is told of the conflict.
#[test]
fn v13_two_pollers_throw_each_other_out_every_three_seconds() {
    let mut server = Server::with(500, 0, 0.0);
    let args = [("timeout", "50")];
    // For each client: the moment its next request arrives, or the request that is under way.
    let mut arrivals = [Some(ONE_WAY), Some(1.0 + ONE_WAY)];
    let mut open = [None, None];
    let mut told = [Vec::new(), Vec::new()];
    let mut now = 0.0;
    while now < 8.0 {
        now += 0.001;
        for client in 0..2 {
            if arrivals[client].is_some_and(|at| at <= now) {
                arrivals[client] = None;
                open[client] = Some(server.send(now, &args));
            }
        }
        server.run_to(now);
        for client in 0..2 {
            let Some((at, brought)) = open[client].and_then(|id| server.answer(id)) else {
                continue;
            };
            if at > now {
                continue;
            }
            assert_eq!(brought, conflict(answer::TERMINATED_BY_POLL));
            told[client].push(at + ONE_WAY);
            open[client] = None;
            arrivals[client] = Some(at + ONE_WAY + PAUSE + ONE_WAY);
        }
    }
    assert_times(&told[0], &[1.02, 4.13, 7.23]);
    assert_times(&told[1], &[4.08, 7.18]);
}

#[test]
fn v14_with_a_webhook_the_first_conflict_is_immediate_and_the_next_is_late() {
    let mut server = Server::with(500, 1, 0.0);
    server.world.change(BOT, &Change::Webhook("https://example.org/hook".into()), 0.0);
    let times = eager(&mut server, &[("timeout", "50")], 0.05, 7.0);
    assert_times(&times, &[0.0, 3.05, 3.1, 6.15]);
    assert_eq!(server.answer(1).unwrap().1, conflict(answer::WEBHOOK_ACTIVE));
    assert_eq!(server.queued(), [500]);
}

#[test]
fn v14_a_webhook_that_is_set_ends_the_held_poll_and_one_that_is_removed_does_not() {
    let mut server = Server::with(500, 0, 0.0);
    let held = server.send(0.0, &[("timeout", "50")]);
    server.world.change(BOT, &Change::Webhook(String::new()), 1.0);
    server.run_to(2.0);
    assert_eq!(server.answer(held), None);
    server.world.change(BOT, &Change::Webhook("https://example.org/hook".into()), 3.0);
    server.run_to(4.0);
    assert_eq!(server.answer(held), Some((3.0, conflict(answer::TERMINATED_BY_WEBHOOK))));
}

#[test]
fn v15_a_short_poll_beside_a_held_one_disturbs_it_only_with_the_same_offset() {
    let mut server = Server::with(500, 0, 0.0);
    let held = server.send(0.0, &[("offset", "500"), ("timeout", "50")]);
    assert_eq!(server.ids(1.0, &[("offset", "0"), ("timeout", "0")]), NO_IDS);
    assert_eq!(server.answer(held), None);

    let mut server = Server::with(500, 0, 0.0);
    let held = server.send(0.0, &[("offset", "500"), ("timeout", "50")]);
    let short = server.send(1.0, &[("offset", "500"), ("timeout", "0")]);
    assert_eq!(server.answer(held), Some((1.0, conflict(answer::TERMINATED_BY_POLL))));
    server.run_to(5.0);
    assert_eq!(server.answer(short), Some((4.0, Brought::Ids(vec![]))));
}

#[test]
fn v16_what_is_no_array_of_strings_leaves_the_setting_as_it_was() {
    for argument in ["", "nonsense", "{}", "null", "[1]", r#"["message",1]"#, "7"] {
        assert_eq!(Allowed::parse(argument), None, "{argument}");
    }
}

#[test]
fn v16_an_array_without_a_known_name_is_the_default() {
    let default = Allowed::default();
    assert_eq!(Allowed::parse("[]"), Some(default));
    assert_eq!(Allowed::parse(r#"["unheard_of"]"#), Some(default));
    assert_eq!(default.listed(), None);
    let left_out: Vec<&str> = KINDS.into_iter().filter(|kind| !default.admits(kind)).collect();
    assert_eq!(left_out, ["message_reaction", "message_reaction_count", "chat_member"]);
}

#[test]
fn v16_names_are_taken_in_any_case_and_unknown_ones_among_them_ignored() {
    let allowed = Allowed::parse(r#"["Message","unheard_of","POLL"]"#).unwrap();
    assert_eq!(allowed.listed(), Some(vec!["message", "poll"]));
}

#[test]
fn v16_the_setting_acts_on_new_updates_and_uses_up_no_ids() {
    let mut server = Server::with(500, 1, 0.0);
    server.world.push(BOT, &sample("poll", 1), 0.0);
    let only_polls = [("allowed_updates", r#"["poll"]"#)];
    assert_eq!(server.ids(1.0, &only_polls), [500, 501], "what is queued still comes");
    assert_eq!(server.world.push(BOT, &Update::text(7, 1, "x"), 2.0), Pushed::Filtered);
    assert_eq!(server.world.push(BOT, &sample("poll", 2), 2.0), Pushed::Stored(502));
}
