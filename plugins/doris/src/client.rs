//! Requests to a Doris cluster: which server, what a redirect means, when the next server is asked, and for how long.

use std::time::Duration;

use crate::bindings::weir::sink::types::{Error, ErrorKind};
use crate::config::Config;
use crate::endpoint::{Endpoint, EndpointError, encode};
use crate::error::{ErrorExt, refused, unavailable};
use crate::reply::{LabelState, Reply};
use crate::transport::{Limits, Method, Request, Response, Transport, TransportError};
use crate::verdict::refusal;

/// Redirects followed for one request: a follower to its master, the master to a back end, and one to spare.
const HOP_LIMIT: usize = 3;
/// First pause between tries of one request; it doubles up to [`PAUSE_LIMIT`].
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Longest pause between tries.
const PAUSE_LIMIT: Duration = Duration::from_secs(2);
/// Tries of one request within a call of the sink. The host repeats calls for longer than that.
pub(crate) const TRY_LIMIT: u32 = 8;
/// Part of the host's limit for a call that is left unused: an answer that comes after the limit is no answer.
const SPARE_PART: u64 = 10;
/// Part of a call kept for asking what became of a label after everything else failed.
const RESOLVE_PART: u64 = 5;

/// When the running call of the sink must be over, on the transport's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Deadline {
    at_ms: u64,
    /// The same, less the time to resolve a label.
    work_until_ms: u64,
}

impl Deadline {
    /// Time by which tries must have ended so that a label can still be resolved.
    pub(crate) fn work_until_ms(self) -> u64 {
        self.work_until_ms
    }
}

/// Speaks to one Doris cluster as one user.
pub(crate) struct Client<T> {
    pub(crate) transport: T,
    pub(crate) config: Config,
    call_limit_ms: u64,
    front_end: usize,
    back_end: usize,
}

/// Why one server gave no usable answer.
enum Failed {
    /// Another server may do better.
    Here(Error),
    /// Every server would say the same.
    Everywhere(Error),
}

impl<T: Transport> Client<T> {
    /// `start` spreads lanes over the servers.
    pub(crate) fn new(transport: T, config: Config, call_limit_ms: u32, start: u32) -> Self {
        let start = start as usize;
        Self { transport, config, call_limit_ms: u64::from(call_limit_ms.max(1)), front_end: start, back_end: start }
    }

    /// The deadline of a call that starts now.
    pub(crate) fn start_call(&self) -> Deadline {
        let usable = self.call_limit_ms - self.call_limit_ms / SPARE_PART;
        let now = self.transport.now_ms();
        Deadline { at_ms: now + usable, work_until_ms: now + usable - usable / RESOLVE_PART }
    }

    /// Time-outs of a short request that must be over by `until_ms`.
    fn limits(&self, until_ms: u64) -> Result<Limits, Error> {
        let left = until_ms.saturating_sub(self.transport.now_ms());
        if left == 0 {
            return Err(unavailable("the host's limit for a call was reached"));
        }
        let total_ms = self.config.request_timeout_ms.min(self.call_limit_ms.div_ceil(2)).min(left);
        Ok(Limits { connect_ms: self.config.connect_timeout_ms.min(total_ms), total_ms })
    }

    /// Waits before try number `attempt + 1`, longer each time. False when tries or time are used up.
    pub(crate) fn wait_for_another_try(&self, attempt: u32, deadline: Deadline) -> bool {
        let pause = FIRST_PAUSE.saturating_mul(1 << attempt.min(10)).min(PAUSE_LIMIT).as_millis() as u64;
        if attempt + 1 >= TRY_LIMIT || self.transport.now_ms() + pause >= deadline.work_until_ms {
            return false;
        }
        self.transport.pause(pause);
        true
    }

    /// The server for a load's body: one of the back ends in the config, else where a front end sends these headers.
    pub(crate) fn load_server(&mut self, path: &str, headers: &[(String, String)], deadline: Deadline) -> Result<Endpoint, Error> {
        if let Some(server) = self.next_back_end() {
            return Ok(server);
        }
        self.try_front_ends(|client, server| {
            let request = Request { method: Method::Put, server, path: path.to_owned(), headers: no_body(headers) };
            client.locate(request, deadline.work_until_ms)
        })
    }

