//! How the process ends: softly, at once, or because a task of it died.
//!
//! Two stages. *Soft*: take nothing new, finish what was begun. *Hard*: drop everything now. Every
//! part watches the stages it needs; nobody calls `exit` but `main`.
//!
//! A long-lived task runs under [`Shutdown::spawn_supervised`], because a gateway whose poller or
//! store writer died while its listener still answers looks well and is not: such a task takes
//! the process down, and the exit code says so.
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Handle on the process's end; clones share one state.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    soft: CancellationToken,
    hard: CancellationToken,
    tasks: TaskTracker,
    /// The first supervised task that died, as a sentence.
    failure: Arc<OnceLock<String>>,
}

impl Shutdown {
    /// A running process: no stage reached, no task.
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits until nothing new is to be taken.
    pub async fn soft(&self) {
        self.soft.cancelled().await;
    }

    /// Waits until everything is to be dropped at once.
    pub async fn hard(&self) {
        self.hard.cancelled().await;
    }

    /// A token that is cancelled with the soft stage, or by whoever holds it.
    pub fn child(&self) -> CancellationToken {
        self.soft.child_token()
    }

    /// Whether the soft stage is reached (it is, too, once the hard one is).
    pub fn is_soft(&self) -> bool {
        self.soft.is_cancelled()
    }

    /// Whether the hard stage is reached.
    pub fn is_hard(&self) -> bool {
        self.hard.is_cancelled()
    }

    /// Begins the drain.
    pub fn trigger_soft(&self) {
        self.soft.cancel();
    }

    /// Ends everything at once; implies the soft stage.
    pub fn trigger_hard(&self) {
        self.soft.cancel();
        self.hard.cancel();
    }

    /// From now on SIGTERM and SIGINT begin the drain, and during a drain end it at once.
    ///
    /// # Errors
    /// The signal handlers could not be installed.
    pub fn listen_for_signals(&self) -> std::io::Result<()> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let shutdown = self.clone();
        tokio::spawn(async move {
            while !shutdown.is_hard() {
                let name = tokio::select! {
                    _ = terminate.recv() => "SIGTERM",
                    _ = interrupt.recv() => "SIGINT",
                };
                if shutdown.is_soft() {
                    tracing::warn!("{name} during the drain: stopping at once");
                    shutdown.trigger_hard();
                } else {
                    tracing::info!("{name}: draining; a second signal stops at once");
                    shutdown.trigger_soft();
                }
            }
        });
        Ok(())
    }

    /// Runs `task`, which lives as long as the process and ends after the soft stage.
    ///
    /// An error, a panic, or an end before the soft stage begins the drain of the whole process
    /// and makes [`Shutdown::finished`] return an error.
    pub fn spawn_supervised<F>(&self, name: &'static str, task: F)
    where
        F: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        let shutdown = self.clone();
        self.tasks.spawn(async move {
            // Unwind safety: nothing of the task is looked at after its panic.
            let failure = match AssertUnwindSafe(task).catch_unwind().await {
                Ok(Ok(())) if shutdown.is_soft() => return,
                Ok(Ok(())) => format!("{name} ended although nobody asked it to"),
                Ok(Err(error)) => format!("{name} failed: {error:#}"),
                Err(_panic) => format!("{name} panicked"),
            };
            tracing::error!("{failure}; stopping the process");
            // Only the first failure is kept, because the others mostly follow from it.
            let _ = shutdown.failure.set(failure);
            shutdown.trigger_soft();
        });
    }

    /// Waits for the soft stage and then, at most `grace`, for all supervised tasks; the hard
    /// stage is reached when it returns an error about them.
    ///
    /// # Errors
    /// A supervised task died, was not done within `grace`, or the hard stage came first. The
    /// process is then to exit with a failing code.
    pub async fn finished(&self, grace: Duration) -> anyhow::Result<()> {
        self.soft().await;
        self.tasks.close();
        let drained = tokio::select! {
            biased;
            () = self.tasks.wait() => Ok(()),
            () = self.hard() => Err(anyhow::anyhow!("stopped at once, before the drain was done")),
            () = tokio::time::sleep(grace) => {
                Err(anyhow::anyhow!("{} tasks were not done within {grace:?}", self.tasks.len()))
            }
        };
        if drained.is_err() {
            self.trigger_hard();
        }
        match self.failure.get() {
            Some(failure) => Err(anyhow::anyhow!("{failure}")),
            None => drained,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_secs(60);

    async fn failure(shutdown: &Shutdown) -> String {
        shutdown.finished(GRACE).await.unwrap_err().to_string()
    }

    #[tokio::test]
    async fn a_task_that_ends_after_the_soft_stage_is_no_failure() {
        let shutdown = Shutdown::new();
        let own = shutdown.clone();
        shutdown.spawn_supervised("poller", async move {
            own.soft().await;
            Ok(())
        });
        assert!(!shutdown.is_soft());
        shutdown.trigger_soft();
        shutdown.finished(GRACE).await.unwrap();
        assert!(!shutdown.is_hard());
    }

    #[tokio::test]
    async fn a_task_that_dies_takes_the_process_down() {
        let shutdown = Shutdown::new();
        shutdown.spawn_supervised("writer", async { anyhow::bail!("disk gone") });
        assert_eq!(failure(&shutdown).await, "writer failed: disk gone");

        let shutdown = Shutdown::new();
        shutdown.spawn_supervised("writer", async { Ok(()) });
        assert_eq!(failure(&shutdown).await, "writer ended although nobody asked it to");

        let shutdown = Shutdown::new();
        shutdown.spawn_supervised("writer", async { panic!("for the test") });
        assert_eq!(failure(&shutdown).await, "writer panicked");
    }

    #[tokio::test]
    async fn the_hard_stage_and_the_grace_end_the_wait() {
        let shutdown = Shutdown::new();
        shutdown.spawn_supervised("stuck", std::future::pending());
        shutdown.trigger_hard();
        assert!(shutdown.is_soft());
        assert_eq!(failure(&shutdown).await, "stopped at once, before the drain was done");

        let shutdown = Shutdown::new();
        shutdown.spawn_supervised("stuck", std::future::pending());
        shutdown.trigger_soft();
        let error = shutdown.finished(Duration::from_millis(1)).await.unwrap_err();
        assert_eq!(error.to_string(), "1 tasks were not done within 1ms");
        assert!(shutdown.is_hard());
    }
}
