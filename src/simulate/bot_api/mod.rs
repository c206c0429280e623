//! A Telegram Bot API server that behaves like the real one where `getUpdates` is concerned, and
//! misbehaves on demand.
//!
//! The rules are those of the official server's source (`tdlib/telegram-bot-api` 10.0 and its
//! queue in `tdlib/td`): what an `offset` deletes, who gets a 409 and when, which arguments are
//! understood how. [`World`] is the server without sockets, with time as an argument;
//! [`FakeBotApi`] puts it on a loopback port in scaled real time.
//!
//! ```no_run
//! # async fn example() -> std::io::Result<()> {
//! use inboxd::simulate::bot_api::{FakeBotApi, Options, fault::{Action, Net}, selector::Selector,
//!     token, update::Update};
//!
//! let fake = FakeBotApi::start(Options::default()).await?;
//! fake.add_bot(42, &token::example(42));
//! fake.push(42, &Update::text(7, 1, "hello"));
//! fake.arm(Selector::polls().nth(2), Action::Net(Net::Reset));
//! println!("{}", fake.api_url());
//! # Ok(())
//! # }
//! ```

pub mod answer;
pub mod args;
pub mod barrier;
pub mod bot;
pub mod call;
pub mod change;
mod connection;
pub mod fault;
pub mod journal;
pub mod kind;
mod lint;
pub mod odd;
mod oracle;
mod outgoing;
pub mod queue;
pub mod request;
pub mod rules;
pub mod sample;
pub mod selector;
mod server;
mod shared;
pub mod token;
pub mod update;
mod wire;
pub mod world;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

pub use oracle::Overlap;
pub use shared::OnConfirm;

use barrier::{Barrier, Point};
use change::Change;
use fault::Action;
use journal::Journal;
use queue::Pushed;
use rules::{Seconds, Timing};
use selector::Selector;
use shared::{Shared, locked};
use token::BotKey;
use update::Update;
use world::{Confirmation, World};

/// How a fake is set up.
#[derive(Clone, Debug)]
pub struct Options {
    /// The port on the loopback interface; 0 is any free one.
    pub port: u16,
    /// The server's durations.
    pub timing: Timing,
    /// Where random draws start.
    pub seed: u64,
}

impl Default for Options {
    /// Any port, and fifty of the server's seconds in a real one.
    fn default() -> Self {
        Self { port: 0, timing: Timing::scaled(0.02), seed: 1 }
    }
}

/// A running fake. Dropped, it stops.
pub struct FakeBotApi {
    shared: Arc<Shared>,
    address: SocketAddr,
}

impl FakeBotApi {
    /// Starts listening. The error is the port's.
    pub async fn start(options: Options) -> io::Result<Self> {
        let port = server::Port::reserve(options.port)?;
        let address = port.address();
        let listener = port.listen()?;
        let shared = Shared::new(World::new(options.timing, options.seed));
        shared.tasks.spawn(server::serve(Arc::clone(&shared), port, listener));
        Ok(Self { shared, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base URL for a client, without a slash at its end.
    pub fn api_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The server's time.
    pub fn now(&self) -> Seconds {
        self.shared.now()
    }

    /// Changes anything in the world at the present moment.
    pub fn act<R>(&self, step: impl FnOnce(&mut World, Seconds) -> R) -> R {
        self.shared.act(step)
    }

    /// Looks at anything in the world.
    pub fn look<R>(&self, look: impl FnOnce(&World) -> R) -> R {
        self.shared.look(look)
    }

    /// Waits until the world is such that `is_so`. It is asked after every step, so a test puts
    /// a time limit around this and needs no pause of its own.
    pub async fn until(&self, is_so: impl Fn(&World) -> bool) {
        let mut changed = self.shared.changed.subscribe();
        // An error cannot happen as long as `self` holds the sender.
        while !self.look(&is_so) && changed.changed().await.is_ok() {}
    }

    /// Makes `token` good for a bot; an earlier one stays good.
    pub fn add_bot(&self, bot: impl Into<BotKey>, token: &str) {
        self.act(|world, now| world.add_token(bot, token, now));
    }

    /// Queues an update.
    pub fn push(&self, bot: impl Into<BotKey>, update: &Update) -> Pushed {
        self.act(|world, now| world.push(bot, update, now))
    }

    /// Queues many updates in one step; the ids of those stored.
    pub fn push_all<'a>(
        &self,
        bot: impl Into<BotKey>,
        updates: impl IntoIterator<Item = &'a Update>,
    ) -> Vec<i32> {
        let bot = bot.into();
        self.act(|world, now| {
            updates.into_iter().filter_map(|update| world.push(bot, update, now).id()).collect()
        })
    }

    /// Lets something happen behind the client's back.
    pub fn change(&self, bot: impl Into<BotKey>, change: &Change) {
        self.act(|world, now| world.change(bot, change, now));
    }

    /// How many updates are queued.
    pub fn pending(&self, bot: impl Into<BotKey>) -> usize {
        self.look(|world| world.find(bot).map_or(0, |bot| bot.queue.len()))
    }

    /// Arms a fault.
    pub fn arm(&self, selector: Selector, action: Action) {
        self.act(|world, _| world.arm(selector, action));
    }

    /// Disarms every fault. What is under way goes on.
    pub fn clear_faults(&self) {
        self.act(|world, _| world.clear_faults());
    }

    /// Stops the first request that `selector` strikes at a point.
    pub fn barrier(&self, point: Point, selector: Selector) -> Barrier {
        let (barrier, arrival) = barrier::barrier(point);
        self.arm(selector.once(), Action::Stop(arrival));
        barrier
    }

    /// Has every confirmation judged before its answer goes out, on a thread that may block, so
    /// that `Handle::current().block_on` can ask a database there. An `Err` or a panic is a
    /// violation.
    pub fn on_confirm(
        &self,
        judge: impl Fn(&Confirmation) -> Result<(), String> + Send + Sync + 'static,
    ) {
        *locked(&self.shared.on_confirm) = Some(Arc::new(judge));
    }

    /// Says that a process of the client is being started, or takes over, whose first call may
    /// hold whatever offset its store says. A test that kills says it at each start.
    pub fn client_starts(&self) {
        self.act(|world, _| world.client_starts());
    }

    /// A copy of what happened so far; [`Self::look`] asks a long one without copying it.
    pub fn journal(&self) -> Journal {
        self.look(|world| world.journal().clone())
    }

    /// What the strict lint and the judge of confirmations have found. A test asserts that it is
    /// empty.
    pub fn violations(&self) -> Vec<String> {
        self.look(|world| world.violations().to_vec())
    }

    /// Stops listening; connections are refused and those there are go on.
    pub async fn refuse_connections(&self) {
        self.listen(false).await;
    }

    /// Listens again on the same port.
    pub async fn accept_connections(&self) {
        self.listen(true).await;
    }

    async fn listen(&self, wanted: bool) {
        let mut listening = self.shared.listening.subscribe();
        self.shared.listen.send_replace(wanted);
        // An error cannot happen as long as `self` holds the sender.
        let _ = listening.wait_for(|listening| *listening == wanted).await;
    }

    /// Resets every connection there is, as a server that dies does.
    pub fn break_connections(&self) {
        self.shared.break_connections();
    }

    /// Resets each of the next `count` connections as it comes.
    pub fn refuse_next(&self, count: u64) {
        *locked(&self.shared.refusals) = count;
    }

    /// Stops and waits until no task is left.
    pub async fn shut_down(self) {
        self.shared.stop.cancel();
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }
}

impl Drop for FakeBotApi {
    fn drop(&mut self) {
        self.shared.stop.cancel();
    }
}
