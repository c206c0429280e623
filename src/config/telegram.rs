//! `[[telegram]]`: the bots whose updates are fetched.

use std::time::Duration;

use url::Url;

use super::names::{Taken, nearest, quote};
use super::node::{Node, Value};
use super::read::Table;
use super::secret::{self, Secret};

/// Every kind of update that Bot API 10.3 (2026-08-24) documents, in its order.
pub const UPDATE_KINDS: [&str; 27] = [
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

/// `[[telegram]]`: one bot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Telegram {
    /// The source's name, unique among bots.
    pub name: String,
    /// The token that BotFather gave, `<digits>:<letters, digits, _ and ->`.
    pub token: Secret,
    /// The Bot API server, http or https, without credentials, query and fragment.
    /// `https://api.telegram.org`.
    pub api_url: Url,
    /// How long the server holds a poll open: whole seconds, 1 to 50 since the server cuts longer
    /// ones to 50. 50 s.
    pub poll_timeout: Duration,
    /// The kinds of update to ask for. All.
    pub updates: Updates,
}

/// Which kinds of update a bot asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Updates {
    /// Every one of [`UPDATE_KINDS`].
    All,
    /// The server's own default: all kinds, later ones included, but `chat_member`,
    /// `message_reaction` and `message_reaction_count`.
    Default,
    /// These, at least one. A kind that is not in [`UPDATE_KINDS`] is possible, because Telegram
    /// adds some between releases of inboxd.
    Kinds(Vec<String>),
}

impl Updates {
    /// The value of `allowed_updates`. Empty means the default to the server, so it must be sent
    /// even then: left out, the previous setting would stay.
    pub fn allowed(&self) -> Vec<&str> {
        match self {
            Updates::All => UPDATE_KINDS.to_vec(),
            Updates::Default => Vec::new(),
            Updates::Kinds(kinds) => kinds.iter().map(String::as_str).collect(),
        }
    }
}

impl Telegram {
    /// A bot with every default.
    pub fn new(name: impl Into<String>, token: Secret) -> Telegram {
        Telegram {
            name: name.into(),
            token,
            api_url: official(),
            poll_timeout: Duration::from_secs(50),
            updates: Updates::All,
        }
    }
}

fn official() -> Url {
    #[allow(clippy::expect_used, reason = "a constant, which every test of a bot parses")]
    Url::parse("https://api.telegram.org").expect("a URL")
}

pub(super) fn read(tables: Vec<Table<'_>>) -> Vec<Telegram> {
    let mut names = Taken::default();
    let mut tokens: Vec<(String, Secret)> = Vec::new();
    let mut bots = Vec::new();
    for mut table in tables {
        let name = names.read(&mut table);
        let remedy = "write token = { env = \"NAME\" }";
        let token = table.must("token", remedy, |node| {
            let token = check_token(secret::read_credential(node)?)?;
            if let Some(holder) = secret::holder(&tokens, &token) {
                return Err(format!(
                    "the same token as {holder}; a bot has one table, so take one of them out"
                ));
            }
            Ok(token)
        });
        let api_url = table.or("api_url", official(), api_url);
        let poll_timeout = table.or("poll_timeout", Duration::from_secs(50), poll_timeout);
        let updates = table.or("updates", Updates::All, updates);
        if let Some(token) = &token {
            tokens.push((table.path.clone(), token.clone()));
        }
        if let (Some(name), Some(token)) = (name, token) {
            bots.push(Telegram { name, token, api_url, poll_timeout, updates });
        }
        table.finish();
    }
    bots
}

/// Passes a token of the form that BotFather gives, because anything else would make another URL
/// of the request that holds it.
pub(super) fn check_token(token: Secret) -> Result<Secret, String> {
    let good = token.expose().split_once(':').is_some_and(|(id, key)| {
        let letter = |c: u8| c.is_ascii_alphanumeric() || c == b'_' || c == b'-';
        !id.is_empty()
            && id.bytes().all(|c| c.is_ascii_digit())
            && !key.is_empty()
            && key.bytes().all(letter)
    });
    if good {
        return Ok(token);
    }
    Err("this is not the token of a bot; give the whole token as BotFather wrote it, like \
         123456789:AbC-dEf_123"
        .to_owned())
}

/// Nothing of a refused URL is repeated, because it may hold credentials or a token.
fn api_url(node: &Node<'_>) -> Result<Url, String> {
    const LIKE: &str = "\"https://api.telegram.org\"";
    let url = Url::parse(node.text(LIKE)?)
        .map_err(|reason| format!("this is not a URL ({reason}); write it like {LIKE}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("this is not an http or https URL; write it like {LIKE}"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(format!("this URL holds credentials; take them out and write it like {LIKE}"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(format!("this URL has a query or a fragment; write it like {LIKE}"));
    }
    Ok(url)
}

fn poll_timeout(node: &Node<'_>) -> Result<Duration, String> {
    let timeout = node.duration_within(Duration::from_secs(1), Duration::from_secs(50))?;
    if timeout.subsec_nanos() != 0 {
        return Err("Telegram takes whole seconds only; write it like \"50s\"".to_owned());
    }
    Ok(timeout)
}

fn updates(node: &Node<'_>) -> Result<Updates, String> {
    const LIKE: &str = "\"all\", \"default\" or [\"message\", \"callback_query\"]";
    if let Value::Toml(toml) = node.value
        && toml.is_array()
    {
        let kinds = node.texts(LIKE)?;
        if kinds.is_empty() {
            return Err(format!("the list is empty; write {LIKE}"));
        }
        for kind in &kinds {
            check_kind(kind)?;
        }
        return Ok(Updates::Kinds(kinds));
    }
    match node.text(LIKE)? {
        "all" => Ok(Updates::All),
        "default" => Ok(Updates::Default),
        text => Err(format!("{} is not known here; write {LIKE}", quote(text))),
    }
}

fn check_kind(kind: &str) -> Result<(), String> {
    if UPDATE_KINDS.contains(&kind) {
        return Ok(());
    }
    if matches!(kind, "all" | "default") {
        return Err(format!("{kind:?} stands alone; write updates = {kind:?}"));
    }
    if !kind.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_') {
        return Err(format!("{} is not a kind of update; write it like \"message\"", quote(kind)));
    }
    match nearest(kind, &UPDATE_KINDS) {
        Some(meant) => {
            Err(format!("{} is not a kind of update; did you mean {meant:?}?", quote(kind)))
        }
        None => Ok(()),
    }
}
