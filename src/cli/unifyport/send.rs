//! Posting a delivery.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use anyhow::Context as _;
use reqwest::{Client, Url, redirect};

use super::delivery::Delivery;
use super::{Input, secrets};
use crate::cli::context::{Context, Usage};
use crate::cli::output::print;
use crate::cli::text::line;

/// Longer than any answer of a gateway takes.
const TIMEOUT: Duration = Duration::from_secs(60);
/// What is printed of the reason that an answer gives.
const LONGEST_REASON: usize = 300;

/// Where to post: `--url`, else the endpoint at the configuration's public address.
pub(super) fn target(url: Option<String>, input: &Input, context: &Context) -> anyhow::Result<Url> {
    if let Some(url) = url {
        let http = Url::parse(&url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        return Ok(http.ok_or_else(|| {
            Usage(
                "--url takes a whole URL, such as https://host/webhooks/unifyport/main".to_owned(),
            )
        })?);
    }
    let config = context.config()?;
    let endpoint = secrets::endpoint(&config, input)?;
    let address = reachable(config.server.public);
    if address.port() == 0 {
        return Err(Usage(
            "the configuration leaves the port of server.public open; give the address with --url"
                .to_owned(),
        )
        .into());
    }
    Ok(Url::parse(&format!("http://{address}/webhooks/unifyport/{}", endpoint.name))?)
}

/// The address to call for one that is listened on.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    address
}

/// Posts, and prints the status; an error unless it is a 2xx.
pub(super) async fn send(delivery: &Delivery, url: &Url) -> anyhow::Result<()> {
    // Of a URL only this much is shown, because the rest may hold a password.
    let place = url.origin().ascii_serialization();
    let client = Client::builder()
        .redirect(redirect::Policy::none())
        .referer(false)
        .no_proxy()
        .timeout(TIMEOUT)
        .build()
        .map_err(reqwest::Error::without_url)
        .context("no HTTP client can be made")?;
    let request = client.post(url.clone()).headers(delivery.header_map());
    let answer = request.body(delivery.body.clone()).send().await.map_err(|error| {
        let error = anyhow::Error::from(error.without_url());
        anyhow::anyhow!(
            "{place} does not answer ({}); start `inboxd serve`, or give another address with \
             --url",
            error.root_cause()
        )
    })?;
    let status = answer.status();
    print(format!("{status}\n")).await?;
    if status.is_success() {
        return Ok(());
    }
    let reason = answer.text().await.ok().and_then(|text| reason(&text));
    anyhow::bail!("{place} did not accept the delivery{}", reason.unwrap_or_default())
}

/// The `detail` of an `application/problem+json`.
fn reason(body: &str) -> Option<String> {
    let problem: serde_json::Value = serde_json::from_str(body).ok()?;
    let detail: String = line(problem["detail"].as_str()?).chars().take(LONGEST_REASON).collect();
    Some(format!(": {detail}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_all_interfaces_is_called_at_loopback() {
        for (public, called) in [
            ("0.0.0.0:80", "127.0.0.1:80"),
            ("[::]:80", "[::1]:80"),
            ("10.1.2.3:80", "10.1.2.3:80"),
        ] {
            assert_eq!(reachable(public.parse().unwrap()), called.parse().unwrap());
        }
    }
}
