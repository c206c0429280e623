//! What the answers show of bots alone, made from the nouns.

use inboxd::clock::Time;
use inboxd::event::SourceId;
use inboxd::operate::{gap, shown};
use inboxd::source::{Gap, GapReason, NewGap, Poller, Source, SourceKind, SourceState};
use serde_json::Value;

use super::document;
use super::schema::faults;

fn fits(schema: &str, value: impl serde::Serialize) {
    let document = document();
    let schema = &document["components"]["schemas"][schema];
    let found = faults(&document, schema, &serde_json::to_value(value).unwrap());
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn a_bot_is_shown_as_documented() {
    let now = Time::parse("2026-06-08T12:34:56Z").unwrap();
    let poller = Poller {
        next_offset: Some(8101),
        last_ok_at: Some(now),
        pending: Some(0),
        holder: Some("host/1".to_owned()),
    };
    let bot = Source {
        id: SourceId(1),
        kind: SourceKind::Telegram,
        name: "support".to_owned(),
        account: Some("7123456789".to_owned()),
        created_at: now,
        last_received_at: Some(now),
        stored: 1,
        duplicates: 0,
        conflicts: 0,
        state: SourceState::default(),
        poller: Some(poller),
        open_gaps: 1,
    };
    fits("Source", shown(bot));
}

#[test]
fn a_possible_loss_is_shown_as_documented() {
    let now = Time::parse("2026-06-08T12:34:56Z").unwrap();
    for reason in [GapReason::Hole, GapReason::Restart, GapReason::Silence] {
        for (ids, from, acknowledged_at) in
            [(Some((8, 9)), Some(now), None), (None, None, Some(now))]
        {
            let noticed = NewGap { reason, ids, from, to: now, detail: "a sentence".to_owned() };
            let lost = Gap { id: 1, source: "support".to_owned(), noticed, acknowledged_at };
            fits("Gap", gap(&lost));
        }
    }
}

#[test]
fn the_documents_kinds_of_receiver_are_all() {
    let kinds = &document()["components"]["schemas"]["Source"]["properties"]["kind"]["enum"];
    let known = [SourceKind::Telegram, SourceKind::UnifyPort].map(SourceKind::name);
    assert_eq!(*kinds, Value::from(known.to_vec()));
}
