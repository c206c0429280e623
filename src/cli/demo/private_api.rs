//! The gateway's private API, as a worker or an operator calls it.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use reqwest::{Client, RequestBuilder};
use serde_json::Value;

/// Longer than any answer here takes.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A client of it.
pub(super) struct PrivateApi {
    client: Client,
    base: String,
}

impl PrivateApi {
    pub(super) fn new(address: SocketAddr) -> anyhow::Result<PrivateApi> {
        let client = Client::builder().no_proxy().timeout(TIMEOUT).build()?;
        Ok(PrivateApi { client, base: format!("http://{address}") })
    }

    pub(super) async fn get(&self, path: &str) -> anyhow::Result<Value> {
        let text = self.get_bytes(path).await?;
        serde_json::from_slice(&text).with_context(|| format!("the answer to {path} is no JSON"))
    }

    pub(super) async fn get_bytes(&self, path: &str) -> anyhow::Result<Vec<u8>> {
        answer(path, self.client.get(format!("{}{path}", self.base))).await
    }

    pub(super) async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        let request = self.client.post(format!("{}{path}", self.base));
        let request = request.header("Content-Type", "application/json").body(body.to_string());
        let text = answer(path, request).await?;
        serde_json::from_slice(&text).with_context(|| format!("the answer to {path} is no JSON"))
    }

    /// What the gateway knows about a source.
    pub(super) async fn source(&self, name: &str) -> anyhow::Result<Value> {
        let all = self.get("/v1/sources").await?;
        let mut sources = all["sources"].as_array().into_iter().flatten();
        let source = sources.find(|source| source["name"] == name);
        source.cloned().with_context(|| format!("the gateway knows no source {name}"))
    }
}

async fn answer(path: &str, request: RequestBuilder) -> anyhow::Result<Vec<u8>> {
    let answer = request.send().await.with_context(|| format!("{path} got no answer"))?;
    let status = answer.status();
    anyhow::ensure!(status.is_success(), "{path} was answered {status}");
    Ok(answer.bytes().await?.to_vec())
}
