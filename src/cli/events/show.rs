//! `inboxd events show`: all that is known about one event.

use crate::cli::text::{json_line, line, lines};
use crate::clock::Time;
use crate::deliver::detail;
use crate::event::{Attempt, Event, EventDetail, WorkState};
use crate::view::{Message, Sender, view};

/// Columns before a value.
const INDENT: usize = 14;

/// The event as JSON on one line, or as a page for a person.
pub(super) fn shown(event: &EventDetail, json: bool) -> anyhow::Result<String> {
    if json {
        return Ok(json_line(&serde_json::to_string(&detail(event))?) + "\n");
    }
    Ok(page(event))
}

fn page(detail: &EventDetail) -> String {
    let mut page = Page::default();
    page.event(detail);
    for variant in &detail.variants {
        let received = receipts(variant.received_at, variant.received_at, variant.receipts);
        page.row("other body", &format!("{} bytes, {received}", variant.body.len()));
    }
    for work in &detail.work {
        page.row("work", &state(work));
        page.attempts(&work.attempts);
    }
    page.body(&detail.event);
    page.0
}

fn state(work: &WorkState) -> String {
    let due = work.due_at.map_or_else(String::new, |due| format!(", due {due}"));
    let since = work.finished_at.map_or_else(String::new, |since| format!(" since {since}"));
    format!("{}: {}{since}, attempt {}{due}", work.consumer, work.state, work.attempt)
}

fn rows_of_event(detail: &EventDetail, page: &mut Page) {
    let (event, attributes) = (&detail.event, &detail.event.attributes);
    page.row("id", &event.id.to_string());
    page.row("number", &event.sequence.to_string());
    page.row("type", &attributes.event_type);
    page.row("channel", &attributes.channel);
    page.row("source", &event.source);
    page.row("account", &attributes.account);
    page.row("external id", &attributes.external_id);
    page.maybe("conversation", attributes.subject.as_deref());
    page.maybe("happened", attributes.time.map(|time| time.to_string()).as_deref());
    page.row("received", &receipts(event.received_at, detail.last_received_at, detail.receipts));
    let secret = detail.first_secret.map(|at| format!("number {} of the configured", at + 1));
    page.maybe("secret", secret.as_deref());
    let flags = detail.flags.names().join(", ");
    page.maybe("flags", (!flags.is_empty()).then_some(&*flags));
    if let Some(message) = view(&attributes.event_type, &event.body) {
        rows_of_message(&message, page);
    }
}

fn rows_of_message(message: &Message, page: &mut Page) {
    page.row("kind", &super::list::kind(message.kind));
    page.maybe("sender", message.sender.as_ref().map(sender).as_deref());
    page.maybe("message id", message.message_id.as_deref());
    page.maybe("reply to", message.reply_to.as_deref());
    for file in &message.attachments {
        let size = file.size.map(|size| format!("{size} bytes"));
        let parts = [Some(file.kind.clone()), file.name.clone(), file.mime.clone(), size];
        // Not where it is: the address is a secret as long as it is good.
        page.row("attachment", &parts.into_iter().flatten().collect::<Vec<_>>().join(", "));
    }
    page.maybe("text", message.text.as_deref());
}

fn sender(sender: &Sender) -> String {
    let username = sender.username.as_ref().map(|name| format!("@{name}"));
    let id = Some(format!("({})", sender.id));
    let parts = [sender.name.clone(), username, id];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn receipts(first: Time, last: Time, count: i64) -> String {
    match count {
        1 => first.to_string(),
        count if last == first => format!("{first}, {count} times"),
        count => format!("{first}, {count} times, last {last}"),
    }
}

/// Names and values, one a line.
#[derive(Default)]
pub(in crate::cli) struct Page(pub(in crate::cli) String);

impl Page {
    /// What is known of the event itself.
    pub(in crate::cli) fn event(&mut self, detail: &EventDetail) {
        rows_of_event(detail, self);
    }

    /// Failed attempts, one a row.
    pub(in crate::cli) fn attempts(&mut self, attempts: &[Attempt]) {
        for Attempt { attempt, at, error } in attempts {
            self.row("failed", &format!("attempt {attempt} at {at}: {error}"));
        }
    }

    /// How to come by the body.
    pub(in crate::cli) fn body(&mut self, event: &Event) {
        let size = event.body.len();
        self.row("body", &format!("{size} bytes: inboxd events raw {}", event.sequence));
    }

    pub(in crate::cli) fn row(&mut self, name: &str, value: &str) {
        let row = format!("{:INDENT$}{}", line(name), lines(value, INDENT));
        self.0.push_str(row.trim_end());
        self.0.push('\n');
    }

    fn maybe(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.row(name, value);
        }
    }
}
