//! What the sink needs of HTTP, so that everything above it can be tested with a scripted target.
//!
//! The one implementation over wasi:http is [`crate::http`]. No implementation follows a redirect or tries anything twice.

use crate::endpoint::Endpoint;

/// A request's method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Put,
}

/// A request without its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) server: Endpoint,
    /// Path with query, without the server's prefix.
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
}

/// A whole response. Bodies are bounded by [`REPLY_LIMIT`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) location: Option<String>,
    pub(crate) body: Vec<u8>,
}

/// Largest reply that is read, in bytes. Doris's are a few KiB; an error log can be long and is cut.
pub(crate) const REPLY_LIMIT: usize = 256 * 1024;

/// How a request failed on its way. What a server answers is never one of these.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TransportError {
    /// The host does not let this sink go there. Nothing was sent.
    #[error("the host does not allow requests to {authority}: add `{authority}` to the sink's `grant: {{ http: [...] }}`")]
    NotGranted { authority: String },
    /// The request cannot be made at all. Nothing was sent.
    #[error("the request to {authority} cannot be sent: {why}")]
    Malformed { authority: String, why: String },
    /// No connection. Nothing was sent.
    #[error("{authority} cannot be reached: {why}")]
    Unreachable { authority: String, why: String },
    /// The connection ended, or what came back is no HTTP. The request may have had its effect.
    #[error("the connection to {authority} broke: {why}")]
    Broken { authority: String, why: String },
    /// No answer in time. The request may have had its effect.
    #[error("{authority} did not answer within {after_ms} ms")]
    TimedOut { authority: String, after_ms: u64 },
}

impl TransportError {
    /// Whether the server certainly has not seen the request.
    pub(crate) fn nothing_sent(&self) -> bool {
        match self {
            Self::NotGranted { .. } | Self::Malformed { .. } | Self::Unreachable { .. } => true,
            Self::Broken { .. } | Self::TimedOut { .. } => false,
        }
    }
}

/// Time-outs of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) connect_ms: u64,
    /// From sending to the end of the response.
    pub(crate) total_ms: u64,
}

/// How far a write got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// Everything is on its way.
    All,
    /// The response is there, or the connection ended: no more is taken.
    Ended,
    /// The server took nothing more until the time was over.
    Stalled,
}

/// Sends requests and tells the time.
pub(crate) trait Transport {
    /// A request whose body is still being written.
    type Upload: Upload;

    /// Milliseconds on a clock that never goes back; only differences mean something.
    fn now_ms(&self) -> u64;

    /// Waits.
    fn pause(&self, ms: u64);

    /// Sends a request without body and waits for the whole response.
    fn exchange(&self, request: &Request, limits: Limits) -> Result<Response, TransportError>;

    /// Sends a request's headers; its body follows in pieces, over any number of calls of the sink.
    fn upload(&self, request: &Request, limits: Limits) -> Result<Self::Upload, TransportError>;
}

/// A request whose body is still being written. Dropping it ends the connection without ending the body.
pub(crate) trait Upload {
    /// Waits up to `wait_ms` for the response, or for the connection's end. 0 only looks.
    fn ended(&self, wait_ms: u64) -> bool;

    /// Writes all of `bytes`, in pieces that the host takes, until `until_ms` on the transport's clock.
    fn write(&mut self, bytes: &[u8], until_ms: u64) -> Written;

    /// Ends the body and waits for the response.
    fn finish(self, until_ms: u64) -> Result<Response, TransportError>;

    /// Reads a response that came before the body's end. The body stays unfinished and the connection is closed.
    fn early_response(self, until_ms: u64) -> Result<Response, TransportError>;
}