    /// One try of a two-phase commit request. An error says nothing about its outcome.
    pub(crate) fn two_phase(&mut self, database: &str, headers: &[(String, String)], deadline: Deadline) -> Result<Reply, Error> {
        let path = format!("/api/{}/_stream_load_2pc", encode(database));
        let until_ms = deadline.work_until_ms;
        let send = |client: &mut Self, server: Endpoint| {
            let request = Request { method: Method::Put, server, path: path.clone(), headers: no_body(headers) };
            client.follow(request, until_ms).map(|response| Reply::of(&response))
        };
        match self.next_back_end() {
            Some(server) => send(self, server).map_err(Failed::into_error),
            None => self.try_front_ends(send),
        }
    }

    /// What became of the label's latest transaction. Uses the part of the call that is kept for it.
    pub(crate) fn label_state(&mut self, database: &str, label: &str, deadline: Deadline) -> Result<LabelState, Error> {
        let path = format!("/api/{}/get_load_state?label={}", encode(database), encode(label));
        let reply = self.get(&path, deadline)?;
        let state = match &reply {
            Reply::Entity { code: 0, data, .. } => data.as_str().and_then(LabelState::parse),
            Reply::Entity { .. } | Reply::Load(_) | Reply::Short { .. } | Reply::Other { .. } => None,
        };
        state.ok_or_else(|| refusal(&reply).while_doing(&format!("Doris does not tell the state of label {label}")))
    }

    /// A GET that any front end answers.
    fn get(&mut self, path: &str, deadline: Deadline) -> Result<Reply, Error> {
        self.try_front_ends(|client, server| client.get_one(server, path, deadline))
    }

    /// A GET that this front end, or the master it names, answers.
    pub(crate) fn get_from(&self, server: &Endpoint, path: &str, deadline: Deadline) -> Result<Reply, Error> {
        self.get_one(server.clone(), path, deadline).map_err(Failed::into_error)
    }

    fn get_one(&self, server: Endpoint, path: &str, deadline: Deadline) -> Result<Reply, Failed> {
        let request = Request { method: Method::Get, server, path: path.to_owned(), headers: self.identity() };
        self.follow(request, deadline.at_ms).map(|response| Reply::of(&response))
    }

    /// Fetches the start of a list of bad rows, without credentials. Best effort: whatever goes wrong is nothing found. Only from the server that
    /// took the load, or one that the config names: an address that is not granted would be a second error in place of the first.
    pub(crate) fn error_log(&self, url: &str, loaded: &Endpoint, deadline: Deadline) -> Option<String> {
        let (server, path) = Endpoint::of_error_log(url, &self.config.addresses)?;
        if server != *loaded && !self.config.be.contains(&server) {
            return None;
        }
        let request = Request { method: Method::Get, server, path, headers: vec![] };
        let response = self.transport.exchange(&request, self.limits(deadline.at_ms).ok()?).ok()?;
        (response.status == 200).then(|| String::from_utf8_lossy(&response.body).into_owned())
    }

    /// Time-outs of a load, whose connection lives as long as the epoch.
    pub(crate) fn load_limits(&self) -> Limits {
        let total_ms = u64::from(self.config.load_timeout_s) * 1_000 + self.call_limit_ms;
        Limits { connect_ms: self.config.connect_timeout_ms, total_ms }
    }

    /// Headers that every request to Doris has.
    pub(crate) fn identity(&self) -> Vec<(String, String)> {
        vec![("Authorization".into(), self.config.authorization.clone()), ("Accept-Encoding".into(), "identity".into())]
    }

    fn next_back_end(&mut self) -> Option<Endpoint> {
        let count = self.config.be.len();
        let server = self.config.be.get(self.back_end.checked_rem(count)?).cloned();
        self.back_end = self.back_end.wrapping_add(1);
        server
    }

    /// Asks front ends in turn, beginning with the one that answered last, until one answers or each was asked once.
    fn try_front_ends<R>(&mut self, mut ask: impl FnMut(&mut Self, Endpoint) -> Result<R, Failed>) -> Result<R, Error> {
        let mut failures: Vec<Error> = Vec::new();
        for _ in 0..self.config.fe.len() {
            let Some(server) = self.config.fe.get(self.front_end % self.config.fe.len()).cloned() else { break };
            match ask(self, server) {
                Ok(answer) => return Ok(answer),
                Err(Failed::Everywhere(error)) => return Err(error),
                Err(Failed::Here(error)) => failures.push(error),
            }
            self.front_end = self.front_end.wrapping_add(1);
        }
        Err(one_of(failures))
    }

