//! Connections that wait for their next request. Each instance has its own, so that dropping it closes all of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use hyper::client::conn::http1::SendRequest;
use tokio::sync::watch;
use tokio::time::Instant;

use super::body::SentBody;
use crate::capabilities::HostPort;
use crate::limits::{HTTP_IDLE_LIMIT, HTTP_REUSE_LIMIT};

/// Where a connection goes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Endpoint {
    pub(super) address: HostPort,
    pub(super) tls: bool,
}

/// The idle connections of one instance.
pub(super) struct Pool {
    idle: Mutex<HashMap<Endpoint, Vec<Idle>>>,
}

struct Idle {
    sender: SendRequest<SentBody>,
    since: Instant,
}

impl Pool {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { idle: Mutex::new(HashMap::new()) })
    }

    /// A connection that can take a request now, if there is one.
    pub(super) async fn take(&self, endpoint: &Endpoint) -> Option<SendRequest<SentBody>> {
        loop {
            let idle = self.lock().get_mut(endpoint)?.pop()?;
            if idle.since.elapsed() > HTTP_IDLE_LIMIT || idle.sender.is_closed() {
                continue;
            }
            let mut sender = idle.sender;
            // The connection's task may not yet have seen that the last response is over.
            if let Ok(Ok(())) = tokio::time::timeout(HTTP_REUSE_LIMIT, sender.ready()).await {
                return Some(sender);
            }
        }
    }

    /// Lends a connection to a response until its body has been read.
    pub(super) fn lease(
        self: &Arc<Self>,
        endpoint: Endpoint,
        sender: SendRequest<SentBody>,
        request_ended: watch::Receiver<bool>,
    ) -> Lease {
        Lease { pool: self.clone(), endpoint, sender, request_ended }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Endpoint, Vec<Idle>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection in use.
pub(super) struct Lease {
    pool: Arc<Pool>,
    endpoint: Endpoint,
    sender: SendRequest<SentBody>,
    request_ended: watch::Receiver<bool>,
}

impl Lease {
    /// Back to the idle ones, unless its request is not over: then nothing can follow on it.
    pub(super) fn give_back(self) {
        let request_is_over = *self.request_ended.borrow();
        if request_is_over && !self.sender.is_closed() {
            let mut idle = self.pool.lock();
            let same = idle.entry(self.endpoint).or_default();
            same.retain(|idle| idle.since.elapsed() <= HTTP_IDLE_LIMIT && !idle.sender.is_closed());
            same.push(Idle { sender: self.sender, since: Instant::now() });
        }
    }
}
