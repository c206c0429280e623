//! A Bot API server that misbehaves, an inbox on a real database, and the pollers between them.

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use bytes::Bytes;
use inboxd::clock::Clock;
use inboxd::config::{Secret, Telegram};
use inboxd::inbox::{Bounds, Inbox};
use inboxd::receive::telegram::{Pace, Pollers};
use inboxd::shutdown::Shutdown;
use inboxd::simulate::bot_api::change::{Change, Start};
use inboxd::simulate::bot_api::journal::What;
use inboxd::simulate::bot_api::queue::Pushed;
use inboxd::simulate::bot_api::rules::Timing;
use inboxd::simulate::bot_api::update::Update;
use inboxd::simulate::bot_api::world::Confirmation;
use inboxd::simulate::bot_api::{FakeBotApi, Options, answer, token};
use inboxd::source::{Gap, QuarantineLimits, Source};
use inboxd::store::Store;

use super::database::Database;

/// The bot, and what the configuration calls it.
pub(super) const BOT: i64 = 4242;
pub(super) const NAME: &str = "support";
/// Fifty seconds of server and poller in a real one.
pub(super) const SCALE: f64 = 0.02;
/// Where the sequence of ids begins.
pub(super) const FIRST: i32 = 500_000_000;

/// One server and one inbox.
pub(super) struct Rig {
    pub(super) fake: Arc<FakeBotApi>,
    pub(super) database: Arc<Database>,
    /// For the pollers in this process.
    pub(super) pace: Pace,
    /// Id and exact bytes of all that was pushed through [`Rig::push`].
    pushed: Mutex<Vec<(i32, Bytes)>>,
}

impl Rig {
    /// Fast, with the judge of confirmations in place.
    pub(super) async fn new(database: Database) -> Rig {
        Rig::scaled(database, SCALE, 1).await
    }

    pub(super) async fn scaled(database: Database, scale: f64, seed: u64) -> Rig {
        let options = Options { timing: Timing::scaled(scale), seed, ..Options::default() };
        let fake = Arc::new(FakeBotApi::start(options).await.unwrap());
        fake.add_bot(BOT, &token::example(BOT));
        fake.change(BOT, &Change::NewSequence(Start::At(FIRST)));
        let database = Arc::new(database);
        let judge = Judge { fake: Arc::downgrade(&fake), database: Arc::clone(&database) };
        fake.on_confirm(move |confirmation| {
            tokio::runtime::Handle::current().block_on(judge.judge(confirmation))
        });
        let pace = Pace::scaled(scale).answered_within(Duration::from_secs(3));
        Rig { fake, database, pace, pushed: Mutex::default() }
    }

    /// The bot as the configuration would have it.
    pub(super) fn bot(&self) -> Telegram {
        let token = Secret::new(token::example(BOT));
        let api_url = self.fake.api_url().parse().unwrap();
        Telegram { api_url, ..Telegram::new(NAME, token) }
    }

    /// An ingester in this process, as fast as the server.
    pub(super) async fn start(&self) -> Ingester {
        self.start_with(&[self.bot()], Clock::wall()).await
    }

    pub(super) async fn start_with(&self, bots: &[Telegram], clock: Clock) -> Ingester {
        self.fake.client_starts();
        let (store, shutdown) = (self.database.open().await, Shutdown::new());
        let quarantine = QuarantineLimits { rows: 10, bytes: 1 << 20 };
        let bounds = Bounds { queue_bytes: 1 << 24, quarantine };
        let inbox = Inbox::start(store.clone(), bounds, &shutdown);
        let pollers = Pollers::new(shutdown.clone(), clock, self.pace);
        pollers.replace(bots, &inbox).await.unwrap();
        Ingester { inbox, store, pollers, shutdown }
    }

    /// Queues an update; its id.
    pub(super) fn push(&self, update: &Update) -> i32 {
        let Pushed::Stored(id) = self.fake.push(BOT, update) else { panic!("refused") };
        self.pushed.lock().unwrap().push((id, answer::wire(id, update.member())));
        id
    }

    /// Queues so many messages that differ from all others.
    pub(super) fn push_texts(&self, count: usize) {
        for _ in 0..count {
            let n = self.pushed.lock().unwrap().len();
            self.push(&Update::text(7, i64::try_from(n).unwrap(), &format!("text {n}")));
        }
    }

    /// Waits until all is committed and confirmed: nothing is queued, and the next poll is held.
    pub(super) async fn drained(&self) {
        let drained = self.fake.until(|world| {
            world.find(BOT).is_some_and(|bot| bot.queue.is_empty() && bot.is_held())
                && world.journal().in_flight() == 1
        });
        if tokio::time::timeout(Duration::from_secs(60), drained).await.is_err() {
            let entries = self.fake.journal().entries().to_vec();
            let last = &entries[entries.len().saturating_sub(12)..];
            panic!("the queue does not drain: {last:?} {:?}", self.fake.violations());
        }
    }

    /// Offset and timeout of every poll so far.
    pub(super) fn polls(&self) -> Vec<(Option<i64>, i64)> {
        let number = |text: &str| text.parse::<i64>().unwrap();
        self.fake.look(|world| {
            let polls = world.journal().polls().map(|(_, poll)| &poll.args);
            let poll = polls.map(|args| (args.get("offset").map(number), args.get("timeout")));
            poll.map(|(offset, timeout)| (offset, number(timeout.unwrap()))).collect()
        })
    }

