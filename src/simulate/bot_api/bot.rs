//! One bot as the server knows it.

use super::answer::{self, Reply};
use super::kind::Allowed;
use super::queue::Queue;
use super::rules::{Seconds, Timing};
use super::token::BotKey;

/// Number of a request, in order of arrival.
pub type RequestId = u64;

/// Whether the server serves the bot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Status {
    /// It does.
    #[default]
    Ok,
    /// The token was revoked.
    Unauthorized,
    /// `logOut` is under way.
    LoggingOut,
    /// `logOut` is done.
    LoggedOut,
    /// `close` was called; a control call opens the bot again.
    Closing,
    /// The server's filter leaves this bot out.
    Filtered,
}

impl Status {
    /// The answer to every method, unless the bot is served.
    pub fn rejection(self) -> Option<Reply> {
        match self {
            Self::Ok => None,
            Self::Unauthorized | Self::LoggingOut => Some(Reply::error(401, "Unauthorized")),
            Self::LoggedOut => Some(Reply::error(400, "Logged out")),
            Self::Closing => Some(Reply::error(500, "Internal Server Error: restart")),
            Self::Filtered => {
                Some(Reply::error(421, "Misdirected Request: unallowed token specified"))
            }
        }
    }
}

/// A held request.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) poll: Poll,
    pub(super) deadline: Seconds,
    /// When the first push since it was held came, and when it is answered for that.
    pub(super) wake: Option<(Seconds, Seconds)>,
}

impl Slot {
    pub(super) fn due(&self) -> Seconds {
        self.wake.map_or(self.deadline, |(_, at)| at.min(self.deadline))
    }

    /// Each push puts the answer off a little, so that a burst is answered at once.
    pub(super) fn wake(&mut self, now: Seconds, timing: &Timing) {
        let first = self.wake.map_or(now, |(first, _)| first);
        let at = (now + timing.wake_delay()).min(first + timing.wake_limit());
        self.wake = Some((first, at));
    }
}

/// A `getUpdates` request after parsing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Poll {
    pub(super) request: RequestId,
    pub(super) offset: i32,
    pub(super) limit: usize,
}

/// State of one bot.
#[derive(Debug)]
pub struct Bot {
    /// Which bot.
    pub key: BotKey,
    /// What `getMe` calls it.
    pub username: String,
    /// Whether it is served.
    pub status: Status,
    /// Its updates.
    pub queue: Queue,
    /// The kinds it is sent.
    pub allowed: Allowed,
    /// Empty if none is set.
    pub webhook_url: String,
    pub(super) slot: Option<Slot>,
    pub(super) previous_offset: i32,
    pub(super) previous_start: Seconds,
    pub(super) next_conflict_at: Seconds,
    pub(super) next_webhook_at: Seconds,
    pub(super) opened_at: Seconds,
    /// What the client has seen, for the lint and for judging a loss.
    pub(super) seen: Seen,
}

/// What the bot's client has been given.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The client has been started (again) and not had an answer since.
    pub(super) called: bool,
    /// The highest id delivered since the sequence began.
    pub(super) highest: Option<i32>,
    /// The highest id of the last batch delivered, whatever happened to the sequence since.
    pub(super) last_batch: Option<i32>,
    /// The last batch has been confirmed, and the client knows it.
    pub(super) settled: bool,
    /// The request that settles it once its answer has been written.
    pub(super) settling: Option<RequestId>,
}

impl Bot {
    pub(super) fn new(key: BotKey, now: Seconds) -> Self {
        Self {
            key,
            username: format!("fake_{}_bot", key.id),
            status: Status::Ok,
            queue: Queue::default(),
            allowed: Allowed::default(),
            webhook_url: String::new(),
            slot: None,
            previous_offset: -1,
            previous_start: -100.0,
            next_conflict_at: -100.0,
            next_webhook_at: -100.0,
            opened_at: now,
            seen: Seen::default(),
        }
    }

    /// Whether a request is held.
    pub fn is_held(&self) -> bool {
        self.slot.is_some()
    }

    /// When a 409 that arises now is answered: at once, or late if it is not the first lately.
    pub(super) fn conflict_at(&mut self, now: Seconds, timing: &Timing) -> Seconds {
        if now < self.next_conflict_at {
            return now + timing.conflict_delay;
        }
        self.next_conflict_at = now + timing.conflict_window;
        now
    }

    /// The throttle on a repeated offset; `timeout` and `limit` as they are then.
    pub(super) fn throttle(
        &mut self,
        offset: i32,
        timeout: Seconds,
        limit: usize,
        now: Seconds,
        timing: &Timing,
    ) -> (Seconds, usize) {
        let repeated_after = now - self.previous_start;
        let repeated = offset == self.previous_offset;
        self.previous_offset = offset;
        self.previous_start = now;
        let raised = repeated && repeated_after < timing.same_offset_window;
        let single = repeated && repeated_after < timing.limit1_window;
        (
            if raised { timeout.max(timing.same_offset_min_timeout) } else { timeout },
            if single { 1 } else { limit },
        )
    }

    /// The result of `getMe`.
    pub(super) fn profile(&self) -> Reply {
        let profile = serde_json::json!({
            "id": self.key.id, "is_bot": true, "first_name": "Fake", "username": self.username,
            "can_join_groups": true, "can_read_all_group_messages": false,
            "supports_inline_queries": true, "can_connect_to_business": true,
            "has_main_web_app": false,
        });
        Reply::ok(&profile.to_string())
    }

    /// The result of `getWebhookInfo`.
    pub(super) fn webhook_info(&self) -> Reply {
        let mut info = serde_json::json!({
            "url": self.webhook_url, "has_custom_certificate": false,
            "pending_update_count": self.queue.len(),
        });
        if !self.webhook_url.is_empty() {
            info["max_connections"] = 40.into();
        }
        if let Some(listed) = self.allowed.listed() {
            info["allowed_updates"] = listed.into();
        }
        Reply::ok(&info.to_string())
    }

    pub(super) fn webhook_conflict() -> Reply {
        Reply::error(409, answer::WEBHOOK_ACTIVE)
    }
}
