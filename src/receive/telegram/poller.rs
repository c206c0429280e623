//! One bot's poller: who is the bot, may we poll it, and then the duty of polling.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::answer::Trouble;
use super::bot_api::BotApi;
use super::duty::Duty;
use super::pace::Pace;
use super::state::{State, Words, words, worth_a_line};
use crate::clock::Clock;
use crate::config::Telegram;
use crate::event::SourceId;
use crate::inbox::{Inbox, StoreError};
use crate::source::{Bound, Leased, PollerLease};

/// What a poller works with.
pub(super) struct Bot {
    pub(super) config: Telegram,
    pub(super) source: SourceId,
    pub(super) inbox: Arc<Inbox>,
    pub(super) clock: Clock,
    pub(super) pace: Pace,
    /// Who we are, for people who look who holds the lease.
    pub(super) holder: String,
}

/// Polls until `stop`. Returns only then.
pub(super) async fn run(bot: Bot, stop: CancellationToken) -> anyhow::Result<()> {
    let deadlines = bot.pace.deadlines();
    let token = bot.config.token.clone();
    let mut api = BotApi::new(bot.config.api_url.clone(), token, deadlines)?;
    let state = State::new(&bot.config.name, bot.source, bot.clock.clone());
    loop {
        let account = tokio::select! {
            account = introduce(&bot, &mut api, &state) => account,
            () = stop.cancelled() => return Ok(()),
        };
        let lease = tokio::select! {
            lease = take_lease(&bot) => lease,
            () = stop.cancelled() => return Ok(()),
        };
        let beside = api.clone();
        let duty = Duty::new(&bot, &state, lease.token);
        tokio::select! {
            lost = duty.polls(&mut api, account, &lease.poller) => {
                if let Some(error) = lost.0 {
                    state.bad(&bot.inbox, store_words(&error), true).await;
                }
                // If it is ours still, it is to be had again, with the place that the store knows.
                duty.release().await;
                tokio::time::sleep(bot.pace.store(1)).await;
            }
            () = duty.probes(beside) => {}
            () = stop.cancelled() => {
                duty.hand_over().await;
                return Ok(());
            }
        }
    }
}

/// Asks who the bot is until that is known and fits the store.
async fn introduce(bot: &Bot, api: &mut BotApi, state: &State) -> i64 {
    let mut failures = 0;
    loop {
        failures += 1;
        let wait = match api.get_me().await {
            Ok(me) => match bot.inbox.bind_account(bot.source, &me.id.to_string()).await {
                Ok(Bound::Same) => return me.id,
                Ok(bound) => {
                    state.bad(&bot.inbox, misfit(&bot.config.name, me.id, bound), true).await;
                    bot.pace.trouble(&Trouble::Webhook, failures)
                }
                Err(error) => {
                    state.bad(&bot.inbox, store_words(&error), true).await;
                    bot.pace.store(failures)
                }
            },
            Err(trouble) => {
                let worth = failures >= worth_a_line(&trouble);
                state.bad(&bot.inbox, words(&trouble, &bot.config.name), worth).await;
                api.reconnect();
                bot.pace.trouble(&trouble, failures)
            }
        };
        tokio::time::sleep(wait).await;
    }
}

fn misfit(name: &str, id: i64, bound: Bound) -> Words {
    let detail = match bound {
        Bound::OtherName(other) => format!(
            "bot {id} is configured as \"{other}\" already: take one of the two tables out, or \
             `inboxd sources forget telegram/{other}` if that one is gone"
        ),
        _ => format!(
            "the store knows \"{name}\" as another bot, and this token belongs to bot {id}: give it \
             another name, or `inboxd sources forget telegram/{name}` to let the old one go"
        ),
    };
    Words { name: "other_bot", detail }
}

fn store_words(error: &StoreError) -> Words {
    let detail = format!("updates cannot be committed and stay at Telegram: {error}");
    Words { name: "store", detail }
}

/// Waits until the lease is ours.
async fn take_lease(bot: &Bot) -> PollerLease {
    let mut standing_by = false;
    let mut failures = 0;
    loop {
        let leased = bot.inbox.lease_poller(bot.source, &bot.holder, bot.pace.lease()).await;
        let wait = match leased {
            Ok(Leased::Mine(lease)) => return lease,
            Ok(Leased::Held { holder }) => {
                if !standing_by {
                    tracing::info!(
                        "bot {}: standing by, {} polls it",
                        bot.config.name,
                        holder.as_deref().unwrap_or("another process")
                    );
                }
                standing_by = true;
                bot.pace.standby()
            }
            Err(error) => {
                failures += 1;
                tracing::debug!("bot {}: no lease: {error}", bot.config.name);
                bot.pace.store(failures)
            }
        };
        tokio::time::sleep(wait).await;
    }
}
