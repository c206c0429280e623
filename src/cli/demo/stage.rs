//! What stands on the stage: the simulated outside, and the gateway between its restarts.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use serde_json::Value;

use super::folder::Folder;
use super::gateway::Gateway;
use super::private_api::PrivateApi;
use crate::clock::{Clock, Time};
use crate::config::{Config, Secret, StoreUrl, Telegram, Unifyport};
use crate::simulate::bot_api::journal::What;
use crate::simulate::bot_api::rules::Timing;
use crate::simulate::bot_api::update::Update;
use crate::simulate::bot_api::world::World;
use crate::simulate::bot_api::{FakeBotApi, Options, answer, token};
use crate::simulate::unifyport::{Delivery, Sender, Text};

/// The bot's id.
pub(super) const BOT: i64 = 4242;
/// The configured names, which are those that the environment alone would give.
pub(super) const TELEGRAM: &str = "telegram";
pub(super) const UNIFYPORT: &str = "main";
/// The signing secret. It opens nothing but this demo.
pub(super) const SECRET: &str = "demo-secret";
/// Longer than any step takes on a machine that is busy with something else.
const PATIENCE: Duration = Duration::from_secs(20);

/// Everything that takes part.
pub(super) struct Stage {
    pub(super) telegram: FakeBotApi,
    sender: Sender,
    config: Config,
    gateway: Option<Gateway>,
    clock: Clock,
}

impl Stage {
    /// Sets up the outside and a gateway on a new file in `folder`.
    pub(super) async fn build(folder: &Folder) -> anyhow::Result<Stage> {
        // In real time, like the gateway that it answers.
        let options = Options { timing: Timing::scaled(1.0), ..Options::default() };
        let telegram = FakeBotApi::start(options).await.context("no Bot API can be simulated")?;
        telegram.add_bot(BOT, &token::example(BOT));
        let mut stage = Stage {
            config: config(folder, &telegram)?,
            telegram,
            sender: Sender::new()?,
            gateway: None,
            clock: Clock::wall(),
        };
        stage.start().await?;
        Ok(stage)
    }

    /// Has the gateway listen on its usual ports, where they are free.
    pub(super) async fn move_to_usual_ports(&mut self) -> anyhow::Result<()> {
        if let Some(gateway) = self.gateway.take() {
            gateway.stop().await?;
        }
        let usual = Config::default().server;
        (self.config.server.public, self.config.server.private) = (usual.public, usual.private);
        self.start().await
    }

    pub(super) async fn start(&mut self) -> anyhow::Result<()> {
        self.telegram.client_starts();
        self.gateway = Some(Gateway::start(self.config.clone()).await?);
        Ok(())
    }

    /// Cuts the gateway off where it stands.
    pub(super) async fn kill(&mut self) -> anyhow::Result<()> {
        match self.gateway.take() {
            Some(gateway) => gateway.kill().await,
            None => Ok(()),
        }
    }

    /// Ends everything in order.
    pub(super) async fn stop(mut self) -> anyhow::Result<()> {
        let stopped = match self.gateway.take() {
            Some(gateway) => gateway.stop().await,
            None => Ok(()),
        };
        self.telegram.shut_down().await;
        stopped
    }

    fn gateway(&self) -> anyhow::Result<&Gateway> {
        self.gateway.as_ref().context("no gateway runs")
    }

    /// The gateway's own API.
    pub(super) fn api(&self) -> anyhow::Result<PrivateApi> {
        PrivateApi::new(self.gateway()?.private)
    }

    /// The public and the private address.
    pub(super) fn addresses(&self) -> anyhow::Result<(SocketAddr, SocketAddr)> {
        self.gateway().map(|gateway| (gateway.public, gateway.private))
    }

    pub(super) fn store_url(&self) -> String {
        self.config.store.url.display()
    }

    pub(super) fn now(&self) -> Time {
        self.clock.now()
    }

    /// Where UnifyPort delivers to.
    pub(super) fn webhook(&self) -> anyhow::Result<String> {
        Ok(format!("http://{}/webhooks/unifyport/{UNIFYPORT}", self.gateway()?.public))
    }

    /// This message as a delivery signed now.
    pub(super) fn signed(&self, text: &Text<'_>) -> Delivery {
        let now = self.now();
        Delivery::signed(text.id, text.body(now), now, SECRET.as_bytes())
    }

    /// Delivers; the answer's status.
    pub(super) async fn deliver(&self, delivery: &Delivery) -> anyhow::Result<u16> {
        let answer = self.sender.post(&self.webhook()?, delivery).await;
        answer.context("a delivery got no answer")
    }

    /// Queues an update at Telegram; its id and the bytes that go over the wire.
    pub(super) fn push(&self, update: &Update) -> anyhow::Result<(i32, Bytes)> {
        let id = self.telegram.push(BOT, update).id();
        let id = id.context("the simulated Bot API did not take an update")?;
        Ok((id, answer::wire(id, update.member())))
    }

    /// Waits until an offset has confirmed this update, as often as `times`; how often Telegram had
    /// sent it by the last of them.
    pub(super) async fn confirmed(&self, id: i32, times: usize) -> anyhow::Result<u32> {
        let done = |world: &World| deliveries_of(world, id).len() >= times;
        within("the confirmation of an update", self.telegram.until(done)).await?;
        let counts = self.telegram.look(|world| deliveries_of(world, id));
        counts.last().copied().context("a confirmation was taken back")
    }
}

/// How often `id` had been sent at each confirmation of it.
fn deliveries_of(world: &World, id: i32) -> Vec<u32> {
    let confirmations = world.journal().entries().iter().filter_map(|entry| match &entry.what {
        What::Confirmed { updates, .. } => updates.iter().find(|(confirmed, _)| *confirmed == id),
        _ => None,
    });
    confirmations.map(|(_, delivered)| *delivered).collect()
}

fn config(folder: &Folder, telegram: &FakeBotApi) -> anyhow::Result<Config> {
    let mut config = Config::default();
    (config.server.public, config.server.private) =
        (SocketAddr::from(([127, 0, 0, 1], 0)), SocketAddr::from(([127, 0, 0, 1], 0)));
    let file = folder.path().join("inboxd.db");
    let url = StoreUrl::parse(&format!("sqlite:{}", file.display()));
    config.store.url = url.context("name another folder for temporary files with TMPDIR")?;
    let api_url = telegram.api_url().parse()?;
    let bot = Telegram::new(TELEGRAM, Secret::new(token::example(BOT)));
    config.telegram.push(Telegram { api_url, ..bot });
    config.unifyport.push(Unifyport::new(UNIFYPORT, vec![Secret::new(SECRET)]));
    Ok(config)
}

/// Waits for `what`, but not for ever.
pub(super) async fn within<T>(what: &str, wait: impl Future<Output = T>) -> anyhow::Result<T> {
    tokio::time::timeout(PATIENCE, wait)
        .await
        .with_context(|| format!("waited {} s in vain for {what}", PATIENCE.as_secs()))
}

/// A text message in a private chat with the bot, sent at `now`.
pub(super) fn telegram_text(chat: i64, sender: &str, number: i64, now: Time, text: &str) -> Update {
    let body: Value = serde_json::json!({
        "message_id": number, "date": now.micros() / 1_000_000, "text": text,
        "from": { "id": chat, "is_bot": false, "first_name": sender },
        "chat": { "id": chat, "first_name": sender, "type": "private" },
    });
    Update::new("message", &body)
}
