//! The steps of the demo: what the outside does, and what became of it.

use bytes::Bytes;

use super::proof::Proof;
use super::say;
use super::stage::{BOT, Stage, TELEGRAM, telegram_text, within};
use crate::simulate::bot_api::answer;
use crate::simulate::bot_api::args::Args;
use crate::simulate::bot_api::barrier::Point;
use crate::simulate::bot_api::change::{Change, Snapshot};
use crate::simulate::bot_api::fault::{Action, Net};
use crate::simulate::bot_api::sample::USER;
use crate::simulate::bot_api::selector::Selector;
use crate::simulate::bot_api::{odd, update::Update};
use crate::simulate::unifyport::{Delivery, Text};

/// The first delivery, which is made again later.
const WHATSAPP: Text<'static> = Text {
    id: "evt_1",
    provider: "whatsapp",
    sender_id: "8613912345678",
    sender: "Jordan Lee",
    text: "Do you ship to Chengdu?",
};
const OTHERS: [Text<'static>; 3] = [
    Text {
        id: "evt_2", provider: "line", sender_id: "U71", sender: "ゆき", text: "注文しました"
    },
    Text { id: "evt_3", provider: "zalo", sender_id: "84", sender: "Linh", text: "Chào shop!" },
    Text { id: "evt_4", provider: "x", sender_id: "77", sender: "Sam", text: "DM for a refund?" },
];
const LATER: Text<'static> = Text { id: "evt_5", text: "And how long does it take?", ..WHATSAPP };
const FORGED: Text<'static> = Text { id: "evt_6", text: "Please send me all data", ..WHATSAPP };

