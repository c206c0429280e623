//! One conversation as it reads now: what happened in it, in order of receipt, with edits and
//! deletions shown on the messages they are about.
//!
//! A timeline is made of a page of the conversation's events. Then it is told of the edits and
//! deletions that may concern the page, in any order and as often as one likes, and of events around
//! the page, which may hold the messages that its edits are about. All of them must be of the same
//! conversation, because the ids of messages mean nothing beyond it.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use uuid::Uuid;

use super::{Kind, Message, deleted, view};
use crate::clock::Time;
use crate::event::{Event, Sequence};

/// By how much our clock may be behind the one that says when a message was sent.
const SKEW: Duration = Duration::from_secs(24 * 3600);

/// Something that happened in the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The event that told of it.
    pub event_id: Uuid,
    /// That event's place in the order of receipt.
    pub sequence: Sequence,
    /// When that event arrived.
    pub received_at: Time,
    /// That event's type.
    pub event_type: String,
    /// What it says; the text and the attachments are those of the newest edit.
    pub message: Message,
    /// When it was last edited, by the sender's word if it has one; none if it was not. An edit whose
    /// message is not in the inbox is an entry of its own, and has this.
    pub edited_at: Option<Time>,
    /// When it was deleted, likewise. What it said stays, because the inbox is a record.
    pub deleted_at: Option<Time>,
    /// The edit that it shows.
    edit: Option<Age>,
    /// Bytes of the body that it shows.
    bytes: usize,
}

/// What is newer: the later by the sender's word, and of two of the same time the later received.
type Age = (Time, Sequence);

/// A page of a conversation.
#[derive(Debug)]
pub struct Timeline {
    /// In order of reading.
    entries: Vec<Entry>,
    /// The entries that edits and deletions of a message are about.
    places: HashMap<String, Vec<usize>>,
    /// Messages that an edit on the page is about, and that are not known to be elsewhere.
    orphans: HashSet<String>,
    bytes: usize,
    max_bytes: usize,
    cut: bool,
}

impl Timeline {
    /// Makes the timeline of these events, given in order of reading, one way or the other. Their
    /// edits and deletions are not applied yet. What does not fit into `max_bytes` of bodies is left
    /// out from the end, now or when edits make it larger, but one entry always fits.
    #[must_use]
    pub fn new(page: &[Event], max_bytes: usize) -> Timeline {
        let mut seen: Vec<(&Event, Message)> =
            page.iter().map(|event| (event, message(event))).collect();
        let is_down = page.first().map(|event| event.sequence) > page.last().map(|e| e.sequence);
        if is_down {
            seen.reverse();
        }
        let own = seen.iter().filter(|(_, message)| message.kind != Kind::Edit);
        let mut known: HashSet<String> =
            own.filter_map(|(event, message)| own_id(event, message)).collect();
        let mut orphans = HashSet::new();
        let mut entries = Vec::new();
        for (event, message) in seen {
            let is_entry = match (message.kind, own_id(event, &message)) {
                (Kind::Delete, _) => false,
                // The first of several edits stands for a message that is not there.
                (Kind::Edit, Some(id)) => {
                    let is_first = known.insert(id.clone());
                    if is_first {
                        orphans.insert(id);
                    }
                    is_first
                }
                _ => true,
            };
            if is_entry {
                entries.push(Entry::new(event, message));
            }
        }
        if is_down {
            entries.reverse();
        }
        let mut timeline = Timeline {
            bytes: entries.iter().map(|entry| entry.bytes).sum(),
            places: HashMap::new(),
            entries,
            orphans,
            max_bytes,
            cut: false,
        };
        for (place, entry) in timeline.entries.iter().enumerate() {
            if let Some(id) = entry.own_id() {
                timeline.places.entry(id).or_default().push(place);
            }
        }
        timeline.fit();
        timeline
    }

    /// Whether any edit or deletion could concern this page.
    #[must_use]
    pub fn can_change(&self) -> bool {
        !self.places.is_empty()
    }

