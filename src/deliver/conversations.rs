//! Conversations, the latest first, as a list of chats shows them.

use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};

use super::api::{ANSWER_BYTES, Api, answer};
use super::events::{after, limit};
use super::messages::Shown;
use crate::conversation::{Conversation, ConversationQuery};
use crate::event::Sequence;
use crate::http::bearer::Principal;
use crate::http::json::Query;
use crate::http::problem::Refusal;
use crate::view::timeline::Entry;
use crate::view::{self, Kind};

/// Events that one request looks at: well below a second's work.
const LOOK: Sequence = 200_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Params {
    channel: Option<String>,
    source: Option<String>,
    limit: Option<usize>,
    after: Option<String>,
}

#[derive(Debug, Serialize)]
struct Listed<'a> {
    conversations: Vec<Chat<'a>>,
    next: Option<String>,
}

#[derive(Debug, Serialize)]
struct Chat<'a> {
    subject: Option<&'a str>,
    channel: &'a str,
    account: &'a str,
    source: &'a str,
    conversation: Option<view::Conversation>,
    last: Shown,
    last_received_at: crate::clock::Time,
    unfinished: i64,
}

pub(super) async fn list(
    State(api): State<Api>,
    principal: Principal,
    Query(params): Query<Params>,
) -> Result<Response, Refusal> {
    principal.require_operator()?;
    let query = ConversationQuery {
        channel: params.channel,
        source: params.source,
        after: after(params.after)?,
        limit: limit(params.limit)?,
        max_bytes: ANSWER_BYTES / 3,
        look: LOOK,
    };
    let page = api.inbox.conversations(query).await?;
    let bytes = page.conversations.iter().flat_map(events).map(|event| event.body.len()).sum();
    answer(bytes, move || {
        let next = page.next.map(|next| next.to_string());
        let conversations = page.conversations.iter().map(chat).collect();
        serde_json::to_vec(&Listed { conversations, next })
    })
    .await
}

/// The newest first.
fn events(conversation: &Conversation) -> impl Iterator<Item = &crate::event::Event> {
    std::iter::once(&conversation.latest).chain(&conversation.before)
}

/// What was last said stands for the conversation, where something was lately; else what last
/// happened does.
fn chat(conversation: &Conversation) -> Chat<'_> {
    let latest = &conversation.latest;
    let mut recent: Vec<Entry> = events(conversation).map(Entry::of).collect();
    let names = recent.iter().filter_map(|entry| entry.message.conversation.as_ref());
    let titled = names.clone().find(|name| name.title.is_some());
    let name = titled.or_else(|| names.clone().next()).cloned();
    let is_said = |entry: &Entry| {
        let message = &entry.message;
        matches!(message.kind, Kind::Message | Kind::Edit)
            && (message.text.is_some() || !message.attachments.is_empty())
    };
    let last = recent.iter().position(is_said).unwrap_or(0);
    Chat {
        subject: latest.attributes.subject.as_deref(),
        channel: &latest.attributes.channel,
        account: &latest.attributes.account,
        source: &latest.source,
        conversation: name,
        last: recent.swap_remove(last).into(),
        last_received_at: latest.received_at,
        unfinished: conversation.unfinished,
    }
}
