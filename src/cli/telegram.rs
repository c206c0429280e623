//! `inboxd telegram`: how a bot is, here and at Telegram, and the one command that may remove a
//! webhook. None of these calls `getUpdates`, so none confirms an update.

use anyhow::Context as _;
use clap::Subcommand;
use serde::Serialize;

use super::context::Context;
use super::output::print;
use super::text::line;
use crate::config::{Config, Telegram as Bot};
use crate::operate::{Shown, shown};
use crate::receive::telegram::answer::Trouble;
use crate::receive::telegram::bot_api::{BotApi, Me, WebhookInfo};
use crate::receive::telegram::{Pace, state};
use crate::source::{Source, SourceKind};
use crate::store::StoreError;

#[derive(Debug, Subcommand)]
pub(super) enum Telegram {
    /// See how the bots are, by the store's word and by Telegram's.
    ///
    /// Exits with 1 if Telegram does not know a bot or refuses its polls.
    #[command(after_help = "Example: inboxd telegram status support")]
    Status {
        /// Only the bot of this name.
        name: Option<String>,
        /// Print them as one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Remove a bot's webhook, so that it can be polled; what waits at Telegram is kept.
    #[command(after_help = "Example: inboxd telegram delete-webhook support")]
    DeleteWebhook {
        /// The bot's configured name.
        name: String,
    },
}

/// Runs one of these commands.
pub(super) async fn telegram(command: Telegram, context: &Context) -> anyhow::Result<()> {
    let config = context.config()?;
    match command {
        Telegram::Status { name, json } => {
            let bots = match &name {
                Some(name) => std::slice::from_ref(named(&config, name)?),
                None => &config.telegram[..],
            };
            anyhow::ensure!(
                !bots.is_empty(),
                "no bot is configured; set INBOXD_TELEGRAM_TOKEN or write a [[telegram]] table"
            );
            status(bots, &stored(&config, context).await?, json).await
        }
        Telegram::DeleteWebhook { name } => delete_webhook(named(&config, &name)?).await,
    }
}

fn named<'a>(config: &'a Config, name: &str) -> anyhow::Result<&'a Bot> {
    let names = || config.telegram.iter().map(|bot| bot.name.as_str()).collect::<Vec<_>>();
    let bot = config.telegram.iter().find(|bot| bot.name == name);
    bot.with_context(|| match names().as_slice() {
        [] => format!("no bot is configured, so none is named {name:?}"),
        names => format!("no bot is named {name:?}; there is {}", names.join(", ")),
    })
}

/// The bots as the store knows them; none if there is no store yet.
async fn stored(config: &Config, context: &Context) -> anyhow::Result<Vec<Source>> {
    let sources = context.with_store(config, async |store| Ok(store.sources().await?)).await;
    match sources {
        Err(error) if matches!(error.downcast_ref(), Some(StoreError::Unprepared(_))) => {
            Ok(Vec::new())
        }
        sources => sources,
    }
}

/// How a bot is.
#[derive(Debug, Serialize)]
pub(super) struct Status {
    name: String,
    /// What Telegram says, if it does.
    telegram: Option<AtTelegram>,
    /// What is the matter, if Telegram does not say.
    trouble: Option<String>,
    /// What the store knows.
    poller: Option<Shown>,
}

#[derive(Debug, Serialize)]
struct AtTelegram {
    id: i64,
    username: Option<String>,
    pending: i64,
    webhook_host: Option<String>,
    allowed_updates: Option<Vec<String>>,
}

impl Status {
    /// What keeps this bot from being polled, for `check`.
    pub(super) fn fault(&self) -> Option<String> {
        if let Some(trouble) = &self.trouble {
            return Some(trouble.clone());
        }
        let told = self.telegram.as_ref()?;
        let account = self.poller.as_ref().and_then(|poller| poller.account.as_deref());
        if let Some(host) = &told.webhook_host {
            return Some(format!(
                "a webhook is set (to {host}), so polls are refused: `inboxd telegram \
                 delete-webhook {}` removes it and keeps what waits",
                self.name
            ));
        }
        match account {
            Some(account) if account != told.id.to_string() => Some(format!(
                "the store knows \"{0}\" as bot {account}, and this token belongs to bot {1}: give \
                 it another name, or `inboxd sources forget telegram/{0}`",
                self.name, told.id
            )),
            _ => None,
        }
    }

