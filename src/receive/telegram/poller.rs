//! One bot's poller: may we poll it, who is it, and then the duty of polling.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::answer::Trouble;
use super::bot_api::BotApi;
use super::duty::{Duty, Misses, probes};
use super::lease::{Lease, Lost};
use super::pace::Pace;
use super::state::{self, State, Words, words, worth_a_line};
use crate::clock::Clock;
use crate::config::Telegram;
use crate::event::SourceId;
use crate::inbox::{Inbox, StoreError};
use crate::source::{Bound, Poller};

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

/// Why a turn as the bot's poller ended. The lease is then given up, so that somebody who fares
/// better can have it.
enum End {
    /// The server does not say who the bot is.
    Unknown(Trouble),
    /// The bot is not the one that the store knows.
    Misfit(Words),
    /// The lease was lost, or the store failed.
    Lost(StoreError),
}

/// Polls until `stop`. Returns only then.
pub(super) async fn run(bot: Bot, stop: CancellationToken) -> anyhow::Result<()> {
    let token = bot.config.token.clone();
    let mut api = BotApi::new(bot.config.api_url.clone(), token, bot.pace.deadlines())?;
    let state = State::new(&bot.config.name, bot.source, bot.clock.clone());
    let mut misses = Misses::default();
    loop {
        let (lease, poller) = tokio::select! {
            taken = Lease::take(&bot, &state) => taken,
            () = stop.cancelled() => return Ok(()),
        };
        let turn = tokio::select! {
            end = turn(&bot, &state, &lease, &poller, &mut api, &mut misses) => Some(end),
            () = stop.cancelled() => None,
        };
        let Some(end) = turn else {
            hand_over(&bot, &state, &lease).await;
            return Ok(());
        };
        let wait = tell(&bot, &state, end, &mut misses).await;
        lease.release().await;
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = stop.cancelled() => return Ok(()),
        }
    }
}

/// One turn as the bot's poller.
async fn turn(
    bot: &Bot,
    state: &State,
    lease: &Lease<'_>,
    poller: &Poller,
    api: &mut BotApi,
    misses: &mut Misses,
) -> End {
    let introduced = async {
        state.recall(&bot.inbox).await;
        introduce(bot, api).await
    };
    let account = match lease.keeping(introduced).await {
        Ok(Ok(account)) => account,
        Ok(Err(end)) => return end,
        Err(Lost(error)) => return End::Lost(error),
    };
    let duty = Duty::new(bot, state, lease, account);
    let beside = api.clone();
    tokio::select! {
        Lost(error) = duty.polls(api, poller, misses) => End::Lost(error),
        never = probes(bot, &duty, beside) => match never {},
    }
}

/// Asks who the bot is, and whether that fits the store.
async fn introduce(bot: &Bot, api: &mut BotApi) -> Result<i64, End> {
    let me = match api.get_me().await {
        Ok(me) => me,
        Err(trouble) => {
            if trouble.is_of_the_line() {
                api.reconnect();
            }
            return Err(End::Unknown(trouble));
        }
    };
    match bot.inbox.bind_account(bot.source, &me.id.to_string()).await {
        Ok(Bound::Same) => Ok(me.id),
        Ok(bound) => Err(End::Misfit(misfit(&bot.config.name, me.id, bound))),
        Err(error) => Err(End::Lost(error)),
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

/// Says why a turn ended, and how long to wait before the next. Nothing is said of a bot whose
/// lease somebody else has: that one speaks for it.
async fn tell(bot: &Bot, state: &State, end: End, misses: &mut Misses) -> Duration {
    match end {
        End::Unknown(trouble) => {
            misses.answers += 1;
            let worth = misses.answers >= worth_a_line(&trouble);
            state.bad(&bot.inbox, words(&trouble, &bot.config.name), worth).await;
            bot.pace.trouble(&trouble, misses.answers)
        }
        End::Misfit(words) => {
            state.bad(&bot.inbox, words, true).await;
            bot.pace.trouble(&Trouble::Webhook, 1)
        }
        End::Lost(error @ StoreError::LeaseLost) => {
            tracing::info!("bot {}: {error}", bot.config.name);
            bot.pace.standby()
        }
        End::Lost(error) => {
            misses.commit_failed();
            state.bad(&bot.inbox, state::of_store(&error), true).await;
            bot.pace.store(misses.batches)
        }
    }
}

/// Ends a turn at a stop. No last confirming call: it is not needed, it can take 3 s, and it could
/// end the next holder's poll.
async fn hand_over(bot: &Bot, state: &State, lease: &Lease<'_>) {
    let words = Words { name: "stopped", detail: "the gateway was stopped".to_owned() };
    // Also keeps until when the polls were good.
    if lease.renew(Vec::new()).await.is_ok() {
        state.tell(&bot.inbox, words).await;
    }
    lease.release().await;
}
