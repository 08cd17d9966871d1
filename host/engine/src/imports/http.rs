//! The HTTP client lent to plugins behind wasi:http.
//!
//! It differs from wasmtime's own where exactly-once depends on it or an operator would miss it: each request is checked against the grants; a
//! body that its plugin did not finish ends in an error on the wire and never in a clean last chunk, also when the instance is dropped with it;
//! the time to the first byte counts from the end of the request, since a body may take an epoch; connections are reused within the instance
//! and closed with it; a private certificate authority may be trusted; and what went wrong is noted in words among the plugin's log lines.
//!
//! A response may arrive while its request's body is still going out. No redirect is followed: where to go next is the plugin's choice, and
//! is checked like any request. `Expect: 100-continue` is a header like any other and is not waited for.

mod body;
mod connect;
mod pool;

use std::error::Error as _;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::{Method, Request, Response, Uri};
use http_body_util::BodyExt;
use hyper::client::conn::http1::SendRequest;
use tokio::sync::{Semaphore, watch};
use wasmtime_wasi_http::p2::bindings::http::types::ErrorCode;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpHooks};

use self::body::{ReceivedBody, SentBody};
use self::pool::{Endpoint, Pool};
use crate::capabilities::{Grants, HostPort};
use crate::imports::log::Log;
use crate::limits::{
    HTTP_BETWEEN_BYTES_LIMIT, HTTP_BUFFERED_WRITES, HTTP_CONNECT_LIMIT, HTTP_FIRST_BYTE_LIMIT, HTTP_WRITE_BYTES, MAX_HTTP_REQUESTS,
};

pub(crate) use self::connect::Tls;

/// Says whether an instance still lives. It is closed before the instance is dropped, so that a body that ends afterwards is known to be unfinished.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gate(Arc<AtomicBool>);

