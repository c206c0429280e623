//! What workers did outside: begun by one, seen when that one is gone, and recorded once.

use std::time::Duration;

use inboxd::effect::{Begun, Effect, EffectQuery, Key, State, Token};
use inboxd::event::NewEvent;
use inboxd::store::StoreError;
use inboxd::work::{ClaimRequest, Receipt};

use super::fixture::{Fixture, LEASE, consumer, request};
use super::sample::{Vary, sample};

super::conformance!(
    one_begins_and_is_told_the_same_again,
    others_wait_while_the_beginner_holds_its_lease,
    it_is_in_doubt_when_the_beginner_is_gone,
    a_beginner_that_comes_back_late_is_in_doubt_too,
    work_that_was_acked_or_given_up_leaves_its_effect_in_doubt,
    only_the_newest_token_finishes,
    what_is_finished_stays_so,
    what_did_not_happen_is_begun_anew,
    only_who_has_the_work_may_begin,
    keys_are_per_consumer,
    all_of_it_survives_a_restart,
    of_many_at_once_one_begins,
    of_many_at_once_one_has_the_newest_token,
    a_list_is_read_by_state_and_page,
);

fn key(text: &str) -> Key {
    Key::try_from(text.to_owned()).unwrap()
}

/// The receipt of what is claimed next.
async fn receipt(fixture: &Fixture) -> Receipt {
    fixture.claim(1).await[0].receipt
}

async fn begin(fixture: &Fixture, text: &str, receipt: Receipt) -> Begun {
    fixture.store.begin_effect("default", key(text), receipt).await.unwrap()
}

async fn begun(fixture: &Fixture, text: &str, receipt: Receipt) -> Token {
    match begin(fixture, text, receipt).await {
        Begun::Begun(token) => token,
        other => panic!("{other:?}"),
    }
}

async fn in_doubt(fixture: &Fixture, text: &str, receipt: Receipt) -> Token {
    match begin(fixture, text, receipt).await {
        Begun::InDoubt { token, .. } => token,
        other => panic!("{other:?}"),
    }
}

async fn finish(fixture: &Fixture, text: &str, token: Token, result: Option<&str>) -> bool {
    let result = result.map(|result| result.as_bytes().to_vec());
    fixture.store.finish_effect("default", key(text), token, result).await.unwrap()
}

async fn abandon(fixture: &Fixture, text: &str, token: Token) -> bool {
    fixture.store.abandon_effect("default", key(text), token).await.unwrap()
}

async fn list(fixture: &Fixture, state: Option<State>) -> Vec<Effect> {
    let query = EffectQuery { state, after: None, limit: 100 };
    fixture.store.effects("default", query).await.unwrap().effects
}

fn finished(result: &str) -> Begun {
    Begun::Finished(Some(result.as_bytes().to_vec()))
}

async fn stored(fixture: &Fixture, names: &[&str]) -> Vec<NewEvent> {
    let events: Vec<_> = names.iter().map(|name| sample(fixture.main, name)).collect();
    fixture.stored(&events).await;
    events
}

async fn one_begins_and_is_told_the_same_again(fixture: &mut Fixture) {
    stored(fixture, &["a"]).await;
    let receipt = receipt(fixture).await;
    let token = begun(fixture, "mail", receipt).await;
    for _ in 0..2 {
        assert_eq!(begin(fixture, "mail", receipt).await, Begun::Again(token));
    }
    fixture.advance(2 * LEASE).await;
    assert_eq!(begin(fixture, "mail", receipt).await, Begun::Again(token), "nobody else has it");
    assert_ne!(begun(fixture, "another", receipt).await, token);
    assert!(finish(fixture, "mail", token, None).await);
}

async fn others_wait_while_the_beginner_holds_its_lease(fixture: &mut Fixture) {
    stored(fixture, &["a", "b", "c"]).await;
    let one_claim = fixture.claim(2).await;
    let other = receipt(fixture).await;
    let token = begun(fixture, "mail", one_claim[0].receipt).await;
    assert_eq!(begin(fixture, "mail", other).await, Begun::Running);
    assert_eq!(begin(fixture, "mail", one_claim[1].receipt).await, Begun::Running, "another event");
    assert_eq!(begin(fixture, "mail", one_claim[0].receipt).await, Begun::Again(token));
    assert!(finish(fixture, "mail", token, Some("1")).await);
    assert_eq!(begin(fixture, "mail", other).await, finished("1"));
}

