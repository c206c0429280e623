//! Events as rows of a table or lines of JSON, and `inboxd events list`.

use anyhow::Context as _;

use crate::cli::output::print;
use crate::cli::table::{Column, Table};
use crate::cli::text::json_line;
use crate::cli::time::short;
use crate::deliver::item;
use crate::event::{Event, EventQuery};
use crate::store::Store;
use crate::view::{Kind, Message, Sender, view};

/// How events are printed as they come.
#[derive(Debug)]
pub(super) struct Printer {
    /// None prints JSON.
    table: Option<Table<6>>,
}

impl Printer {
    pub(super) fn new(json: bool) -> Printer {
        let columns = [
            Column::number("NO"),
            Column::text("RECEIVED (UTC)", 14),
            Column::text("CHANNEL", 9),
            Column::text("SOURCE", 10),
            Column::text("SENDER", 14),
            Column::text("TEXT OR TYPE", usize::MAX),
        ];
        Printer { table: (!json).then(|| Table::new(columns)) }
    }

    pub(super) async fn print(&mut self, events: &[Event]) -> anyhow::Result<()> {
        if let Some(table) = &mut self.table {
            let rows: Vec<_> = events.iter().map(row).collect();
            return print(table.rows(&rows)).await;
        }
        for event in events {
            let json = serde_json::to_string(&item(event));
            let json = json.context("the event cannot be written as JSON")?;
            print(json_line(&json) + "\n").await?;
        }
        Ok(())
    }
}

/// Prints at most `limit` events, a page at a time.
pub(super) async fn list(
    store: &dyn Store,
    mut query: EventQuery,
    limit: usize,
    json: bool,
) -> anyhow::Result<()> {
    let mut printer = Printer::new(json);
    let mut left = limit;
    loop {
        query.limit = left.min(super::PAGE);
        let page = store.events(query.clone()).await?;
        printer.print(&page.events).await?;
        left -= page.events.len().min(left);
        query.after = page.events.last().map(|event| event.sequence);
        if !page.more || left == 0 || query.after.is_none() {
            return Ok(());
        }
    }
}

fn row(event: &Event) -> [String; 6] {
    let attributes = &event.attributes;
    let message = view(&attributes.event_type, &event.body);
    let sender = message.as_ref().and_then(|message| message.sender.as_ref());
    let text = message.as_ref().map(summary).filter(|text| !text.is_empty());
    [
        event.sequence.to_string(),
        short(event.received_at),
        attributes.channel.clone(),
        event.source.clone(),
        sender.map_or_else(|| "-".to_owned(), name),
        text.unwrap_or_else(|| attributes.event_type.clone()),
    ]
}

/// What a sender is called by.
fn name(sender: &Sender) -> String {
    let username = || sender.username.as_ref().map(|name| format!("@{name}"));
    sender.name.clone().or_else(username).unwrap_or_else(|| sender.id.clone())
}

/// What a message says, with what comes with it; of what is no new message, which kind it is. Empty
/// if it says nothing.
fn summary(message: &Message) -> String {
    let files = message.attachments.iter().map(|file| format!("[{}]", file.kind));
    let mut parts: Vec<String> = files.chain(message.text.clone()).collect();
    if !parts.is_empty() && message.kind != Kind::Message {
        parts.insert(0, format!("({})", kind(message.kind)));
    }
    parts.join(" ")
}

/// The word for a kind, as JSON has it.
pub(super) fn kind(kind: Kind) -> String {
    let word = serde_json::to_value(kind).unwrap_or_default();
    word.as_str().unwrap_or_default().to_owned()
}
