//! The nouns of reading by conversation.

use crate::event::{Event, Sequence};

/// Unfinished work of a conversation is counted to so many.
pub const UNFINISHED_COUNTED: i64 = 1000;

/// Which conversations to read.
#[derive(Clone, Debug, Default)]
pub struct ConversationQuery {
    /// Only those whose latest event is of this channel.
    pub channel: Option<String>,
    /// Only those whose latest event came by the receiver of this configured name.
    pub source: Option<String>,
    /// Only those whose latest event was received before this one.
    pub after: Option<Sequence>,
    /// At most so many.
    pub limit: usize,
    /// At most so many bytes of bodies, but always one conversation.
    pub max_bytes: usize,
    /// At most so many events are looked at, so that rare ones are not searched for without end.
    pub look: Sequence,
}

/// A conversation: the events of one subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversation {
    /// Its latest event.
    pub latest: Event,
    /// A few of those before it, the newest first: for what the latest does not say.
    pub before: Vec<Event>,
    /// Pieces of unfinished work with its events, of all consumers together, up to
    /// [`UNFINISHED_COUNTED`]. Of a consumer that keeps no order, only those of as many of its latest
    /// events are seen.
    pub unfinished: i64,
}

/// Some of the conversations that a query names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConversationPage {
    /// The latest first. May be fewer than asked for, or none, where there are more.
    pub conversations: Vec<Conversation>,
    /// Where to go on, if there may be more.
    pub next: Option<Sequence>,
}

/// Which events of one conversation to read, oldest first.
#[derive(Clone, Debug, Default)]
pub struct TypedQuery {
    /// The conversation.
    pub subject: String,
    /// Only of these types.
    pub types: Vec<String>,
    /// Only those received after this one.
    pub after: Sequence,
    /// At most so many.
    pub limit: usize,
    /// At most so many bytes of bodies, but always one event.
    pub max_bytes: usize,
}
