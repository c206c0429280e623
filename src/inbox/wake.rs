//! Waking workers that wait for work: by a commit of this process at once, by everything else (a
//! lease that ran out, a delay that is over, another process's commit) within a short look.
//!
//! A worker that waits holds a place in memory and nothing in the database.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::futures::OwnedNotified;
use tokio::sync::{Notify, watch};

use crate::shutdown::Shutdown;
use crate::store::Store;

/// Between two looks for work that nobody announced.
const LOOK: Duration = Duration::from_millis(100);

/// Who waits for which consumer's work.
#[derive(Debug, Default)]
pub(super) struct Wake {
    consumers: Mutex<HashMap<String, Arc<Line>>>,
    /// Somebody began to wait.
    somebody: Notify,
    /// Changes with every commit of events.
    commits: watch::Sender<()>,
}

/// Those who wait for one consumer's work, in the order of their coming.
#[derive(Debug, Default)]
struct Line {
    waiting: AtomicUsize,
    notify: Arc<Notify>,
}

/// A place in the line, given up when dropped.
pub(super) struct Place {
    line: Arc<Line>,
}

impl Wake {
    /// Joins the line of `consumer`.
    pub(super) fn join(&self, consumer: &str) -> Place {
        let mut consumers = self.consumers.lock().unwrap_or_else(PoisonError::into_inner);
        let line = consumers.entry(consumer.to_owned()).or_default().clone();
        line.waiting.fetch_add(1, Ordering::SeqCst);
        self.somebody.notify_one();
        Place { line }
    }

    /// New work for at most `count` workers of each consumer, and something to see for whoever
    /// follows the events.
    pub(super) fn work_made(&self, count: usize) {
        if count == 0 {
            return;
        }
        self.commits.send_replace(());
        for (_, line) in self.lines() {
            for _ in 0..count.min(line.waiting.load(Ordering::SeqCst)) {
                line.notify.notify_one();
            }
        }
    }

    /// There may be something to claim for one more worker of `consumer`: a lane became free, or a
    /// claim left something.
    pub(super) fn perhaps(&self, consumer: &str) {
        let consumers = self.consumers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = consumers.get(consumer)
            && line.waiting.load(Ordering::SeqCst) > 0
        {
            line.notify.notify_one();
        }
    }

    /// Changes with every commit of events from now on.
    pub(super) fn commits(&self) -> watch::Receiver<()> {
        self.commits.subscribe()
    }

    /// The lines that somebody stands in.
    fn lines(&self) -> Vec<(String, Arc<Line>)> {
        let consumers = self.consumers.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = consumers.iter().filter(|(_, line)| line.waiting.load(Ordering::SeqCst) > 0);
        waited.map(|(name, line)| (name.clone(), line.clone())).collect()
    }

    /// Looks for unannounced work while anybody waits, until `shutdown` is soft.
    pub(super) async fn run(
        self: Arc<Self>,
        store: Arc<dyn Store>,
        shutdown: Shutdown,
    ) -> anyhow::Result<()> {
        loop {
            let lines = self.lines();
            for (name, line) in &lines {
                // A store that fails is told of by those who claim.
                if let Ok(Some(Duration::ZERO)) = store.next_due(name).await {
                    line.notify.notify_one();
                }
            }
            let pause = async {
                match lines.is_empty() {
                    true => self.somebody.notified().await,
                    false => tokio::time::sleep(LOOK).await,
                }
            };
            tokio::select! {
                () = pause => {}
                () = shutdown.soft() => return Ok(()),
            }
        }
    }
}

impl Place {
    /// Completes at the next call of this place in the line. Calls count from now on, so ask
    /// first, then claim, then wait.
    pub(super) fn called(&self) -> Pin<Box<OwnedNotified>> {
        let mut called = Box::pin(self.line.notify.clone().notified_owned());
        called.as_mut().enable();
        called
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.line.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}
