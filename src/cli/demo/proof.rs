//! What has to be true in the end, counted on three sides: what the simulators sent, what the
//! gateway says of itself, and what the worker got.

use std::fmt::Debug;

use super::private_api::PrivateApi;
use super::stage::{BOT, Stage, TELEGRAM, UNIFYPORT};
use super::story::Story;
use super::worker::{Drained, row};
use crate::simulate::bot_api::journal::What;

/// What was found to be other than it has to be.
#[derive(Debug, Default)]
pub(super) struct Proof {
    faults: Vec<String>,
}

impl Proof {
    /// Compares one fact.
    pub(super) fn same<T: PartialEq + Debug>(&mut self, what: &str, found: T, expected: T) {
        if found != expected {
            self.faults.push(format!("{what}: {found:?}, where {expected:?} was expected"));
        }
    }

    /// An error that names every fault, if there is one.
    pub(super) fn verdict(self) -> anyhow::Result<()> {
        if self.faults.is_empty() {
            return Ok(());
        }
        anyhow::bail!("the demo found what must not be:\n  {}", self.faults.join("\n  "))
    }
}

/// Compares what is in the inbox, and what the worker got, with what was sent.
pub(super) async fn compare(
    stage: &Stage,
    story: &Story,
    drained: &Drained,
    proof: &mut Proof,
) -> anyhow::Result<()> {
    let api = stage.api()?;
    worker(story, drained, proof);
    bytes(&api, story, drained, proof).await?;
    let listed = api.get("/v1/events?limit=500").await?;
    let listed = listed["events"].as_array().map_or(0, Vec::len);
    proof.same("events in the inbox", listed, story.events.len());
    let channel = |sent: &&super::story::Sent| sent.row[0] == "telegram";
    let updates = story.events.iter().filter(channel).count();
    for (name, stored, duplicates) in [
        (TELEGRAM, updates, story.updates_again),
        (UNIFYPORT, story.events.len() - updates, story.deliveries_again),
    ] {
        let source = api.source(name).await?;
        let counts =
            ["stored", "duplicates", "conflicts", "open_gaps"].map(|key| source[key].as_u64());
        let expected = [stored as u64, duplicates as u64, 0, 0].map(Some);
        proof.same(
            &format!("stored, duplicates, conflicts and possible losses of {name}"),
            counts,
            expected,
        );
    }
    let lost = |what: &What| matches!(what, What::LostUnseen(_) | What::DeletedNegative { .. });
    let lost = stage
        .telegram
        .look(|world| world.journal().entries().iter().filter(|entry| lost(&entry.what)).count());
    proof.same("updates that were confirmed unseen", lost, 0);
    proof.same("updates that wait at Telegram", stage.telegram.pending(BOT), 0);
    let none: Vec<String> = Vec::new();
    proof.same("calls that the Bot API's rules forbid", stage.telegram.violations(), none);
    Ok(())
}

fn worker(story: &Story, drained: &Drained, proof: &mut Proof) {
    let got: Vec<[String; 3]> = drained.deliveries.iter().map(row).collect();
    let sent: Vec<[String; 3]> =
        story.events.iter().map(|sent| sent.row.map(str::to_owned)).collect();
    proof.same("what the worker got, in order", got, sent);
    let again = drained.deliveries.iter().filter(|delivery| delivery["attempt"] != 1).count();
    proof.same("events that the worker got more than once", again, 0);
    proof.same("events that were acked", drained.acked, story.events.len());
}

/// Each event's bytes, as they were sent.
async fn bytes(
    api: &PrivateApi,
    story: &Story,
    drained: &Drained,
    proof: &mut Proof,
) -> anyhow::Result<()> {
    let mut same = 0;
    for (delivery, sent) in drained.deliveries.iter().zip(&story.events) {
        let event = &delivery["event"];
        let id = event["id"].as_str().unwrap_or_default();
        let raw = api.get_bytes(&format!("/v1/events/{id}/raw")).await?;
        let is_it = event["externalid"] == *sent.external_id;
        same += usize::from(is_it && raw == sent.bytes);
    }
    proof.same("events whose bytes are those sent", same, story.events.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_told() {
        let mut proof = Proof::default();
        proof.same("events", 9, 9);
        proof.same("answer", 503, 204);
        proof.same("duplicates", 0, 1);
        let told = proof.verdict().unwrap_err().to_string();
        assert_eq!(
            told,
            "the demo found what must not be:\n  answer: 503, where 204 was expected\n  \
             duplicates: 0, where 1 was expected"
        );
        assert!(Proof::default().verdict().is_ok());
    }
}