/// A new event as its sender knows it.
#[derive(Debug)]
pub(super) struct Sent {
    /// The sender's own id of it.
    pub(super) external_id: String,
    /// Channel, sender and text, as a worker is to see them.
    pub(super) row: [&'static str; 3],
    /// As they went over the wire.
    pub(super) bytes: Bytes,
}

/// What the outside has done.
#[derive(Debug, Default)]
pub(super) struct Story {
    /// What is to be in the inbox, in the order of its receipt.
    pub(super) events: Vec<Sent>,
    /// Updates that went over the wire, those sent again included.
    pub(super) updates: usize,
    /// Deliveries that were posted, whatever became of them.
    pub(super) deliveries: usize,
    /// Updates that were sent again.
    pub(super) updates_again: usize,
    /// Deliveries of what had been delivered.
    pub(super) deliveries_again: usize,
    /// Deliveries that were answered 401.
    pub(super) refused: usize,
}

impl Story {
    fn update(&mut self, id: i32, update: &Update, row: [&'static str; 3]) {
        self.updates += 1;
        let bytes = answer::wire(id, update.member());
        self.events.push(Sent { external_id: id.to_string(), row, bytes });
    }

    /// Posts a new event.
    async fn deliver(
        &mut self,
        stage: &Stage,
        text: Text<'static>,
        proof: &mut Proof,
    ) -> anyhow::Result<Delivery> {
        let delivery = stage.signed(&text);
        let row = [text.provider, text.sender, text.text];
        self.events.push(Sent {
            external_id: text.id.to_owned(),
            row,
            bytes: delivery.body.clone(),
        });
        self.post(stage, &delivery, 204, proof).await?;
        Ok(delivery)
    }

    async fn post(
        &mut self,
        stage: &Stage,
        delivery: &Delivery,
        expected: u16,
        proof: &mut Proof,
    ) -> anyhow::Result<u16> {
        self.deliveries += 1;
        let status = stage.deliver(delivery).await?;
        proof.same(&format!("the answer to delivery {}", delivery.event_id), status, expected);
        Ok(status)
    }
}

/// Both sides bring something new; the delivery that is made again later.
pub(super) async fn messages_come_in(
    stage: &Stage,
    story: &mut Story,
    proof: &mut Proof,
) -> anyhow::Result<Delivery> {
    say("\n1. Messages come in\n").await?;
    let hello = "Hello, is my parcel on its way?";
    let text = telegram_text(USER, "Ada", 1, stage.now(), hello);
    let button = odd::raw_callback_data(2);
    let ids = stage.telegram.push_all(BOT, [&text, &button]);
    let [first, second] = ids[..] else { anyhow::bail!("the simulated Bot API took no updates") };
    story.update(first, &text, ["telegram", "Ada", hello]);
    story.update(second, &button, ["telegram", "Ada", "a\u{fffd}\u{fffd}\0z"]);
    stage.confirmed(second, 1).await?;
    say("   Telegram   2 updates fetched, committed, then confirmed; one of them\n").await?;
    say("              is not UTF-8 (a button that some odd client pressed)\n").await?;
    let delivery = story.deliver(stage, WHATSAPP, proof).await?;
    for text in OTHERS {
        story.deliver(stage, text, proof).await?;
    }
    say("   UnifyPort  4 signed deliveries (whatsapp, line, zalo, x), each committed,\n").await?;
    say("              then answered 204\n").await?;
    Ok(delivery)
}

/// The gateway is cut off after a commit and before Telegram knows of it. Telegram's queue as it
/// was at that moment.
pub(super) async fn the_gateway_dies(
    stage: &mut Stage,
    story: &mut Story,
    proof: &mut Proof,
) -> anyhow::Result<Snapshot> {
    say("\n2. The gateway dies between commit and confirmation\n").await?;
    // Only after the commit does a poll carry the larger offset. It arrives, and goes no further.
    let confirms = || Selector::polls().with(|args: &Args| args.get("offset").is_some()).once();
    let barrier = stage.telegram.barrier(Point::Received, confirms());
    stage.telegram.arm(confirms(), Action::Net(Net::Reset));
    let text = "It has not come yet.";
    let update = telegram_text(USER, "Ada", 3, stage.now(), text);
    let (id, _) = stage.push(&update)?;
    story.update(id, &update, ["telegram", "Ada", text]);
    within("the poll that confirms", barrier.reached()).await?;
    let stored = stage.api()?.source(TELEGRAM).await?["stored"].clone();
    proof.same("updates stored when the gateway died", stored.as_u64(), Some(3));
    proof.same("updates that Telegram still held then", stage.telegram.pending(BOT), 1);
    let snapshot = stage.telegram.act(|world, now| world.snapshot(BOT, now));
    say("   Telegram   1 update fetched and committed; Telegram still has it, too\n").await?;
    stage.kill().await?;
    barrier.release();
    say("   inboxd     cut off right there: every task, socket and lock dropped, no\n").await?;
    say("              drain. (This is one process, so no kill -9 of a real one.)\n").await?;
    stage.start().await?;
    let sent = stage.confirmed(id, 1).await?;
    proof.same("times that Telegram had to send that update", sent, 1);
    say("   inboxd     started again on the same file; confirmed from the saved place,\n").await?;
    say("              so Telegram did not have to send it a second time\n").await?;
    Ok(snapshot)
}

/// Both sides send again what the restarted gateway can know from its file alone, and somebody
/// forges.
pub(super) async fn things_come_twice(
    stage: &Stage,
    (delivery, snapshot): (Delivery, Snapshot),
    story: &mut Story,
    proof: &mut Proof,
) -> anyhow::Result<()> {
    say("\n3. Things come twice, or are forged\n").await?;
    let retry = story.post(stage, &delivery, 204, proof).await?;
    let replay = story.post(stage, &delivery.under("evt_other"), 204, proof).await?;
    story.deliveries_again += 2;
    let now = stage.now();
    let forged = Delivery::signed(FORGED.id, FORGED.body(now), now, b"a guess");
    let forged = story.post(stage, &forged, 401, proof).await?;
    story.refused += 1;
    say(&format!("   UnifyPort  a delivery retried, as after a lost answer: {retry}, known\n"))
        .await?;
    say(&format!("   UnifyPort  the same under another event id (replay): {replay}, known\n"))
        .await?;
    say(&format!("   A forger   a delivery that the secret did not sign: {forged}, kept out\n"))
        .await?;

    let text = "Thanks, it is here!";
    let update = telegram_text(USER, "Ada", 4, stage.now(), text);
    let again = story.events.iter().rfind(|sent| sent.row[0] == "telegram");
    let again = again.and_then(|sent| sent.external_id.parse().ok()).unwrap_or_default();
    let pushed = stage.telegram.act(|world, now| {
        world.change(BOT, &Change::Restore(snapshot), now);
        world.push(BOT, &update, now).id()
    });
    let Some(id) = pushed else { anyhow::bail!("the simulated Bot API took no update") };
    story.update(id, &update, ["telegram", "Ada", text]);
    let sent = stage.confirmed(again, 2).await?;
    proof.same("times that Telegram sent the update again", sent, 2);
    story.updates += 1;
    story.updates_again += 1;
    stage.confirmed(id, 1).await?;
    say("   Telegram   forgets a confirmation (its server fell back), sends the\n").await?;
    say("              update again beside a new one: one known, one stored\n").await?;
    story.deliver(stage, LATER, proof).await?;
    say("   UnifyPort  one more message in the WhatsApp conversation: 204\n").await
}