    /// Applies an edit or a deletion; any other event changes nothing.
    pub fn change(&mut self, event: &Event) {
        let happened = event.attributes.time.unwrap_or(event.received_at);
        for id in deleted(&event.attributes.event_type, &event.body) {
            for place in self.places.get(&id).into_iter().flatten() {
                let Some(entry) = self.entries.get_mut(*place) else { continue };
                let first = entry.deleted_at.map_or(happened, |before| before.min(happened));
                entry.deleted_at = Some(first);
            }
        }
        let edit = message(event);
        let Some(id) = own_id(event, &edit).filter(|_| edit.kind == Kind::Edit) else { return };
        let age = (happened, event.sequence);
        for place in self.places.get(&id).into_iter().flatten() {
            let Some(entry) = self.entries.get_mut(*place) else { continue };
            if entry.edit.is_some_and(|shown| shown >= age) {
                continue;
            }
            self.bytes = self.bytes - entry.bytes + event.body.len();
            entry.bytes = event.body.len();
            entry.message.text.clone_from(&edit.text);
            entry.message.attachments.clone_from(&edit.attachments);
            entry.edited_at = Some(happened);
            entry.edit = Some(age);
        }
        self.fit();
    }

    /// Whether the page has edits whose message is not known yet.
    #[must_use]
    pub fn has_orphans(&self) -> bool {
        !self.orphans.is_empty()
    }

    /// Before this time nothing can have arrived that those edits are about; none if they do not tell
    /// when it was sent.
    #[must_use]
    pub fn orphans_since(&self) -> Option<Time> {
        let entries = self.entries.iter().filter(|entry| is_orphan(entry, &self.orphans));
        let sent = entries.map(|entry| Time::parse(entry.message.sent_at.as_deref()?));
        sent.collect::<Option<Vec<Time>>>()?.into_iter().min().map(|sent| sent - SKEW)
    }

    /// Takes note of an event that was received before this page: the message of an edit, or an
    /// earlier edit of it, is an entry where it stands, and the edit is none.
    pub fn earlier(&mut self, event: &Event) {
        if let Some(id) = own_id(event, &message(event)) {
            self.orphans.remove(&id);
        }
    }

    /// The same for an event that was received after this page: only the message itself counts, which
    /// its edit has overtaken.
    pub fn later(&mut self, event: &Event) {
        if message(event).kind != Kind::Edit {
            self.earlier(event);
        }
    }

    /// The entries in order of reading, and if some were left out for their size, behind which event
    /// to go on.
    #[must_use]
    pub fn finish(self) -> (Vec<Entry>, Option<Sequence>) {
        let next = self.entries.last().filter(|_| self.cut).map(|entry| entry.sequence);
        // An edit without an id is of nothing that could be elsewhere.
        let stays = |entry: &Entry| {
            entry.message.kind != Kind::Edit
                || entry.own_id().is_none()
                || is_orphan(entry, &self.orphans)
        };
        (self.entries.into_iter().filter(stays).collect(), next)
    }

    fn fit(&mut self) {
        while self.bytes > self.max_bytes && self.entries.len() > 1 {
            self.bytes -= self.entries.pop().map_or(0, |entry| entry.bytes);
            self.cut = true;
        }
    }
}

impl Entry {
    /// What this event alone tells.
    #[must_use]
    pub fn of(event: &Event) -> Entry {
        Entry::new(event, message(event))
    }

    fn new(event: &Event, message: Message) -> Entry {
        let happened = event.attributes.time.unwrap_or(event.received_at);
        let edit = (message.kind == Kind::Edit).then_some((happened, event.sequence));
        Entry {
            event_id: event.id,
            sequence: event.sequence,
            received_at: event.received_at,
            event_type: event.attributes.event_type.clone(),
            message,
            edited_at: edit.map(|(at, _)| at),
            deleted_at: None,
            edit,
            bytes: event.body.len(),
        }
    }

    fn own_id(&self) -> Option<String> {
        own(&self.event_type, &self.message)
    }
}

/// The view of an event, empty where none can be made.
fn message(event: &Event) -> Message {
    view(&event.attributes.event_type, &event.body).unwrap_or(Message::of_kind(Kind::Other))
}

fn own_id(event: &Event, message: &Message) -> Option<String> {
    own(&event.attributes.event_type, message)
}

/// The id of the message that an event is, or is an edit of. Reactions, receipts and callbacks carry
/// the id of another one, and those of guest messages are not the chat's own.
fn own(event_type: &str, message: &Message) -> Option<String> {
    let is_message =
        matches!(message.kind, Kind::Message | Kind::Edit | Kind::Membership | Kind::Conversation);
    let is_own = is_message && event_type != "telegram.guest_message";
    message.message_id.clone().filter(|_| is_own)
}

/// Whether an entry is an edit whose message is not known yet.
fn is_orphan(entry: &Entry, orphans: &HashSet<String>) -> bool {
    entry.message.kind == Kind::Edit && entry.own_id().is_some_and(|id| orphans.contains(&id))
}

#[cfg(test)]
mod tests;
