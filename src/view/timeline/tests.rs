use bytes::Bytes;
use serde_json::{Value, json};

use super::*;
use crate::event::Attributes;

/// An event of this type; it happened and arrived `sequence` seconds after the epoch.
fn event(sequence: Sequence, event_type: &str, body: &Value) -> Event {
    let at = Time::from_micros(sequence * 1_000_000);
    Event {
        sequence,
        id: Uuid::from_u128(sequence.unsigned_abs().into()),
        source: "main".to_owned(),
        received_at: at,
        attributes: Attributes {
            event_type: event_type.to_owned(),
            channel: "telegram".to_owned(),
            account: "7".to_owned(),
            external_id: sequence.to_string(),
            origin: "/telegram/7".to_owned(),
            subject: Some("telegram/7/chat/5".to_owned()),
            time: Some(at),
        },
        body: Bytes::from(body.to_string()),
    }
}

fn telegram(sequence: Sequence, kind: &str, content: Value) -> Event {
    event(sequence, &format!("telegram.{kind}"), &json!({"update_id": sequence, kind: content}))
}

fn said(sequence: Sequence, id: i64, text: &str) -> Event {
    telegram(sequence, "message", json!({"message_id": id, "date": sequence, "text": text}))
}

fn edited(sequence: Sequence, id: i64, text: &str) -> Event {
    telegram(sequence, "edited_message", json!({"message_id": id, "date": 1, "text": text}))
}

fn deleted_all(sequence: Sequence, ids: &[i64]) -> Event {
    telegram(sequence, "deleted_business_messages", json!({"message_ids": ids}))
}

/// The timeline of a page after all `changes`.
fn changed(page: &[Event], changes: &[Event]) -> Timeline {
    let mut timeline = Timeline::new(page, usize::MAX);
    for change in changes {
        timeline.change(change);
    }
    timeline
}

/// A line for each entry: its number and text, `*` if it was edited, `-` if it was deleted.
fn lines(timeline: Timeline) -> Vec<String> {
    let line = |entry: &Entry| {
        let edited = entry.edited_at.map_or("", |_| "*");
        let deleted = entry.deleted_at.map_or("", |_| "-");
        let text = entry.message.text.as_deref().unwrap_or_default();
        format!("{} {text}{edited}{deleted}", entry.sequence)
    };
    timeline.finish().0.iter().map(line).collect()
}

#[test]
fn the_newest_edit_is_shown_on_its_message() {
    let page = [said(1, 10, "a"), said(2, 11, "b"), edited(3, 10, "A"), edited(5, 10, "AA")];
    let timeline = changed(&page, &page);
    assert!(!timeline.has_orphans());
    let entries = timeline.finish().0;
    assert_eq!(entries[0].message.kind, Kind::Message);
    assert_eq!(entries[0].edited_at, Some(Time::from_micros(5_000_000)));
    assert_eq!(lines(changed(&page, &page)), ["1 AA*", "2 b"]);
    // Whatever the order in which they are told, and however often.
    let back: Vec<Event> = page.iter().rev().chain(&page).cloned().collect();
    assert_eq!(lines(changed(&page, &back)), ["1 AA*", "2 b"]);
    let down: Vec<Event> = page.iter().rev().cloned().collect();
    assert_eq!(lines(changed(&down, &page)), ["2 b", "1 AA*"]);
}

#[test]
fn an_edit_overtaken_by_a_newer_one_does_not_win() {
    let mut late = edited(9, 10, "older");
    late.attributes.time = Some(Time::from_micros(2_000_000));
    let page = [said(1, 10, "a"), edited(3, 10, "newer"), late];
    assert_eq!(lines(changed(&page, &page)), ["1 newer*"]);
}

#[test]
fn an_edit_without_its_message_stands_for_it() {
    let page = [edited(3, 10, "A"), said(4, 11, "b"), edited(5, 10, "AA")];
    let timeline = changed(&page, &page);
    assert!(timeline.has_orphans());
    assert_eq!(timeline.orphans_since(), Some(Time::from_micros(1_000_000) - SKEW));
    assert_eq!(timeline.entries[0].message.kind, Kind::Edit);
    assert_eq!(lines(timeline), ["3 AA*", "4 b"]);
    let down: Vec<Event> = page.iter().rev().cloned().collect();
    assert_eq!(lines(changed(&down, &page)), ["4 b", "3 AA*"]);

    // Unless the message, or an earlier edit of it, is found elsewhere.
    for found in [said(1, 10, "a"), edited(2, 10, "a")] {
        let mut timeline = changed(&page, &page);
        timeline.earlier(&found);
        assert!(!timeline.has_orphans());
        assert_eq!(lines(timeline), ["4 b"]);
    }
    let mut timeline = changed(&page, &page);
    timeline.later(&edited(8, 10, "AAA"));
    assert!(timeline.has_orphans());
    timeline.later(&said(9, 10, "a"));
    assert_eq!(lines(timeline), ["4 b"]);
}

#[test]
fn an_edit_that_came_before_its_message_is_shown_on_it() {
    let page = [edited(3, 10, "A"), said(4, 10, "a")];
    assert_eq!(lines(changed(&page, &page)), ["4 A*"]);
    let next_page = [said(4, 10, "a")];
    assert_eq!(lines(changed(&next_page, &[edited(3, 10, "A")])), ["4 A*"]);
}

