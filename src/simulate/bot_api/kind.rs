//! The kinds of update, how long each lives, and the `allowed_updates` setting.

use super::rules::Seconds;

/// The 27 kinds of Bot API 10.3.
pub const KINDS: [&str; 27] = [
    "message",
    "edited_message",
    "channel_post",
    "edited_channel_post",
    "business_connection",
    "business_message",
    "edited_business_message",
    "deleted_business_messages",
    "guest_message",
    "message_reaction",
    "message_reaction_count",
    "inline_query",
    "chosen_inline_result",
    "callback_query",
    "shipping_query",
    "pre_checkout_query",
    "purchased_paid_media",
    "poll",
    "poll_answer",
    "my_chat_member",
    "chat_member",
    "chat_join_request",
    "chat_boost",
    "removed_chat_boost",
    "managed_bot",
    "subscription",
    "stopped_message_generation",
];

/// Kinds that only Telegram's own support uses; allowed by default and never shown.
const INTERNAL_KINDS: [&str; 2] = ["custom_event", "custom_query"];

/// Kinds that come only when asked for.
const ON_REQUEST: [&str; 3] = ["chat_member", "message_reaction", "message_reaction_count"];

/// How long an update of `kind` waits to be fetched. The two kinds newer than the source that was
/// read, and unknown ones, are taken to live as long as a message.
pub fn lifetime(kind: &str) -> Seconds {
    match kind {
        "inline_query" => 30.0,
        "callback_query" | "shipping_query" | "pre_checkout_query" => 150.0,
        "chosen_inline_result" | "custom_event" => 600.0,
        _ => 86_400.0,
    }
}

/// The kinds a bot is sent: a bit for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed(u32);

impl Default for Allowed {
    /// Everything except `chat_member`, `message_reaction` and `message_reaction_count`.
    fn default() -> Self {
        let all = (1 << (KINDS.len() + INTERNAL_KINDS.len())) - 1;
        Self(ON_REQUEST.iter().filter_map(|kind| bit(kind)).fold(all, |mask, bit| mask & !bit))
    }
}

impl Allowed {
    /// What an `allowed_updates` argument says; `None` leaves the earlier setting as it is, which
    /// is also what anything that is not a JSON array of strings does.
    pub fn parse(argument: &str) -> Option<Self> {
        let names: Vec<String> = serde_json::from_str(argument).ok()?;
        let bits = names.iter().filter_map(|name| bit(&name.to_ascii_lowercase()));
        let mask = bits.fold(0, |mask, bit| mask | bit);
        Some(if mask == 0 { Self::default() } else { Self(mask) })
    }

    /// Whether an update of `kind` is queued. An unknown kind is one that a newer server would
    /// send, so it passes.
    pub fn admits(self, kind: &str) -> bool {
        bit(kind).is_none_or(|bit| self.0 & bit != 0)
    }

    /// The names as `getWebhookInfo` shows them; `None` for the default, which it leaves out.
    pub fn listed(self) -> Option<Vec<&'static str>> {
        (self != Self::default())
            .then(|| KINDS.into_iter().filter(|kind| self.admits(kind)).collect())
    }
}

fn bit(kind: &str) -> Option<u32> {
    KINDS.iter().chain(&INTERNAL_KINDS).position(|known| *known == kind).map(|at| 1 << at)
}
