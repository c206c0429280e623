//! `inboxd demo`: the real gateway between simulated senders and a worker, in one process.

mod folder;
mod gateway;
mod keep;
mod private_api;
mod proof;
mod stage;
mod story;
mod worker;

use clap::Args;
use tokio::signal::unix::{Signal, SignalKind, signal};

use self::folder::Folder;
use self::proof::Proof;
use self::stage::Stage;
use self::story::Story;
use super::output::{Closed, print};

#[derive(Debug, Args)]
pub(super) struct Demo {
    /// Leave it running, with messages that go on coming in, until Ctrl-C.
    #[arg(long)]
    keep: bool,
}

/// Shows the whole thing, and fails if one count is not as it has to be.
pub(super) async fn demo(arguments: Demo) -> anyhow::Result<()> {
    let mut signals = Signals::new()?;
    let folder = Folder::new()?;
    let mut stage = Stage::build(&folder).await?;
    let shown = tokio::select! {
        shown = show(&mut stage) => shown,
        () = signals.any() => Err(anyhow::anyhow!("the demo was stopped before its end")),
    };
    let kept = match shown {
        Ok(()) if arguments.keep => tokio::select! {
            kept = keep::keep(&mut stage) => kept,
            () = signals.any() => Ok(()),
        },
        Ok(()) => say(NEXT).await,
        failed => failed,
    };
    kept.and(stage.stop().await)
}

/// What asks the demo to end.
struct Signals([Signal; 3]);

impl Signals {
    fn new() -> std::io::Result<Signals> {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let [interrupt, terminate, hangup] = kinds.map(signal);
        Ok(Signals([interrupt?, terminate?, hangup?]))
    }

    /// Waits for one. Later ones change nothing, because the end takes a moment only.
    async fn any(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}

const NEXT: &str = "
Next
   inboxd demo --keep      the same, left running for you to ask it with curl
   inboxd serve --help     the real thing: INBOXD_TELEGRAM_TOKEN, or
                           INBOXD_UNIFYPORT_SECRET, is all that it needs
";

async fn show(stage: &mut Stage) -> anyhow::Result<()> {
    say("inboxd demo: Telegram and UnifyPort, both simulated, send to the real gateway\n").await?;
    say("on a throw-away SQLite file. Nothing leaves this machine.\n").await?;
    let (mut story, mut proof) = (Story::default(), Proof::default());
    let delivery = story::messages_come_in(stage, &mut story, &mut proof).await?;
    let snapshot = story::the_gateway_dies(stage, &mut story, &mut proof).await?;
    let again = (delivery, snapshot);
    story::things_come_twice(stage, again, &mut story, &mut proof).await?;
    say("\n4. A worker claims over HTTP, acts (here: prints), and acks\n").await?;
    let drained = worker::drain(&stage.api()?).await?;
    proof::compare(stage, &story, &drained, &mut proof).await?;
    proof.verdict()?;
    say(&proven(&story)).await
}

/// What the comparison has shown.
fn proven(story: &Story) -> String {
    let Story { events, updates, deliveries, refused, .. } = story;
    let (arrivals, events) = (updates + deliveries, events.len());
    let again = story.updates_again + story.deliveries_again;
    format!(
        "
Proven: senders, inbox and worker count the same
   {arrivals} arrivals ({updates} updates, {deliveries} deliveries) \
         = {events} events + {again} duplicates + {refused} refused
   {events} of {events} events stored with the very bytes that were sent
   {events} of {events} events worked on once, in the order of receipt
   0 lost and 0 doubled by the death of the gateway
"
    )
}

/// Prints, and goes on if nobody reads it: the exit code tells of the counts all the same.
async fn say(text: &str) -> anyhow::Result<()> {
    match print(text).await {
        Err(error) if error.is::<Closed>() => Ok(()),
        printed => printed,
    }
}
