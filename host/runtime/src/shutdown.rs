//! Tell, drain, wait: how a host that is asked to stop does so.

use tokio::sync::watch;

/// How far stopping has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Running,
    /// Finish the epoch under way, commit it, and end.
    Finishing,
    /// End now; the next start settles the rest.
    Now,
}

/// Asks for the stop. One a host.
#[derive(Debug)]
pub struct Stopper {
    stage: watch::Sender<Stage>,
}

/// Hears of it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Shutdown {
    stage: watch::Receiver<Stage>,
}

/// A stopper, and what listens to it.
pub fn channel() -> (Stopper, Shutdown) {
    let (sender, receiver) = watch::channel(Stage::Running);
    (Stopper { stage: sender }, Shutdown { stage: receiver })
}

impl Stopper {
    /// Asks every pipeline to finish its epoch. A second time: to end without waiting.
    pub fn ask(&self) {
        self.stage.send_modify(|stage| {
            *stage = match stage {
                Stage::Running => Stage::Finishing,
                Stage::Finishing | Stage::Now => Stage::Now,
            }
        });
    }

    /// Asks every pipeline to end without waiting for anything.
    pub fn now(&self) {
        self.stage.send_replace(Stage::Now);
    }
}

impl Shutdown {
    /// Has a stop been asked for?
    pub fn asked(&self) -> bool {
        *self.stage.borrow() >= Stage::Finishing
    }

    /// Returns when a stop is asked for.
    pub async fn wait(&self) {
        self.reached(Stage::Finishing).await;
    }

    /// Returns when waiting is over, too.
    pub async fn wait_now(&self) {
        self.reached(Stage::Now).await;
    }

    async fn reached(&self, wanted: Stage) {
        let mut stage = self.stage.clone();
        if stage.wait_for(|stage| *stage >= wanted).await.is_err() {
            // The stopper is gone, so nobody can ask any more.
            std::future::pending::<()>().await;
        }
    }
}

/// Listens for SIGINT and SIGTERM and asks for the stop: once, the epoch is finished; twice, it is not.
pub async fn listen_for_signals(stopper: Stopper) -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    loop {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        tracing::info!("stopping: the epoch under way is finished and committed first; a second signal ends at once");
        stopper.ask();
    }
}
