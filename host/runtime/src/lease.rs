//! Holding the ledger's lease: one host at a time runs the pipelines of a ledger.
//!
//! Safety does not rest on it (the generation in the ledger does that); it keeps two hosts from getting in each other's way, and a host that has
//! lost it from starting calls.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use weir_ledger::{Holder, LeaseAnswer, Ledger, LedgerError};

use crate::clock;

/// How long a holder may be silent before another host takes its place.
pub const LEASE_PERIOD: Duration = Duration::from_secs(10);
/// How often the holder shows that it lives.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(2);
/// How often a host that waits looks at the holder's counter.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// A lease that is held and kept alive by a task.
#[derive(Clone, Debug)]
pub struct Lease {
    state: watch::Receiver<State>,
}

#[derive(Clone, Debug)]
enum State {
    /// No call may be started after this.
    Until(Instant),
    /// Somebody else holds it.
    Lost(String),
}

/// Why a call may not be started.
#[derive(Clone, Debug, thiserror::Error)]
#[error("this host no longer holds the ledger's lease: {0}")]
pub struct LeaseLost(pub String);

/// Takes the lease. A holder that lives is reported at once, or rather as soon as its counter has been seen to move; one that is provably
/// dead, or silent for [`LEASE_PERIOD`], is replaced.
pub async fn take(ledger: &Arc<dyn Ledger>, holder: &Holder) -> Result<Result<Lease, Holder>, LedgerError> {
    let since = clock::now();
    let mut sent = since;
    let mut first = ledger.take_lease(holder, None).await?;
    while let LeaseAnswer::Held { holder: other, counter } = &first {
        let silent = clock::now().duration_since(since) >= LEASE_PERIOD;
        sent = clock::now();
        let stale = silent.then_some(&first);
        match ledger.take_lease(holder, stale).await? {
            LeaseAnswer::Taken => first = LeaseAnswer::Taken,
            LeaseAnswer::Held { holder: now, counter: counted } if now != *other || counted != *counter => return Ok(Err(now)),
            LeaseAnswer::Held { .. } => clock::sleep(LOOK_EVERY).await,
        }
    }
    let (sender, receiver) = watch::channel(State::Until(sent + LEASE_PERIOD));
    tokio::spawn(keep(ledger.clone(), holder.clone(), sender));
    Ok(Ok(Lease { state: receiver }))
}

/// Beats until nobody holds a [`Lease`] any more, or until it is lost.
async fn keep(ledger: Arc<dyn Ledger>, holder: Holder, state: watch::Sender<State>) {
    loop {
        tokio::select! {
            () = state.closed() => return,
            () = clock::sleep(HEARTBEAT_EVERY) => {}
        }
        // Counted from before it was sent: the ledger may have written it at any time after.
        let sent = clock::now();
        match ledger.heartbeat(&holder).await {
            Ok(()) => {
                state.send_replace(State::Until(sent + LEASE_PERIOD));
            }
            Err(LedgerError::LeaseLost { holder }) => {
                state.send_replace(State::Lost(format!("held by {holder}")));
                return;
            }
            Err(error @ LedgerError::Unavailable { .. }) => tracing::warn!(%error, "cannot renew the ledger's lease; trying again"),
            // The ledger is not what it was: nothing that this host still does would be recorded in it.
            Err(error) => {
                state.send_replace(State::Lost(error.to_string()));
                return;
            }
        }
    }
}

impl Lease {
    /// Returns when a call may be started: at once while heartbeats are answered. Awaited before every call to a plugin that changes something at
    /// a target. A ledger that is silent for long only stalls; the generation tells afterwards whether anything has changed.
    pub async fn ready(&self) -> Result<(), LeaseLost> {
        let mut state = self.state.clone();
        loop {
            match &*state.borrow_and_update() {
                State::Until(deadline) if clock::now() < *deadline => return Ok(()),
                State::Until(_) => {}
                State::Lost(to) => return Err(LeaseLost(to.clone())),
            }
            if state.changed().await.is_err() {
                return Err(LeaseLost("its keeper has ended".to_owned()));
            }
        }
    }

    /// Returns when the lease is lost for good.
    pub async fn lost(&self) -> LeaseLost {
        let mut state = self.state.clone();
        let lost = match state.wait_for(|state| matches!(state, State::Lost(_))).await.as_deref() {
            Ok(State::Lost(to)) => Some(to.clone()),
            Ok(State::Until(_)) | Err(_) => None,
        };
        match lost {
            Some(to) => LeaseLost(to),
            None => std::future::pending().await,
        }
    }
}
