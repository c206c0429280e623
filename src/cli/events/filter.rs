//! Which events to show.

use clap::Args;

use crate::cli::time::When;
use crate::clock::Clock;
use crate::event::{Event, EventQuery};
use crate::replay::Selection;

/// The filters that the commands share with `GET /v1/events`. All that are given must hold.
#[derive(Debug, Args)]
pub(in crate::cli) struct Filter {
    /// Only of this channel, such as telegram or whatsapp.
    #[arg(long, value_name = "NAME")]
    channel: Option<String>,
    /// Only by receivers of this configured name.
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// Only of this type, such as telegram.message.
    #[arg(long = "type", value_name = "TYPE")]
    event_type: Option<String>,
    /// Only of this conversation: the subject of an event, as `events show` prints it.
    #[arg(long, value_name = "SUBJECT")]
    conversation: Option<String>,
    /// Only received at this time or later: RFC 3339, or how long ago, such as 2h.
    #[arg(long, value_name = "TIME")]
    since: Option<When>,
    /// Only received before this time: RFC 3339, or how long ago, such as 2h.
    #[arg(long, value_name = "TIME")]
    until: Option<When>,
}

impl Filter {
    /// The query for these events, newest first, durations counted back from now.
    pub(super) fn query(self) -> EventQuery {
        let clock = Clock::wall();
        EventQuery {
            channel: self.channel,
            source: self.source,
            event_type: self.event_type,
            conversation: self.conversation,
            since: self.since.map(|when| when.time(&clock)),
            until: self.until.map(|when| when.time(&clock)),
            limit: super::PAGE,
            max_bytes: super::PAGE_BYTES,
            ..EventQuery::default()
        }
    }

    /// The finished work with these events, durations counted back from now.
    pub(in crate::cli) fn selection(self) -> Selection {
        let EventQuery { channel, source, event_type, conversation, since, until, .. } =
            self.query();
        let (dead, ids) = (false, None);
        Selection { dead, ids, channel, source, event_type, conversation, since, until }
    }
}

/// Whether the store would find `event` for the filters of `query`.
pub(super) fn matches(query: &EventQuery, event: &Event) -> bool {
    let is = |wanted: &Option<String>, value: &str| {
        wanted.as_deref().is_none_or(|wanted| wanted == value)
    };
    let subject = event.attributes.subject.as_deref();
    is(&query.channel, &event.attributes.channel)
        && is(&query.source, &event.source)
        && is(&query.event_type, &event.attributes.event_type)
        && query.conversation.as_deref().is_none_or(|wanted| subject == Some(wanted))
        && query.since.is_none_or(|since| event.received_at >= since)
        && query.until.is_none_or(|until| event.received_at < until)
}
