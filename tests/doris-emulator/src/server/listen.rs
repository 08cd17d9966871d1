//! Accepts connections and hands requests to the role that the listener plays.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

use super::body::{Answer, Dropped};
use super::state::State;
use super::tap::{Framing, Shared, Tap};
use super::{be, control, fe};
use crate::faults::FaultName;

/// What an FE reads and forgets after an early redirect, so that the redirect arrives. The numbers are those of
/// `stream_load_redirect_bounded_drain_max_bytes` and its time limit in Doris 4.1.
const FE_DRAIN_BYTES: usize = 16 << 20;
const FE_DRAIN_TIME: Duration = Duration::from_millis(2_000);

/// Which server a listener is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Fe { follower: bool },
    Be { number: usize },
    Control,
}

/// The head of a request with what only the socket knows.
pub(crate) struct Head {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) framing: Framing,
    pub(crate) peer: IpAddr,
}

impl Head {
    /// The path's parts between slashes; empty ones are kept.
    pub(crate) fn path(&self) -> Vec<&str> {
        self.uri.path().trim_start_matches('/').split('/').collect()
    }

    /// A query parameter, percent-decoded.
    pub(crate) fn query(&self, name: &str) -> Option<String> {
        let pairs = self.uri.query()?.split('&').filter_map(|pair| pair.split_once('=').or(Some((pair, ""))));
        pairs.filter(|(key, _)| *key == name).map(|(_, value)| percent_decode(value)).next()
    }

    /// A header's value as text; empty and unreadable ones count as absent.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let value = std::str::from_utf8(self.headers.get(name)?.as_bytes()).ok()?.trim();
        (!value.is_empty()).then_some(value)
    }

    /// Whether the client takes gzip.
    pub(crate) fn accepts_gzip(&self) -> bool {
        self.header("accept-encoding").is_some_and(|value| value.contains("gzip"))
    }
}

fn percent_decode(text: &str) -> String {
    let (mut decoded, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((&byte, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|digits| data_encoding::HEXLOWER_PERMISSIVE.decode(digits).ok());
        match (byte, code.as_deref()) {
            (b'%', Some([code])) => {
                decoded.push(*code);
                rest = after.get(2..).unwrap_or_default();
            }
            _ => {
                decoded.push(if byte == b'+' { b' ' } else { byte });
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// Serves a listener until its task is ended.
pub(crate) async fn serve(state: Arc<State>, listener: TcpListener, role: Role) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                tokio::spawn(connection(state.clone(), stream, peer.ip(), role));
            }
            Err(error) => {
                // Out of file descriptors, most likely; the next try is worth it once some are free again.
                tracing::warn!(%error, "cannot accept");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

async fn connection(state: Arc<State>, stream: TcpStream, peer: IpAddr, role: Role) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    let (tap, shared) = Tap::new(stream);
    let (socket, counter) = (shared.clone(), state.clone());
    let service = service_fn(move |request: Request<Incoming>| request_on(state.clone(), shared.clone(), request, peer, role));
    let mut server = http1::Builder::new();
    // A client may close its sending side and still read the answer; Doris's BE answers it.
    server.half_close(matches!(role, Role::Be { .. })).title_case_headers(true);
    let served = server.serve_connection(TokioIo::new(tap), service).await;
    if let Err(error) = &served {
        tracing::debug!(%error, ?role, "connection ended");
    }
    if matches!(role, Role::Fe { .. }) && socket.early_body(Duration::ZERO).await {
        if socket.note_early_body() {
            counter.count(|traffic| traffic.fe_bodies += 1);
        }
        if served.is_ok() {
            socket.drain(FE_DRAIN_BYTES, FE_DRAIN_TIME).await;
        }
    }
}

async fn request_on(state: Arc<State>, socket: Arc<Shared>, request: Request<Incoming>, peer: IpAddr, role: Role) -> Answer {
    let (parts, body) = request.into_parts();
    let head = Head { method: parts.method, uri: parts.uri, headers: parts.headers, framing: socket.framing(), peer };
    let label = head.header("label").unwrap_or_default().to_owned();
    if role != Role::Control && state.fires(FaultName::Outage, &label).is_some() {
        return Err(Dropped);
    }
    match role {
        Role::Control => control::answer(&state, &head, body).await,
        Role::Fe { follower } => fe::answer(&state, &socket, &head, follower).await,
        // A BE goes on with what it has received when the client is gone, so its work is a task of its own.
        Role::Be { number } => {
            let task = tokio::spawn(async move { be::answer_request(&state, number, &head, body).await });
            task.await.unwrap_or(Err(Dropped))
        }
    }
}
