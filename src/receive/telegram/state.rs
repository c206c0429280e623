//! What a poller says of itself: a word, and a sentence with the remedy. Kept in the store when it
//! changes, and logged when it turns bad and when it is well again.

use std::sync::{Mutex, PoisonError};

use super::answer::Trouble;
use crate::clock::Clock;
use crate::event::SourceId;
use crate::inbox::{Inbox, StoreError};
use crate::source::SourceState;
use crate::telemetry::Lasting;

/// A state in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    /// One word, such as `ok` or `unauthorized`.
    pub name: &'static str,
    /// What is the matter and what to do.
    pub detail: String,
}

/// Words for trouble with the bot that the configuration calls `name`.
#[must_use]
pub fn words(trouble: &Trouble, name: &str) -> Words {
    let (word, detail) = match trouble {
        Trouble::Network(what) => (
            "network",
            format!("Telegram cannot be reached: {what}; check the network and api_url"),
        ),
        Trouble::Foreign(status) => (
            "network",
            format!(
                "something that is not the Bot API answers for it, with HTTP {status}: check for a \
                 proxy or captive portal on the way, and api_url"
            ),
        ),
        Trouble::Odd(what) => (
            "odd_answer",
            format!("the server's answer is not understood ({what}); it is asked again"),
        ),
        Trouble::Server(status) => (
            "server",
            format!("the Bot API server is failing with {status}; it is asked again until it is well"),
        ),
        Trouble::TooMany(wait) => (
            "throttled",
            match wait {
                Some(wait) => format!("the server asks to wait {} s, which is done", wait.as_secs()),
                None => "the server asks to wait, which is done".to_owned(),
            },
        ),
        Trouble::OtherPoller => (
            "conflict",
            format!(
                "another process is consuming this bot: stop it, or revoke the token with \
                 BotFather; what it takes is lost to this inbox (`inboxd gaps list --source {name}`)"
            ),
        ),
        Trouble::Webhook => (
            "webhook",
            format!(
                "a webhook is set, so polls are refused: `inboxd telegram delete-webhook {name}` \
                 removes it and keeps what waits"
            ),
        ),
        Trouble::Unauthorized => (
            "unauthorized",
            "the token is not accepted: get the valid one from BotFather and set it, then SIGHUP or \
             restart"
                .to_owned(),
        ),
        Trouble::Forbidden => (
            "forbidden",
            "the server forbids this bot: look at what BotFather says of it".to_owned(),
        ),
        Trouble::NotFound => (
            "unauthorized",
            "the server knows no bot with this token: compare it with BotFather's".to_owned(),
        ),
        Trouble::Misdirected => (
            "misdirected",
            "this Bot API server does not serve this bot: correct api_url".to_owned(),
        ),
        Trouble::LoggedOut => (
            "logged_out",
            "the bot is logged out of this server, for at least 10 minutes after logOut: wait, or \
             use the server that it was moved to"
                .to_owned(),
        ),
        Trouble::Refused(code) => (
            "refused",
            format!("the server refuses polls with error {code}; it is asked again"),
        ),
    };
    Words { name: word, detail }
}

/// Words for a store that fails.
pub(super) fn of_store(error: &StoreError) -> Words {
    let detail = format!("updates cannot be committed and stay at Telegram: {error}");
    Words { name: "store", detail }
}

/// How many times in a row a trouble must come before it is worth a line in the log: some pass by
/// themselves all the time.
#[must_use]
pub fn worth_a_line(trouble: &Trouble) -> u32 {
    match trouble {
        Trouble::Unauthorized
        | Trouble::Forbidden
        | Trouble::NotFound
        | Trouble::Misdirected
        | Trouble::LoggedOut => 3,
        Trouble::Network(_) | Trouble::Foreign(_) | Trouble::Server(_) => 2,
        _ => 1,
    }
}

/// The state of one bot, as it was told last.
#[derive(Debug)]
pub(super) struct State {
    name: String,
    source: SourceId,
    clock: Clock,
    /// Word and sentence in the store, as far as we know.
    told: Mutex<Option<(String, String)>>,
    ill: Lasting,
    /// The troubles that the log has named since all was well.
    logged: Mutex<Vec<&'static str>>,
}

impl State {
    pub(super) fn new(name: &str, source: SourceId, clock: Clock) -> State {
        let (told, ill, logged) = (Mutex::default(), Lasting::new(), Mutex::default());
        State { name: name.to_owned(), source, clock, told, ill, logged }
    }

    /// Takes note of what the store says of the bot, because somebody else may have told it since.
    pub(super) async fn recall(&self, inbox: &Inbox) {
        let sources = inbox.sources().await.unwrap_or_default();
        let told = sources.into_iter().find(|source| source.id == self.source);
        let told = told.map(|source| (source.state.name, source.state.detail));
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = told;
    }

    /// All is well.
    pub(super) async fn ok(&self, inbox: &Inbox) {
        self.ill.end(format_args!("bot {}: updates arrive again", self.name));
        self.logged.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let detail = "updates are received".to_owned();
        self.tell(inbox, Words { name: "ok", detail }).await;
    }

    /// Something is the matter; logged if it is `worth_a_line` now.
    pub(super) async fn bad(&self, inbox: &Inbox, words: Words, worth_a_line: bool) {
        self.log(&words, worth_a_line);
        self.tell(inbox, words).await;
    }

    /// Logs what is the matter if it is `worth_a_line` now: each trouble once until all is well,
    /// because one can follow another.
    pub(super) fn log(&self, words: &Words, worth_a_line: bool) {
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if !worth_a_line || logged.contains(&words.name) {
            return;
        }
        logged.push(words.name);
        let message = format!("bot {}: {}", self.name, words.detail);
        if self.ill.is_lasting() {
            tracing::warn!("{message}");
        } else {
            self.ill.begin(message);
        }
    }

    /// Neither well nor bad.
    pub(super) async fn tell(&self, inbox: &Inbox, words: Words) {
        let words = (words.name.to_owned(), words.detail);
        let before =
            self.told.lock().unwrap_or_else(PoisonError::into_inner).replace(words.clone());
        if before.as_ref() == Some(&words) {
            return;
        }
        let state = SourceState { name: words.0, detail: words.1, since: Some(self.clock.now()) };
        if let Err(error) = inbox.tell_source(self.source, state).await {
            // To be told again with the next word.
            self.told.lock().unwrap_or_else(PoisonError::into_inner).take();
            tracing::debug!("the state of bot {} was not kept: {error}", self.name);
        }
    }
}
