//! Requests that are kept back after they arrived: they take effect when released, their client gone or not.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

/// A request that a hold fault keeps back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldRequest {
    /// Number to release it by.
    pub id: u64,
    /// `load`, `precommit`, `commit` or `abort`: what will happen on release.
    pub kind: String,
    /// Database of the request.
    pub db: String,
    /// Label of the load or of the transaction.
    pub label: String,
    /// Body bytes received.
    pub body_bytes: u64,
    /// Whether the body arrived in full; a load that broke off is rolled back on release.
    pub complete: bool,
}

/// All held requests.
#[derive(Debug, Default)]
pub(crate) struct Holds {
    next_id: AtomicU64,
    held: Mutex<BTreeMap<u64, (HeldRequest, oneshot::Sender<()>)>>,
}

impl Holds {
    /// A new number.
    pub(crate) fn id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Lists the request and gives what to wait for.
    pub(crate) fn keep(&self, request: HeldRequest) -> oneshot::Receiver<()> {
        let (release, released) = oneshot::channel();
        self.held.lock().unwrap_or_else(PoisonError::into_inner).insert(request.id, (request, release));
        released
    }

    /// Waits for the release, at most `limit`; zero is no limit. The request is not listed any more afterwards.
    pub(crate) async fn wait(&self, id: u64, released: oneshot::Receiver<()>, limit: Duration) {
        // Both outcomes let the request go on: a release, and a time-out.
        if limit.is_zero() {
            released.await.ok();
        } else {
            tokio::time::timeout(limit, released).await.ok();
        }
        self.held.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }

    pub(crate) fn list(&self) -> Vec<HeldRequest> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.values().map(|(request, _)| request.clone()).collect()
    }

    /// Lets one request go on, or all; returns how many.
    pub(crate) fn release(&self, id: Option<u64>) -> usize {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let ids: Vec<u64> = held.keys().copied().filter(|&it| id.is_none_or(|wanted| wanted == it)).collect();
        let sent = |id: &u64| held.remove(id).is_some_and(|(_, release)| release.send(()).is_ok());
        ids.iter().map(sent).filter(|&sent| sent).count()
    }
}
