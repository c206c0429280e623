//! The world behind its lock, the real time beside it, and who is told of what it brings about.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::bot::RequestId;
use super::call::Call;
use super::rules::Seconds;
use super::token::BotKey;
use super::wire;
use super::world::{Answer, Confirmation, Effect, World};

/// Judges a confirmation before its answer goes out; an `Err` or a panic is a violation.
pub type OnConfirm = dyn Fn(&Confirmation) -> Result<(), String> + Send + Sync;

/// What the tasks of one fake have in common.
pub(super) struct Shared {
    world: Mutex<World>,
    waiting: Mutex<HashMap<RequestId, oneshot::Sender<Answer>>>,
    effects: mpsc::UnboundedSender<Effect>,
    pub(super) on_confirm: Mutex<Option<Arc<OnConfirm>>>,
    started: Instant,
    scale: f64,
    /// Counts the steps, so that a waiter looks again after each.
    pub(super) changed: watch::Sender<u64>,
    /// Counts the requests processed.
    pub(super) processed: watch::Sender<u64>,
    /// Bots whose requests have to wait as they arrive.
    pub(super) gates: watch::Sender<Vec<BotKey>>,
    /// Whether connections are wanted, and whether they are taken.
    pub(super) listen: watch::Sender<bool>,
    pub(super) listening: watch::Sender<bool>,
    /// How many of the next connections are closed as they come.
    pub(super) refusals: Mutex<u64>,
    /// Cancelled to reset every connection there is.
    connections: Mutex<CancellationToken>,
    pub(super) stop: CancellationToken,
    pub(super) tasks: TaskTracker,
}

impl Shared {
    pub(super) fn new(world: World) -> Arc<Self> {
        let (effects, receiver) = mpsc::unbounded_channel();
        let shared = Arc::new(Self {
            scale: world.timing.scale,
            world: Mutex::new(world),
            waiting: Mutex::default(),
            effects,
            on_confirm: Mutex::default(),
            started: Instant::now(),
            changed: watch::Sender::new(0),
            processed: watch::Sender::new(0),
            gates: watch::Sender::new(Vec::new()),
            listen: watch::Sender::new(true),
            listening: watch::Sender::new(true),
            refusals: Mutex::new(0),
            connections: Mutex::default(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        });
        shared.tasks.spawn(deliver_effects(Arc::clone(&shared), receiver));
        shared.tasks.spawn(keep_time(Arc::clone(&shared)));
        shared
    }

    /// The server's time.
    pub(super) fn now(&self) -> Seconds {
        self.started.elapsed().as_secs_f64() / self.scale
    }

    /// The real moment of the server's `at`.
    fn instant(&self, at: Seconds) -> Instant {
        self.started + self.real(at)
    }

    /// The real length of so many of the server's seconds.
    pub(super) fn real(&self, seconds: Seconds) -> Duration {
        Duration::try_from_secs_f64(seconds * self.scale).unwrap_or(Duration::MAX / 4)
    }

    pub(super) async fn sleep_until(&self, at: Seconds) {
        tokio::time::sleep_until(self.instant(at)).await;
    }

    /// Changes the world at the present moment, and hands on what that brings about.
    pub(super) fn act<R>(&self, step: impl FnOnce(&mut World, Seconds) -> R) -> R {
        let mut world = locked(&self.world);
        let now = self.now();
        world.advance(now);
        let result = step(&mut world, now);
        // Sent under the lock, so that effects are in the order of the steps. An error says that
        // the fake is shutting down.
        for effect in world.take_effects() {
            let _ = self.effects.send(effect);
        }
        drop(world);
        self.changed.send_modify(|steps| *steps += 1);
        result
    }

    /// Looks at the world without changing it.
    pub(super) fn look<R>(&self, look: impl FnOnce(&World) -> R) -> R {
        look(&locked(&self.world))
    }

    /// Processes a request and waits for its answer; `None` if there will be none.
    pub(super) async fn process(&self, request: RequestId, call: &Call) -> Option<Answer> {
        let (sender, receiver) = oneshot::channel();
        locked(&self.waiting).insert(request, sender);
        self.act(|world, now| world.handle(request, call, now));
        self.processed.send_modify(|count| *count += 1);
        receiver.await.ok()
    }

    /// Cancelled when the connections of the present time are reset.
    pub(super) fn connections(&self) -> CancellationToken {
        locked(&self.connections).clone()
    }

    /// Resets every connection there is.
    pub(super) fn break_connections(&self) {
        std::mem::take(&mut *locked(&self.connections)).cancel();
    }

    /// Lets nothing listen for so long; returns as soon as nothing does.
    pub(super) async fn go_down(self: &Arc<Self>, lasting: Seconds) {
        let over = Instant::now() + self.real(lasting);
        self.listen.send_replace(false);
        let shared = Arc::clone(self);
        self.tasks.spawn(async move {
            tokio::select! {
                () = tokio::time::sleep_until(over) => {}
                () = shared.stop.cancelled() => {}
            }
            shared.listen.send_replace(true);
        });
        let mut listening = self.listening.subscribe();
        // Until it is over at the latest, because someone else may have it listen before.
        let _ = tokio::time::timeout_at(over, listening.wait_for(|listening| !listening)).await;
    }

    /// Whether the connection that comes now is to be closed at once.
    pub(super) fn refuses(&self, stream: &TcpStream) -> bool {
        let mut refusals = locked(&self.refusals);
        let refused = *refusals > 0;
        if refused {
            *refusals -= 1;
            wire::reset(stream);
        }
        refused
    }
}

/// What a panicking test leaves behind is still good enough to look at.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One effect after another, so that no answer passes the judgement of a confirmation before it.
async fn deliver_effects(shared: Arc<Shared>, mut effects: mpsc::UnboundedReceiver<Effect>) {
    loop {
        let effect = tokio::select! {
            biased;
            effect = effects.recv() => effect,
            () = shared.stop.cancelled() => None,
        };
        match effect {
            None => return,
            Some(Effect::Confirmed(confirmation)) => judge(&shared, confirmation).await,
            Some(Effect::Answered(answer)) => {
                let waiting = locked(&shared.waiting).remove(&answer.request);
                // Nobody waits for the answer to a proxy's repetition.
                let _ = waiting.map(|sender| sender.send(answer));
            }
        }
    }
}

async fn judge(shared: &Shared, confirmation: Confirmation) {
    let Some(on_confirm) = locked(&shared.on_confirm).clone() else { return };
    let request = confirmation.request;
    // On a thread of its own, because it is free to block on a database.
    let judged = tokio::task::spawn_blocking(move || on_confirm(&confirmation)).await;
    let complaint = match judged {
        Ok(Ok(())) => return,
        Ok(Err(complaint)) => complaint,
        Err(_) => "the check of a confirmation panicked".to_owned(),
    };
    shared.act(|world, _| world.violations.push(format!("request {request}: {complaint}")));
}

/// Answers held requests when they are due.
async fn keep_time(shared: Arc<Shared>) {
    let mut changed = shared.changed.subscribe();
    loop {
        changed.mark_unchanged();
        let due = shared.look(World::next_due);
        let wait = async {
            match due {
                Some(due) => shared.sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = wait => shared.act(|_, _| ()),
            _ = changed.changed() => {}
            () = shared.stop.cancelled() => return,
        }
    }
}
