//! The nouns of a replay: which finished work is to be due again, and how far a replay has come.

use uuid::Uuid;

use crate::clock::Time;
use crate::event::Sequence;

/// Which finished work of a consumer is meant: done or dead, of events for which all that is given
/// holds. The default is all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Only dead work.
    pub dead: bool,
    /// Only of these events; ids that name none, or no work of the consumer, count for nothing.
    pub ids: Option<Vec<Uuid>>,
    /// Only this channel.
    pub channel: Option<String>,
    /// Only receivers of this configured name.
    pub source: Option<String>,
    /// Only this type.
    pub event_type: Option<String>,
    /// Only this subject.
    pub conversation: Option<String>,
    /// Received at or after.
    pub since: Option<Time>,
    /// Received before.
    pub until: Option<Time>,
}

/// How far a replay has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Everything up to this event is behind it.
    pub after: Sequence,
    /// The newest event when it began: later ones are none of its business.
    pub last: Sequence,
    /// When it began, by the store's time: what has been finished since stays so.
    pub began: Time,
}

/// What one step of a replay did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// Pieces of work that are due again.
    pub count: usize,
    /// Where to go on; none at the end.
    pub next: Option<Place>,
}