#[test]
fn deleted_messages_stay_and_say_so() {
    let page =
        [said(1, 10, "a"), said(2, 11, "b"), said(3, 12, "c"), deleted_all(4, &[10, 12, 99])];
    assert_eq!(lines(changed(&page, &page)), ["1 a-", "2 b", "3 c-"]);
    let entries = changed(&page, &page).finish().0;
    assert_eq!(entries[0].deleted_at, Some(Time::from_micros(4_000_000)));
    // In whatever order an edit and a deletion come.
    let both = [deleted_all(5, &[11]), edited(6, 11, "B")];
    assert_eq!(lines(changed(&page[..3], &both)), ["1 a", "2 B*-", "3 c"]);
    assert_eq!(lines(changed(&page[..3], &[both[1].clone(), both[0].clone()]))[1], "2 B*-");
    let orphan = [edited(1, 10, "A")];
    assert_eq!(lines(changed(&orphan, &[deleted_all(2, &[10])])), ["1 A*-"]);
}

#[test]
fn unifyport_s_edits_and_deletions_are_applied_too() {
    let event = |sequence, kind: &str, data: Value| {
        let body = json!({"id": "evt", "type": kind, "data": data});
        event(sequence, &format!("unifyport.{kind}"), &body)
    };
    let page = [
        event(1, "message.received", json!({"message": {"id": "m", "text": "a"}})),
        event(2, "message.received", json!({"message": {"id": "n", "text": "b"}})),
        event(3, "message.updated", json!({"message": {"text": "B", "edit_message_id": "n"}})),
        event(4, "message.deleted", json!({"message": {"id": "m"}})),
        event(
            5,
            "message.reaction",
            json!({"message": {"target_message_id": "n"},
            "event": {"reaction": "👍"}}),
        ),
    ];
    assert_eq!(lines(changed(&page, &page)), ["1 a-", "2 B*", "5 👍"]);
}

#[test]
fn what_only_names_a_message_is_neither_edited_nor_deleted() {
    let pressed = json!({"data": "yes", "message": {"message_id": 10}});
    let page = [
        telegram(1, "callback_query", pressed),
        telegram(2, "message_reaction", json!({"message_id": 10, "new_reaction": []})),
        telegram(3, "guest_message", json!({"message_id": 10, "text": "guest"})),
        telegram(4, "message", json!({"message_id": 10, "pinned_message": {}})),
    ];
    let changes = [edited(5, 10, "A"), deleted_all(6, &[10])];
    assert_eq!(lines(changed(&page, &changes)), ["1 yes", "2 ", "3 guest", "4 A*-"]);
    assert!(!Timeline::new(&page[..3], usize::MAX).can_change());
}

#[test]
fn an_edit_without_an_id_stands_for_itself() {
    let odd = telegram(2, "edited_message", json!({"text": "?"}));
    let page = [odd];
    let timeline = changed(&page, &page);
    assert!(!timeline.has_orphans() && !timeline.can_change());
    assert_eq!(lines(timeline), ["2 ?*"]);
}

#[test]
fn what_has_no_view_is_an_entry_all_the_same() {
    let mut odd = said(1, 10, "a");
    odd.body = Bytes::from_static(b"no json \xff");
    let page = [odd];
    let entries = changed(&page, &page).finish().0;
    assert_eq!(entries[0].message, Message::of_kind(Kind::Other));
}

#[test]
fn a_page_stays_within_its_bytes() {
    let page: Vec<Event> = (1..=4).map(|number| said(number, number, "short")).collect();
    let each = page[0].body.len();
    let next = |timeline: Timeline| {
        let (entries, next) = timeline.finish();
        (entries.len(), next)
    };
    assert_eq!(next(Timeline::new(&page, 4 * each)), (4, None));
    assert_eq!(next(Timeline::new(&page, 4 * each - 1)), (3, Some(3)));
    assert_eq!(next(Timeline::new(&page, 1)), (1, Some(1)));

    // A long edit takes the place of what comes after it.
    let mut timeline = Timeline::new(&page, 4 * each);
    timeline.change(&edited(9, 2, &"long".repeat(each / 3)));
    timeline.change(&edited(10, 4, "left out by now"));
    assert_eq!(next(timeline), (2, Some(2)));
}

#[test]
fn every_type_that_changes_others_is_known() {
    use crate::view::CHANGES;
    let types = [
        "message",
        "edited_message",
        "channel_post",
        "edited_channel_post",
        "business_message",
        "edited_business_message",
        "deleted_business_messages",
        "guest_message",
        "poll",
    ];
    let all = types.map(|kind| format!("telegram.{kind}")).into_iter().chain(
        ["received", "updated", "deleted", "read"].map(|kind| format!("unifyport.message.{kind}")),
    );
    for event_type in all {
        let kind = view(&event_type, b"{}").unwrap().kind;
        let changes = matches!(kind, Kind::Edit | Kind::Delete);
        assert_eq!(CHANGES.contains(&&*event_type), changes, "{event_type}");
    }
}
