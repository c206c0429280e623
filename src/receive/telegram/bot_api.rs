//! The Bot API as a client: a few methods, every answer sorted into what it means.
//!
//! A bot's token stands in the URL. So no error of the HTTP client leaves this file as it is, no
//! redirect is followed (its target would be sent the URL as `Referer`), and no proxy is taken from
//! the environment.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use url::Url;

use super::answer::{Trouble, sort};
use crate::config::Secret;

/// More than the server's own limit of 4 MiB for a batch, so that only a fault is larger.
const BODY: usize = 16 << 20;

/// How long the parts of a call may take.
#[derive(Clone, Copy, Debug)]
pub struct Deadlines {
    /// To connect.
    pub connect: Duration,
    /// For the answer, beyond the time that the server was asked to hold it.
    pub answer: Duration,
    /// How long a second of that time is, 1 but in tests against a faster server.
    pub scale: f64,
}

/// One bot at one server.
#[derive(Clone)]
pub struct BotApi {
    base: Url,
    token: Secret,
    deadlines: Deadlines,
    client: reqwest::Client,
}

impl std::fmt::Debug for BotApi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BotApi").field("base", &self.base.as_str()).finish_non_exhaustive()
    }
}

/// What `getUpdates` is asked.
#[derive(Clone, Debug, Serialize)]
pub struct Poll<'a> {
    /// Confirms all updates below it; left out, it confirms nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<i64>,
    /// At most so many updates.
    pub limit: u32,
    /// Seconds that the server holds a poll that finds nothing.
    pub timeout: u64,
    /// Sent each time, because the server keeps the last setting of whoever sent one.
    pub allowed_updates: &'a [&'a str],
}

/// `getMe`, as far as it is of use.
#[derive(Clone, Debug, Deserialize)]
pub struct Me {
    /// The bot's id.
    pub id: i64,
    /// Its public name.
    #[serde(default)]
    pub username: Option<String>,
}

/// `getWebhookInfo`, as far as it is of use.
#[derive(Clone, Debug, Deserialize)]
pub struct WebhookInfo {
    /// Empty if none is set.
    pub url: String,
    /// Updates that wait.
    #[serde(default)]
    pub pending_update_count: i64,
    /// The kinds that are kept, if not the default ones.
    #[serde(default)]
    pub allowed_updates: Option<Vec<String>>,
    /// When the server could not synchronise last.
    #[serde(default)]
    pub last_synchronization_error_date: Option<i64>,
}

impl WebhookInfo {
    /// The host of the webhook, for people: its path may hold a secret. None if none is set.
    pub fn host(&self) -> Option<String> {
        if self.url.is_empty() {
            return None;
        }
        let host = Url::parse(&self.url).ok().and_then(|url| url.host_str().map(str::to_owned));
        Some(host.unwrap_or_else(|| "an address that is no URL".to_owned()))
    }
}

impl BotApi {
    /// The bot of `token` at the server `base`.
    ///
    /// # Errors
    /// The HTTP client cannot be made: the system's certificates cannot be read.
    pub fn new(base: Url, token: Secret, deadlines: Deadlines) -> anyhow::Result<BotApi> {
        let client = client(deadlines)?;
        Ok(BotApi { base, token, deadlines, client })
    }

    /// Drops the connections, because one that has failed once may hang for ever.
    pub fn reconnect(&mut self) {
        // It could be made once, so it can be made again; if not, the old one goes on.
        if let Ok(client) = client(self.deadlines) {
            self.client = client;
        }
    }

    /// `getMe`.
    pub async fn get_me(&self) -> Result<Me, Trouble> {
        self.typed("getMe").await
    }

    /// `getWebhookInfo`; safe beside a poll.
    pub async fn get_webhook_info(&self) -> Result<WebhookInfo, Trouble> {
        self.typed("getWebhookInfo").await
    }

    /// `deleteWebhook`, keeping what waits.
    pub async fn delete_webhook(&self) -> Result<(), Trouble> {
        let arguments = serde_json::json!({ "drop_pending_updates": false });
        self.call("deleteWebhook", &arguments, Duration::ZERO).await.map(drop)
    }

    /// `getUpdates`: the whole body of a good answer, to be cut exactly. Nobody but a bot's one
    /// poller may call this.
    pub(super) async fn get_updates(&self, poll: &Poll<'_>) -> Result<Vec<u8>, Trouble> {
        let held = Duration::from_secs(poll.timeout).mul_f64(self.deadlines.scale);
        self.call("getUpdates", poll, held).await
    }

    async fn typed<T: DeserializeOwned>(&self, method: &str) -> Result<T, Trouble> {
        #[derive(Deserialize)]
        struct Answer<T> {
            result: T,
        }
        let body = self.call(method, &serde_json::json!({}), Duration::ZERO).await?;
        let answer = serde_json::from_slice::<Answer<T>>(&body);
        answer.map(|answer| answer.result).map_err(|_| Trouble::Odd("a result of another form"))
    }

    async fn call(
        &self,
        method: &str,
        arguments: &(impl Serialize + Sync),
        held: Duration,
    ) -> Result<Vec<u8>, Trouble> {
        let deadline = held + self.deadlines.answer;
        let answered = tokio::time::timeout(deadline, self.exchange(method, arguments)).await;
        let (status, retry_after, body) =
            answered.map_err(|_| Trouble::Network("no answer in time"))??;
        sort(status, retry_after, body)
    }

    async fn exchange(
        &self,
        method: &str,
        arguments: &(impl Serialize + Sync),
    ) -> Result<(u16, Option<u64>, Vec<u8>), Trouble> {
        let mut url = self.base.clone();
        let path = url.path().trim_end_matches('/').to_owned();
        url.set_path(&format!("{path}/bot{}/{method}", self.token.expose()));
        let json = serde_json::to_vec(arguments).unwrap_or_default();
        let request = self.client.post(url).header("Content-Type", "application/json").body(json);
        let mut response = request.send().await.map_err(network)?;
        let status = response.status().as_u16();
        let retry_after = response.headers().get("Retry-After");
        let retry_after = retry_after.and_then(|value| value.to_str().ok()?.trim().parse().ok());
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(network)? {
            if body.len() + chunk.len() > BODY {
                return Err(Trouble::Odd("an answer of more than 16 MiB"));
            }
            body.extend_from_slice(&chunk);
        }
        Ok((status, retry_after, body))
    }
}

fn client(deadlines: Deadlines) -> anyhow::Result<reqwest::Client> {
    reqwest::Client::builder()
        .http1_only()
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .no_proxy()
        .connect_timeout(deadlines.connect)
        .tcp_keepalive(Duration::from_secs(20))
        .build()
        .map_err(|error| anyhow::anyhow!("the HTTP client for Telegram: {}", error.without_url()))
}

/// What kind of failure it was, in our own words: the client's hold the URL.
fn network(error: reqwest::Error) -> Trouble {
    Trouble::Network(if error.is_connect() {
        "cannot connect"
    } else if error.is_timeout() {
        "no answer in time"
    } else if error.is_body() || error.is_decode() {
        "the answer broke off"
    } else {
        "the connection broke off"
    })
}