async fn it_is_in_doubt_when_the_beginner_is_gone(fixture: &mut Fixture) {
    let event = &stored(fixture, &["a"]).await[0];
    let first = receipt(fixture).await;
    let old = begun(fixture, "mail", first).await;
    let begun_at = list(fixture, None).await[0].begun_at;
    let mut tokens = vec![old];
    for _ in 0..2 {
        fixture.advance(LEASE).await;
        let next = receipt(fixture).await;
        for _ in 0..2 {
            match begin(fixture, "mail", next).await {
                Begun::InDoubt { begun_at: since, token } => {
                    assert_eq!(since, begun_at, "when it was begun first");
                    assert!(!tokens.contains(&token));
                    tokens.push(token);
                }
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(begin(fixture, "mail", first).await, Begun::Stale);
    for old in &tokens[..4] {
        assert!(!finish(fixture, "mail", *old, None).await);
        assert!(!abandon(fixture, "mail", *old).await);
    }
    assert!(finish(fixture, "mail", tokens[4], Some("{}")).await);
    let ended = &list(fixture, Some(State::Finished)).await[0];
    assert_eq!((ended.begun_at, ended.event_id), (begun_at, Some(event.id)));
    assert!(ended.finished_at.is_some_and(|at| at >= begun_at));
}

async fn a_beginner_that_comes_back_late_is_in_doubt_too(fixture: &mut Fixture) {
    let sequences = fixture.stored(&["a", "b"].map(|name| sample(fixture.main, name))).await;
    let late = receipt(fixture).await;
    let long = ClaimRequest { lease: Some(10 * LEASE), ..request(1) };
    let other = fixture.store.claim("default", long).await.unwrap()[0].receipt;
    let old = begun(fixture, "mail", late).await;
    fixture.advance(2 * LEASE).await;
    let told = in_doubt(fixture, "mail", other).await;
    // However it got its lease back.
    let extend =
        format!("UPDATE work SET due_at = due_at + 600000000 WHERE event_seq = {}", sequences[0]);
    fixture.raw.execute(&extend).await;
    assert_eq!(list(fixture, Some(State::Running)).await, []);
    assert!(!finish(fixture, "mail", old, None).await);
    let newest = in_doubt(fixture, "mail", late).await;
    assert!(!finish(fixture, "mail", told, None).await);
    in_doubt(fixture, "mail", other).await;
    assert!(!abandon(fixture, "mail", newest).await);
}

async fn work_that_was_acked_or_given_up_leaves_its_effect_in_doubt(fixture: &mut Fixture) {
    stored(fixture, &["a", "b", "c"]).await;
    let acked = fixture.claim(1).await;
    let token = begun(fixture, "acked", acked[0].receipt).await;
    assert_eq!(list(fixture, Some(State::Running)).await.len(), 1);
    fixture.ack(&acked).await;
    assert_eq!(list(fixture, Some(State::InDoubt)).await.len(), 1);
    let dead = receipt(fixture).await;
    begun(fixture, "dead", dead).await;
    for _ in 0..2 {
        fixture.advance(LEASE).await;
        fixture.claim(1).await;
    }
    fixture.advance(LEASE).await;
    let other = receipt(fixture).await;
    assert_eq!(list(fixture, Some(State::InDoubt)).await.len(), 2);
    in_doubt(fixture, "dead", other).await;
    assert!(finish(fixture, "acked", token, None).await, "no lease is needed");
    assert_eq!(begin(fixture, "acked", other).await, Begun::Finished(None));
}

async fn only_the_newest_token_finishes(fixture: &mut Fixture) {
    stored(fixture, &["a"]).await;
    let receipt = receipt(fixture).await;
    let token = begun(fixture, "mail", receipt).await;
    assert!(!finish(fixture, "mail", Token([0; 16]), None).await);
    assert!(!finish(fixture, "never begun", token, None).await);
    fixture.advance(2 * LEASE).await;
    assert!(finish(fixture, "mail", token, Some(r#"{"n": 1.10}"#)).await);
    assert!(finish(fixture, "mail", token, Some(r#"{"n": 1.10}"#)).await, "the answer was lost");
    for other in [Some(r#"{"n":1.10}"#), Some(""), None] {
        assert!(!finish(fixture, "mail", token, other).await, "{other:?}");
    }
    assert!(!finish(fixture, "mail", Token([0; 16]), Some(r#"{"n": 1.10}"#)).await);
    assert_eq!(begin(fixture, "mail", receipt).await, finished(r#"{"n": 1.10}"#));
}

async fn what_is_finished_stays_so(fixture: &mut Fixture) {
    stored(fixture, &["a", "b"]).await;
    let first = receipt(fixture).await;
    let token = begun(fixture, "mail", first).await;
    assert!(finish(fixture, "mail", token, None).await);
    assert!(finish(fixture, "mail", token, None).await, "no result is one too");
    assert!(!finish(fixture, "mail", token, Some("null")).await);
    assert!(!abandon(fixture, "mail", token).await);
    for _ in 0..2 {
        fixture.advance(LEASE).await;
        let again = receipt(fixture).await;
        assert_eq!(begin(fixture, "mail", again).await, Begun::Finished(None));
    }
}

async fn what_did_not_happen_is_begun_anew(fixture: &mut Fixture) {
    stored(fixture, &["a"]).await;
    let first = receipt(fixture).await;
    let token = begun(fixture, "mail", first).await;
    assert!(!abandon(fixture, "mail", Token([0; 16])).await);
    assert!(abandon(fixture, "mail", token).await);
    assert!(!abandon(fixture, "mail", token).await);
    assert!(!finish(fixture, "mail", token, None).await);
    let second = begun(fixture, "mail", first).await;
    assert_ne!(second, token);
    fixture.advance(LEASE).await;
    let next = receipt(fixture).await;
    let newest = in_doubt(fixture, "mail", next).await;
    assert!(!abandon(fixture, "mail", second).await);
    assert!(abandon(fixture, "mail", newest).await);
    assert_eq!(list(fixture, None).await, []);
    begun(fixture, "mail", next).await;
}

async fn only_who_has_the_work_may_begin(fixture: &mut Fixture) {
    let names = ["a", "b"];
    fixture.stored(&names.map(|name| sample(fixture.main, name).in_chat(name))).await;
    let claimed = fixture.claim(2).await;
    let Receipt { sequence, token } = claimed[0].receipt;
    for receipt in [
        Receipt { sequence, token: [0; 16] },
        Receipt { sequence: i64::MAX, token },
        Receipt { sequence: -1, token },
    ] {
        assert_eq!(begin(fixture, "mail", receipt).await, Begun::Stale);
    }
    fixture.ack(&claimed[..1]).await;
    assert_eq!(begin(fixture, "mail", claimed[0].receipt).await, Begun::Stale, "it is done");
    fixture.advance(LEASE).await;
    let next = receipt(fixture).await;
    assert_eq!(begin(fixture, "mail", claimed[1].receipt).await, Begun::Stale, "taken");
    assert_eq!(list(fixture, None).await, []);
    begun(fixture, "mail", next).await;
    let unknown = |error: StoreError| matches!(error, StoreError::UnknownConsumer(_));
    let store = &fixture.store;
    assert!(unknown(store.begin_effect("nobody", key("mail"), next).await.unwrap_err()));
    assert!(unknown(
        store.finish_effect("x", key("mail"), Token([0; 16]), None).await.unwrap_err()
    ));
    assert!(unknown(store.abandon_effect("x", key("mail"), Token([0; 16])).await.unwrap_err()));
    let all = EffectQuery { state: None, after: None, limit: 1 };
    assert!(unknown(store.effects("nobody", all).await.unwrap_err()));
}

async fn keys_are_per_consumer(fixture: &mut Fixture) {
    fixture.store.put_consumers(vec![consumer("second")]).await.unwrap();
    stored(fixture, &["a"]).await;
    let ours = receipt(fixture).await;
    let theirs = fixture.store.claim("second", request(1)).await.unwrap()[0].receipt;
    let token = begun(fixture, "mail", ours).await;
    let store = &fixture.store;
    assert_eq!(store.begin_effect("second", key("mail"), ours).await.unwrap(), Begun::Stale);
    assert!(!store.finish_effect("second", key("mail"), token, None).await.unwrap());
    let other = store.begin_effect("second", key("mail"), theirs).await.unwrap();
    assert!(matches!(other, Begun::Begun(other) if other != token));
    assert!(!store.abandon_effect("second", key("mail"), token).await.unwrap());
    assert_eq!(list(fixture, None).await.len(), 1);
}

async fn all_of_it_survives_a_restart(fixture: &mut Fixture) {
    stored(fixture, &["a", "b"]).await;
    let first = receipt(fixture).await;
    let longest = "ключ".repeat(256);
    let token = begun(fixture, &longest, first).await;
    let done = begun(fixture, "done", first).await;
    assert!(finish(fixture, "done", done, Some("[1]")).await);
    fixture.reopen().await;
    assert_eq!(begin(fixture, &longest, first).await, Begun::Again(token));
    let other = receipt(fixture).await;
    assert_eq!(begin(fixture, &longest, other).await, Begun::Running);
    assert_eq!(begin(fixture, "done", other).await, finished("[1]"));
    assert_eq!(list(fixture, Some(State::Running)).await[0].key.as_str(), longest);
}

/// The answers of all these receipts, which ask at once through two stores of one database.
async fn at_once(fixture: &Fixture, receipts: &[Receipt], text: &str) -> Vec<Begun> {
    let second = fixture.open_again(false).await.unwrap();
    let asking = receipts.iter().enumerate().map(|(place, receipt)| {
        let store = if place % 2 == 0 { fixture.store.clone() } else { second.clone() };
        let (key, receipt) = (key(text), *receipt);
        tokio::spawn(async move { store.begin_effect("default", key, receipt).await.unwrap() })
    });
    let asking: Vec<_> = asking.collect();
    let mut answers = Vec::new();
    for answer in asking {
        answers.push(answer.await.unwrap());
    }
    second.close().await;
    answers
}

async fn of_many_at_once_one_begins(fixture: &mut Fixture) {
    stored(fixture, &["a", "b", "c", "d", "e", "f", "g", "h"]).await;
    let mut receipts = Vec::new();
    for _ in 0..8 {
        receipts.push(receipt(fixture).await);
    }
    for round in 0..20 {
        let answers = at_once(fixture, &receipts, &format!("mail {round}")).await;
        let begun = answers.iter().filter(|answer| matches!(answer, Begun::Begun(_))).count();
        let running = answers.iter().filter(|answer| **answer == Begun::Running).count();
        assert_eq!((begun, running), (1, 7), "{answers:?}");
    }
}

async fn of_many_at_once_one_has_the_newest_token(fixture: &mut Fixture) {
    stored(fixture, &["a", "b", "c", "d", "e"]).await;
    let gone = receipt(fixture).await;
    begun(fixture, "mail", gone).await;
    fixture.advance(LEASE).await;
    let claimed = fixture.claim(5).await;
    let receipts: Vec<Receipt> = claimed.iter().map(|one| one.receipt).collect();
    let mut good = 0;
    for answer in at_once(fixture, &receipts, "mail").await {
        let Begun::InDoubt { token, .. } = answer else { panic!("{answer:?}") };
        good += u32::from(finish(fixture, "mail", token, None).await);
    }
    assert_eq!(good, 1);
}

async fn a_list_is_read_by_state_and_page(fixture: &mut Fixture) {
    let events = stored(fixture, &["a", "b"]).await;
    let first = receipt(fixture).await;
    for number in 0..9 {
        let token = begun(fixture, &number.to_string(), first).await;
        if number % 3 == 0 {
            finish(fixture, &number.to_string(), token, None).await;
        }
        if number % 2 == 0 {
            fixture.advance(Duration::from_secs(1)).await;
        }
    }
    let (running, doubt) = (Some(State::Running), Some(State::InDoubt));
    assert_eq!(list(fixture, running).await.len(), 6);
    assert_eq!(list(fixture, doubt).await, []);
    fixture.advance(LEASE).await;
    assert_eq!(list(fixture, running).await, []);
    let all = list(fixture, None).await;
    assert_eq!((all.len(), all[0].event_id), (9, Some(events[0].id)));
    assert!(all.is_sorted_by_key(Effect::place));
    for state in [None, doubt, Some(State::Finished)] {
        let whole = list(fixture, state).await;
        let mut paged = Vec::new();
        loop {
            let after = paged.last().map(Effect::place);
            let query = EffectQuery { state, after, limit: 2 };
            let page = fixture.store.effects("default", query).await.unwrap();
            assert!(page.effects.len() == 2 || !page.more);
            paged.extend(page.effects);
            if !page.more {
                break;
            }
        }
        assert_eq!(paged, whole);
        let expected: Vec<&Effect> =
            all.iter().filter(|one| state.is_none_or(|state| one.state == state)).collect();
        assert_eq!(whole.iter().collect::<Vec<_>>(), expected);
    }
}
