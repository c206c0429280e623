//! The demo left running.

use std::time::Duration;

use super::say;
use super::stage::{SECRET, Stage, telegram_text};
use crate::simulate::unifyport::Text;

/// Between two rounds of messages.
const PAUSE: Duration = Duration::from_secs(5);
/// The chat of what comes in from Telegram.
const CHAT: i64 = 1002;

/// Prints what to ask, and lets messages come in until the caller stops it.
pub(super) async fn keep(stage: &mut Stage) -> anyhow::Result<()> {
    // Not sooner, because somebody's worker may already ask there, and take what is to be counted.
    stage.move_to_usual_ports().await?;
    let mut pace = tokio::time::interval(PAUSE);
    for round in 1.. {
        pace.tick().await;
        messages(stage, round).await?;
        if round == 1 {
            say(&help(stage)?).await?;
        }
    }
    Ok(())
}

/// One from each side.
async fn messages(stage: &Stage, round: i64) -> anyhow::Result<()> {
    let text = format!("Message {round} by Telegram");
    let (id, _) = stage.push(&telegram_text(CHAT, "Ben", round, stage.now(), &text))?;
    let (event, text) = (format!("evt_more_{round}"), format!("Message {round} by WhatsApp"));
    let (sender_id, sender) = ("491701234567", "Mia");
    let text = Text { id: &event, provider: "whatsapp", sender_id, sender, text: &text };
    let status = stage.deliver(&stage.signed(&text)).await?;
    anyhow::ensure!(status == 204, "a delivery was answered {status}");
    stage.confirmed(id, 1).await.map(drop)
}

fn help(stage: &Stage) -> anyhow::Result<String> {
    let (_, private) = stage.addresses()?;
    let (webhook, store) = (stage.webhook()?, stage.store_url());
    Ok(format!(
        r#"
Left running until Ctrl-C; every {} s a message comes in on each side. Try:

The newest events, and where they come from:
   curl 'http://{private}/v1/events?limit=2'
   curl http://{private}/v1/sources

Work: claim an event, then ack it with the receipt that the claim gave:
   curl http://{private}/v1/consumers/default/claim \
      -H 'Content-Type: application/json' -d '{{"max":1}}'
   curl http://{private}/v1/consumers/default/ack \
      -H 'Content-Type: application/json' -d '{{"receipts":["RECEIPT"]}}'

A delivery of your own:
   echo '{{"type":"message.received","provider":"line"}}' | \
      SECRET={SECRET} inboxd unifyport send --secret-env SECRET \
      --url {webhook}

The inbox as it fills, by its file:
   INBOXD_STORE_URL='{store}' \
      inboxd events tail
"#,
        PAUSE.as_secs()
    ))
}