    /// Asserts what holds after every run: nothing careless was sent, nothing confirmed that was
    /// not committed, nothing destroyed unseen, never two polls at once, always the same kinds.
    pub(super) fn assert_careful(&self) {
        assert_eq!(self.fake.violations(), Vec::<String>::new());
        let journal = self.fake.journal();
        assert!(journal.unexcused_losses().is_empty(), "{:?}", journal.unexcused_losses());
        let lists = journal.allowed_lists();
        assert!(lists.iter().all(|list| list.is_some() && *list == lists[0]), "{lists:?}");
        assert_eq!(journal.overlaps(5.0), [], "two polls at once");
    }

    /// Asserts that the inbox holds exactly what the server has delivered, each once.
    pub(super) async fn assert_delivered_is_stored(&self) {
        let mut stored: Vec<Bytes> =
            self.database.events().await.into_iter().map(|event| event.body.into()).collect();
        stored.sort_unstable();
        let delivered: Vec<Bytes> = self.fake.journal().whole_updates().into_iter().collect();
        assert_eq!(stored.len(), delivered.len(), "each of the delivered once");
        assert!(stored == delivered, "byte for byte");
    }

    /// Asserts that the inbox holds exactly what was pushed, each once.
    pub(super) async fn assert_pushed_is_stored(&self) {
        let mut stored: Vec<Bytes> =
            self.database.events().await.into_iter().map(|event| event.body.into()).collect();
        stored.sort_unstable();
        let mut pushed: Vec<Bytes> =
            self.pushed.lock().unwrap().iter().map(|(_, bytes)| bytes.clone()).collect();
        pushed.sort_unstable();
        assert_eq!(stored.len(), pushed.len(), "each of the pushed once");
        assert!(stored == pushed, "byte for byte");
    }
}

/// So many of the server's seconds.
pub(super) fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds * SCALE)
}

/// The pollers of one process and what they stand on.
pub(super) struct Ingester {
    pub(super) inbox: Arc<Inbox>,
    pub(super) store: Arc<dyn Store>,
    pub(super) pollers: Pollers,
    shutdown: Shutdown,
}

impl Ingester {
    /// Ends as a process does that is told to.
    pub(super) async fn stop(self) {
        self.shutdown.trigger_soft();
        drop((self.inbox, self.pollers));
        self.shutdown.finished(Duration::from_secs(30)).await.unwrap();
        self.store.close().await;
    }

    /// The source of that name.
    pub(super) async fn source(&self, name: &str) -> Source {
        let sources = self.store.sources().await.unwrap();
        sources.into_iter().find(|source| source.name == name).unwrap()
    }

    /// Waits until the bot's state in the store is this word; its detail.
    pub(super) async fn state_is(&self, word: &str) -> String {
        self.state_of_is(NAME, word).await
    }

    pub(super) async fn state_of_is(&self, name: &str, word: &str) -> String {
        let start = std::time::Instant::now();
        loop {
            let state = self.source(name).await.state;
            if state.name == word {
                return state.detail;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "not {word} but {state:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// All possible losses, oldest first.
    pub(super) async fn gaps(&self) -> Vec<Gap> {
        let mut gaps = self.store.gaps(None, 100_000).await.unwrap();
        gaps.reverse();
        gaps
    }
}

/// Looks, at the moment of each confirmation, whether its updates are committed.
struct Judge {
    fake: Weak<FakeBotApi>,
    database: Arc<Database>,
}

impl Judge {
    async fn judge(&self, confirmation: &Confirmation) -> Result<(), String> {
        let Some(fake) = self.fake.upgrade() else { return Ok(()) };
        let delivered: Vec<i32> =
            confirmation.updates.iter().filter(|(_, times)| *times > 0).map(|one| one.0).collect();
        for (id, bytes) in last_answers(&fake, &delivered) {
            if !self.database.holds(id, &bytes).await {
                return Err(format!("{id} is confirmed and not committed"));
            }
        }
        let offset = fake.look(|world| {
            let mut polls = world.journal().polls();
            let of = |poll: &inboxd::simulate::bot_api::journal::Received| {
                poll.args.get("offset").and_then(|text| text.parse::<i64>().ok())
            };
            polls.find(|(_, poll)| poll.request == confirmation.request).map(|(_, poll)| of(poll))
        });
        // A proxy's repetition is no request of the journal.
        let Some(offset) = offset else { return Ok(()) };
        let next_offset = self.database.next_offset().await;
        if offset == next_offset {
            return Ok(());
        }
        Err(format!("{offset:?} goes out while the store says {next_offset:?}"))
    }
}

/// The bytes of these updates as they went out last.
fn last_answers(fake: &FakeBotApi, ids: &[i32]) -> Vec<(i32, Bytes)> {
    fake.look(|world| {
        let mut missing: std::collections::HashSet<i32> = ids.iter().copied().collect();
        let mut found = Vec::new();
        for entry in world.journal().entries().iter().rev() {
            if missing.is_empty() {
                break;
            }
            let What::Answered(answered) = &entry.what else { continue };
            // A spoilt copy of an update is another update.
            let good = answered.updates.iter().filter(|(id, bytes)| {
                answered.whole && bytes.starts_with(format!("{{\"update_id\":{id},").as_bytes())
            });
            for (id, bytes) in good {
                if missing.remove(id) {
                    found.push((*id, bytes.clone()));
                }
            }
        }
        found
    })
}
