//! Durable deliveries per second through the whole gateway: sockets, signature, commit, answer; then
//! claims and acks of what was stored.
//!
//! `cargo bench --bench deliveries` uses a SQLite file in a temporary folder; with
//! `INBOXD_BENCH_URL=postgres://…` (an empty database) that. Client and gateway share the machine.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use inboxd::clock::Clock;
use inboxd::config::{Config, Env, StoreUrl};
use inboxd::receive::unifyport::signature::sign;
use inboxd::shutdown::Shutdown;
use inboxd::{Listeners, run};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const SECRET: &str = "a secret of the benchmark";
const SECONDS: u64 = 4;
const BODY: usize = 2048;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let folder = std::env::temp_dir().join(format!("inboxd-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let url = std::env::var("INBOXD_BENCH_URL")
        .unwrap_or_else(|_| format!("sqlite:{}", folder.join("inbox.db").display()));
    let mut config = Config::load(None, &Env::from([("INBOXD_UNIFYPORT_SECRET", SECRET)]))?;
    config.store.url = StoreUrl::parse(&url)?;
    let listeners = Listeners {
        public: TcpListener::bind("127.0.0.1:0").await?,
        private: TcpListener::bind("127.0.0.1:0").await?,
    };
    let (public, private) = (listeners.public.local_addr()?, listeners.private.local_addr()?);
    let shutdown = Shutdown::new();
    let (_keep, config) = tokio::sync::watch::channel(Arc::new(config));
    let gateway = tokio::spawn(run(config, listeners, shutdown.clone()));
    for connections in [1, 8, 64, 256] {
        deliveries(public, connections).await?;
    }
    for (workers, max) in [(1, 1), (64, 1), (1, 100), (8, 100), (64, 100)] {
        claims(private, workers, max).await?;
    }
    shutdown.trigger_soft();
    gateway.await??;
    std::fs::remove_dir_all(folder)?;
    Ok(())
}

async fn deliveries(public: SocketAddr, connections: usize) -> anyhow::Result<()> {
    let begun = Instant::now();
    let end = begun + Duration::from_secs(SECONDS);
    let clients = (0..connections).map(|client| {
        tokio::spawn(async move {
            let mut stream = TcpStream::connect(public).await?;
            stream.set_nodelay(true)?;
            let mut waits = Vec::new();
            while Instant::now() < end {
                let number = waits.len();
                let request = delivery(&format!("evt_{connections}_{client}_{number}"), client);
                let begun = Instant::now();
                exchange(&mut stream, &request, "204").await?;
                waits.push(begun.elapsed());
            }
            anyhow::Ok(waits)
        })
    });
    let clients: Vec<_> = clients.collect();
    let mut waits = Vec::new();
    for client in clients {
        waits.extend(client.await??);
    }
    let events = waits.len();
    report(&format!("deliveries, {connections} connections"), waits, events, begun.elapsed());
    Ok(())
}

async fn claims(private: SocketAddr, workers: usize, max: usize) -> anyhow::Result<()> {
    let begun = Instant::now();
    let end = begun + Duration::from_secs(SECONDS);
    let workers: Vec<_> = (0..workers)
        .map(|_| {
            tokio::spawn(async move {
                let mut stream = TcpStream::connect(private).await?;
                stream.set_nodelay(true)?;
                let (mut rounds, mut events) = (Vec::new(), 0);
                while Instant::now() < end {
                    let begun = Instant::now();
                    let claim = call("claim", &format!("{{\"max\":{max}}}"));
                    let answer = exchange(&mut stream, &claim, "200").await?;
                    let answer: serde_json::Value = serde_json::from_slice(&answer)?;
                    let Some(deliveries) = answer["deliveries"].as_array() else { break };
                    let receipts: Vec<_> = deliveries.iter().map(|one| &one["receipt"]).collect();
                    if receipts.is_empty() {
                        break;
                    }
                    events += receipts.len();
                    let ack = call("ack", &serde_json::json!({ "receipts": receipts }).to_string());
                    exchange(&mut stream, &ack, "200").await?;
                    rounds.push(begun.elapsed());
                }
                anyhow::Ok((rounds, events))
            })
        })
        .collect();
    let count = workers.len();
    let (mut rounds, mut events) = (Vec::new(), 0);
    for worker in workers {
        let one = worker.await??;
        rounds.extend(one.0);
        events += one.1;
    }
    report(&format!("claim + ack of {max}, {count} workers"), rounds, events, begun.elapsed());
    Ok(())
}

fn report(what: &str, mut waits: Vec<Duration>, events: usize, took: Duration) {
    waits.sort_unstable();
    let at = |share: f64| {
        let place = ((waits.len() as f64 * share) as usize).min(waits.len().saturating_sub(1));
        waits.get(place).copied().unwrap_or_default().as_secs_f64() * 1000.0
    };
    println!(
        "{what:<32} {:>8.0} a second   p50 {:>7.2} ms   p99 {:>7.2} ms",
        events as f64 / took.as_secs_f64(),
        at(0.5),
        at(0.99)
    );
}

fn delivery(id: &str, conversation: usize) -> Vec<u8> {
    let text = "x".repeat(BODY - 260);
    let body = format!(
        r#"{{"id":"{id}","type":"message.received","provider":"whatsapp","account_id":"acc_8c21d0","occurred_at":"2026-06-08T12:34:56Z","data":{{"conversation":{{"id":"{conversation}"}},"message":{{"id":"m","type":"text","text":"{text}","direction":"inbound"}}}}}}"#
    );
    let timestamp = Clock::wall().now().to_string();
    let signature = sign(SECRET.as_bytes(), timestamp.as_bytes(), body.as_bytes());
    format!(
        "POST /webhooks/unifyport/main HTTP/1.1\r\nHost: localhost\r\n\
         Content-Type: application/json\r\nX-Device-Event-Id: {id}\r\n\
         X-Device-Timestamp: {timestamp}\r\nX-Device-Signature: {signature}\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn call(what: &str, body: &str) -> Vec<u8> {
    format!(
        "POST /v1/consumers/default/{what} HTTP/1.1\r\nHost: localhost\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Sends a request and reads its answer's body, whose length is always declared.
async fn exchange(stream: &mut TcpStream, request: &[u8], status: &str) -> anyhow::Result<Vec<u8>> {
    stream.write_all(request).await?;
    let mut answer = Vec::with_capacity(4096);
    loop {
        anyhow::ensure!(stream.read_buf(&mut answer).await? > 0, "the gateway hung up");
        let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
        anyhow::ensure!(head.starts_with(&format!("http/1.1 {status}")), "{head}");
        let length = head.split("content-length: ").nth(1);
        let length: usize = length.and_then(|rest| rest.lines().next()?.parse().ok()).unwrap_or(0);
        while answer.len() < end + 4 + length {
            anyhow::ensure!(stream.read_buf(&mut answer).await? > 0, "the gateway hung up");
        }
        return Ok(answer.split_off(end + 4));
    }
}