    /// One line for `check`.
    pub(super) fn well(&self) -> String {
        let told = self.telegram.as_ref().map(|told| {
            let name = told.username.as_deref().map(|name| format!(" @{name}")).unwrap_or_default();
            format!("{} is bot {}{name}; updates that wait: {}", self.name, told.id, told.pending)
        });
        line(&told.unwrap_or_default())
    }
}

/// Asks Telegram about one bot.
pub(super) async fn ask(bot: &Bot, sources: &[Source]) -> anyhow::Result<Status> {
    let api = api(bot)?;
    let known = |source: &&Source| source.kind == SourceKind::Telegram && source.name == bot.name;
    let poller = sources.iter().find(known).cloned().map(shown);
    let asked: Result<(Me, WebhookInfo), Trouble> =
        async { Ok((api.get_me().await?, api.get_webhook_info().await?)) }.await;
    let name = bot.name.clone();
    Ok(match asked {
        Err(trouble) => {
            let trouble = Some(state::words(&trouble, &bot.name).detail);
            Status { name, telegram: None, trouble, poller }
        }
        Ok((me, info)) => {
            let telegram = AtTelegram {
                id: me.id,
                username: me.username,
                pending: info.pending_update_count,
                webhook_host: info.host(),
                allowed_updates: info.allowed_updates,
            };
            Status { name, telegram: Some(telegram), trouble: None, poller }
        }
    })
}

fn api(bot: &Bot) -> anyhow::Result<BotApi> {
    BotApi::new(bot.api_url.clone(), bot.token.clone(), Pace::default().deadlines())
}

async fn status(bots: &[Bot], sources: &[Source], json: bool) -> anyhow::Result<()> {
    let mut all = Vec::with_capacity(bots.len());
    for bot in bots {
        all.push(ask(bot, sources).await?);
    }
    if json {
        print(format!("{}\n", serde_json::json!({ "bots": all }))).await?;
    } else {
        for status in &all {
            print(text(status)).await?;
        }
    }
    let ill = all.iter().filter(|status| status.fault().is_some()).count();
    anyhow::ensure!(ill == 0, "{ill} of {} bots cannot be polled as things are", all.len());
    Ok(())
}

fn text(status: &Status) -> String {
    let mut text = format!("{}\n", status.name);
    let mut say = |what: &str, value: String| {
        text.push_str(&format!("  {what:<10} {}\n", line(&value)));
    };
    match status.fault() {
        Some(fault) => say("Telegram", fault),
        None => say("Telegram", format!("ok: {}", status.well())),
    }
    match &status.poller {
        None => say("poller", "never ran on this store".to_owned()),
        Some(poller) => {
            say("poller", format!("{}: {}", poller.state, poller.detail));
            if let Some(holder) = &poller.holder {
                say("polled by", holder.clone());
            }
            if let Some(at) = poller.last_ok_at {
                say("last well", at.to_string());
            }
            if let Some(offset) = poller.next_offset {
                say("offset", offset.to_string());
            }
            say("stored", poller.stored.to_string());
            if poller.open_gaps > 0 {
                let name = &status.name;
                let gaps = poller.open_gaps;
                say("gaps", format!("{gaps} possible losses: `inboxd gaps list --source {name}`"));
            }
        }
    }
    text
}

async fn delete_webhook(bot: &Bot) -> anyhow::Result<()> {
    let api = api(bot)?;
    let failed =
        |trouble| anyhow::anyhow!("{}: {}", bot.name, state::words(&trouble, &bot.name).detail);
    let info = api.get_webhook_info().await.map_err(failed)?;
    let Some(host) = info.host() else {
        return print(format!("{} has no webhook; there is nothing to remove\n", bot.name)).await;
    };
    api.delete_webhook().await.map_err(failed)?;
    print(format!(
        "the webhook of {} (to {}) is removed; updates that wait and are kept: {}; a running `serve` \
         fetches them within a minute\n",
        bot.name,
        line(&host),
        info.pending_update_count
    ))
    .await
}