impl Gate {
    pub(crate) fn close(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn is_closed(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// The client of one instance.
pub(crate) struct Client {
    grants: Arc<Grants>,
    tls: Tls,
    gate: Gate,
    log: Arc<Log>,
    pool: Arc<Pool>,
    requests: Arc<Semaphore>,
    /// The address that a request of the call under way was refused for.
    denied: Mutex<Option<HostPort>>,
}

impl Client {
    pub(crate) fn new(grants: Arc<Grants>, tls: Tls, gate: Gate, log: Arc<Log>) -> Arc<Self> {
        let requests = Arc::new(Semaphore::new(MAX_HTTP_REQUESTS));
        Arc::new(Self { grants, tls, gate, log, pool: Pool::new(), requests, denied: Mutex::new(None) })
    }

    /// The address that was refused since this was last asked.
    pub(crate) fn take_denied(&self) -> Option<HostPort> {
        self.denied.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Sends a request, and returns when the head of its response is there.
    async fn send(&self, request: Request<WasiBody>, options: Option<RequestOptions>) -> Result<Response<WasiBody>, Error> {
        let what = format!("{} {}", request.method(), without_query(request.uri()));
        let result = self.try_send(request, options.unwrap_or_default()).await;
        result.map_err(|failure| {
            self.log.note(format!("{what}: {}", failure.words));
            failure.error
        })
    }

    async fn try_send(&self, mut request: Request<WasiBody>, options: RequestOptions) -> Result<Response<WasiBody>, Failure> {
        let endpoint = self.admit(&request)?;
        let permit = self
            .requests
            .clone()
            .try_acquire_owned()
            .map_err(|_| Failure::new(Error::ConnectionLimitReached, format!("more than {MAX_HTTP_REQUESTS} requests under way")))?;
        // What goes on the wire is the path; scheme and authority would be for a proxy.
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        *request.uri_mut() = path.parse().map_err(|_| Failure::new(Error::HttpRequestUriInvalid, "the path is not valid".to_owned()))?;
        let (ended, mut request_ended) = watch::channel(false);
        let mut request = request.map(|body| SentBody::new(body, self.gate.clone(), ended));
        let first_byte = options.first_byte_timeout.unwrap_or(HTTP_FIRST_BYTE_LIMIT);

        let (sender, response) = loop {
            let (mut sender, reused) = self.connection(&endpoint, options.connect_timeout.unwrap_or(HTTP_CONNECT_LIMIT)).await?;
            let late = async {
                // Either way it ends: the body was sent, or dropped.
                let _ = request_ended.wait_for(|ended| *ended).await;
                tokio::time::sleep(first_byte).await;
            };
            let answer = tokio::select! {
                biased;
                answer = sender.try_send_request(request) => answer,
                () = late => {
                    let words = format!("no response within {} s of the request's end", first_byte.as_secs_f32());
                    return Err(Failure::new(Error::HttpResponseTimeout, words));
                }
            };
            match answer {
                Ok(response) => break (sender, response),
                // A kept connection turned out closed before anything was sent: another one cannot repeat anything.
                Err(mut failed) => match failed.take_message().filter(|_| reused) {
                    Some(unsent) => request = unsent,
                    None => return Err(Failure::of_hyper(failed.into_error())),
                },
            }
        };
        let between = options.between_bytes_timeout.unwrap_or(HTTP_BETWEEN_BYTES_LIMIT);
        let lease = self.pool.lease(endpoint, sender, request_ended);
        Ok(response.map(|incoming| ReceivedBody::new(incoming, lease, permit, between).boxed_unsync()))
    }

    /// Checks a request against the grants.
    fn admit(&self, request: &Request<WasiBody>) -> Result<Endpoint, Failure> {
        if request.method() == Method::CONNECT {
            return Err(Failure::new(Error::HttpRequestMethodInvalid, "CONNECT is not lent to plugins".to_owned()));
        }
        let invalid = |words: &str| Failure::new(Error::HttpRequestUriInvalid, words.to_owned());
        let authority = request.uri().authority().ok_or_else(|| invalid("no host is named"))?;
        if authority.as_str().contains('@') {
            return Err(invalid("credentials in an address are not sent; use a header"));
        }
        let tls = match request.uri().scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(invalid("the scheme is neither http nor https")),
        };
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        // One way of writing each address of version 6, as in the grants.
        let host = host.parse::<std::net::Ipv6Addr>().map_or(host, |address| address.to_string());
        let port = authority.port_u16().unwrap_or(if tls { 443 } else { 80 });
        let address = HostPort { host, port };
        if !self.grants.allows_http(&address.host, port) {
            let words = format!("http to {address} is not granted");
            *self.denied.lock().unwrap_or_else(PoisonError::into_inner) = Some(address);
            return Err(Failure::new(Error::HttpRequestDenied, words));
        }
        Ok(Endpoint { address, tls })
    }

    /// An idle connection to that endpoint (true), or a new one (false).
    async fn connection(&self, endpoint: &Endpoint, limit: Duration) -> Result<(SendRequest<SentBody>, bool), Failure> {
        if let Some(sender) = self.pool.take(endpoint).await {
            return Ok((sender, true));
        }
        match tokio::time::timeout(limit, connect::connect(endpoint, &self.tls)).await {
            Ok(result) => result.map(|sender| (sender, false)),
            Err(_) => Err(Failure::new(Error::ConnectionTimeout, format!("no connection within {} s", limit.as_secs_f32()))),
        }
    }
}

/// What a plugin is told, and what a person is told.
struct Failure {
    error: Error,
    words: String,
}

impl Failure {
    fn new(error: Error, words: String) -> Self {
        Self { error, words }
    }

    fn of_hyper(error: hyper::Error) -> Self {
        let mut words = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            words = format!("{words}: {cause}");
            source = cause.source();
        }
        Self { error: plugin_error(&error), words }
    }
}

/// The nearest that wasi:http has for an error of hyper.
fn plugin_error(error: &hyper::Error) -> Error {
    let cut =
        |kind| matches!(kind, std::io::ErrorKind::ConnectionReset | std::io::ErrorKind::BrokenPipe | std::io::ErrorKind::UnexpectedEof);
    let io = error.source().and_then(|source| source.downcast_ref::<std::io::Error>());
    if error.is_timeout() {
        Error::HttpResponseTimeout
    } else if error.is_incomplete_message() || error.is_closed() || error.is_canceled() || io.is_some_and(|io| cut(io.kind())) {
        Error::ConnectionTerminated
    } else {
        Error::HttpProtocolError
    }
}

/// A path may name a table; a query may hold a secret.
fn without_query(uri: &Uri) -> String {
    let authority = uri.authority().map(|authority| authority.as_str().rsplit('@').next().unwrap_or_default()).unwrap_or_default();
    crate::text::clean_line(&format!("{}://{authority}{}", uri.scheme_str().unwrap_or("http"), uri.path()), 300)
}

/// The client as wasmtime-wasi-http calls it.
pub(crate) struct Hooks(pub(crate) Arc<Client>);

type Sent = Result<(Response<WasiBody>, Box<dyn Future<Output = Result<(), Error>> + Send>), Error>;

impl WasiHttpHooks for Hooks {
    fn send_request(
        &mut self,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
        _processed: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> Box<dyn Future<Output = Sent> + Send> {
        let client = self.0.clone();
        Box::new(async move {
            let response = client.send(request, options).await?;
            // The connection is a task of its own already, so that bodies flow between calls of the plugin.
            let nothing_left: Box<dyn Future<Output = Result<(), Error>> + Send> = Box::new(std::future::ready(Ok(())));
            Ok((response, nothing_left))
        })
    }

    fn p2_outgoing_body_buffer_chunks(&mut self) -> usize {
        HTTP_BUFFERED_WRITES
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        HTTP_WRITE_BYTES
    }

    fn p2_error_from_hyper(&mut self, error: &hyper::Error) -> ErrorCode {
        let failure = plugin_error(error);
        self.0.log.note(format!("reading a response: {error}"));
        match failure {
            Error::HttpResponseTimeout => ErrorCode::HttpResponseTimeout,
            Error::ConnectionTerminated => ErrorCode::ConnectionTerminated,
            _ => ErrorCode::HttpProtocolError,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
mod tests;