    /// Sends a request and follows redirects with all its headers.
    fn follow(&self, mut request: Request, until_ms: u64) -> Result<Response, Failed> {
        for _ in 0..=HOP_LIMIT {
            let response = self.send(&request, until_ms)?;
            match self.redirected(&request, &response)? {
                Some(server) => request.server = server,
                None => return Ok(response),
            }
        }
        Err(Failed::Here(unavailable(format!("Doris redirected more than {HOP_LIMIT} times"))))
    }

    /// Sends a load's headers to a front end and answers where it sends the body. Nothing is loaded by this.
    fn locate(&self, mut request: Request, until_ms: u64) -> Result<Endpoint, Failed> {
        for _ in 0..HOP_LIMIT {
            let response = self.send(&request, until_ms)?;
            match self.redirected(&request, &response)? {
                Some(server) if self.config.fe.contains(&server) => request.server = server,
                Some(server) => return Ok(server),
                None => {
                    let error = refusal(&Reply::of(&response)).while_doing(&format!("{} refuses the load", request.server.authority));
                    let for_all = error.kind == ErrorKind::Refused;
                    return Err(if for_all { Failed::Everywhere(error) } else { Failed::Here(error) });
                }
            }
        }
        Err(Failed::Here(unavailable(format!("front ends redirected to each other more than {HOP_LIMIT} times"))))
    }

    fn send(&self, request: &Request, until_ms: u64) -> Result<Response, Failed> {
        let limits = self.limits(until_ms).map_err(Failed::Everywhere)?;
        self.transport.exchange(request, limits).map_err(|error| Failed::Here(transport_error(&error)))
    }

    /// Where a response redirects to. Only 307 and 308 keep the method, and Doris sends 307.
    fn redirected(&self, request: &Request, response: &Response) -> Result<Option<Endpoint>, Failed> {
        if !matches!(response.status, 307 | 308) {
            return Ok(None);
        }
        self.redirect_of(request, response.location.as_deref()).map(Some).map_err(|error| Failed::Everywhere(redirect_error(&error)))
    }

    /// Where `location` leads for `request`, by the rules of the config.
    pub(crate) fn redirect_of(&self, request: &Request, location: Option<&str>) -> Result<Endpoint, EndpointError> {
        let path = request.path.split('?').next().unwrap_or_default();
        request.server.redirect(location, path, &self.config.addresses)
    }
}

impl Failed {
    fn into_error(self) -> Error {
        match self {
            Self::Here(error) | Self::Everywhere(error) => error,
        }
    }
}

/// The contract's error for a request that got no answer.
pub(crate) fn transport_error(error: &TransportError) -> Error {
    match error {
        TransportError::NotGranted { .. } | TransportError::Malformed { .. } => refused(error.to_string()),
        TransportError::Unreachable { .. } | TransportError::Broken { .. } | TransportError::TimedOut { .. } => {
            unavailable(error.to_string())
        }
    }
}

/// The contract's error for a redirect that is not followed.
pub(crate) fn redirect_error(error: &EndpointError) -> Error {
    refused(error.to_string())
}

fn no_body(headers: &[(String, String)]) -> Vec<(String, String)> {
    let mut headers = headers.to_vec();
    headers.push(("Content-Length".into(), "0".into()));
    headers
}

/// One error for several servers' failures. As long as one of them may come back, it is worth another try.
fn one_of(failures: Vec<Error>) -> Error {
    let worth_a_try = failures.is_empty() || failures.iter().any(|error| error.kind == ErrorKind::Unavailable);
    let code = failures.iter().map(|error| error.code.clone()).next_back().unwrap_or_default();
    let mut said: Vec<String> = Vec::new();
    for failure in failures {
        if !said.contains(&failure.message) {
            said.push(failure.message);
        }
    }
    let said = if said.is_empty() { "no front end could be asked".to_owned() } else { said.join("; ") };
    if worth_a_try { unavailable(said) } else { refused(said) }.with_code(code)
}
