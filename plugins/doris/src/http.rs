//! HTTP over wasi:http: blocking, one request at a time, with time-outs of its own on every wait.
//!
//! The host connects, speaks TLS, checks grants and drives a connection also between two calls of the sink. It follows no redirect and waits
//! for no `100 Continue`; a response may arrive while the body still goes out. Fields of a struct are dropped in the order in which
//! they stand, and children of a resource before it: the host traps otherwise.

use std::fmt::Debug;
use std::time::Duration;

use wasip2::clocks::monotonic_clock;
use wasip2::http::outgoing_handler;
use wasip2::http::types::{
    ErrorCode, Fields, FutureIncomingResponse, IncomingBody, IncomingResponse, Method as WasiMethod, OutgoingBody, OutgoingRequest,
    RequestOptions, Scheme,
};
use wasip2::io::poll::{Pollable, poll};
use wasip2::io::streams::{InputStream, OutputStream, StreamError};

use crate::transport::{Limits, Method, REPLY_LIMIT, Request, Response, Transport, TransportError, Upload, Written};

/// Most that the host takes in one write to a body; more is a trap.
const WRITE_LIMIT: u64 = 1024 * 1024;
/// Most that is read of a response at once.
const READ_LIMIT: u64 = 64 * 1024;
const NANOS_PER_MS: u64 = 1_000_000;

/// The host's HTTP client and clock.
pub(crate) struct WasiHttp;

impl Transport for WasiHttp {
    type Upload = WasiUpload;

    fn now_ms(&self) -> u64 {
        monotonic_clock::now() / NANOS_PER_MS
    }

    fn pause(&self, ms: u64) {
        std::thread::sleep(Duration::from_millis(ms));
    }

    fn exchange(&self, request: &Request, limits: Limits) -> Result<Response, TransportError> {
        let (outgoing, options) = prepare(request, limits)?;
        let until_ms = self.now_ms().saturating_add(limits.total_ms);
        Reply::send(request, outgoing, options)?.wait(until_ms)
    }

    fn upload(&self, request: &Request, limits: Limits) -> Result<WasiUpload, TransportError> {
        let (outgoing, options) = prepare(request, limits)?;
        let malformed = || malformed(request, "the host gives no body");
        let body = outgoing.body().map_err(|()| malformed())?;
        let stream = body.write().map_err(|()| malformed())?;
        let writable = stream.subscribe();
        let reply = Reply::send(request, outgoing, options)?;
        Ok(WasiUpload { writable, stream, body, reply })
    }
}

/// A request whose body is being written.
pub(crate) struct WasiUpload {
    writable: Pollable,
    stream: OutputStream,
    /// Dropped without `finish`, it tells the host to break the connection off.
    body: OutgoingBody,
    reply: Reply,
}

impl Upload for WasiUpload {
    fn ended(&self, wait_ms: u64) -> bool {
        self.reply.ready(wait_ms)
    }

    fn write(&mut self, mut bytes: &[u8], until_ms: u64) -> Written {
        while !bytes.is_empty() {
            match self.stream.check_write() {
                Ok(0) => {
                    let left = until_ms.saturating_sub(WasiHttp.now_ms());
                    if left == 0 {
                        return Written::Stalled;
                    }
                    let timer = timer(left);
                    poll(&[&self.writable, &self.reply.ready, &timer]);
                    if self.reply.ready.ready() {
                        return Written::Ended;
                    }
                }
                Ok(allowed) => {
                    let (piece, rest) = bytes.split_at(bytes.len().min(allowed.min(WRITE_LIMIT) as usize));
                    if self.stream.write(piece).is_err() {
                        return Written::Ended;
                    }
                    bytes = rest;
                }
                Err(StreamError::Closed | StreamError::LastOperationFailed(_)) => return Written::Ended,
            }
        }
        Written::All
    }

    fn finish(self, until_ms: u64) -> Result<Response, TransportError> {
        let Self { writable, stream, body, reply } = self;
        drop(writable);
        drop(stream);
        match OutgoingBody::finish(body, None) {
            Ok(()) => reply.wait(until_ms),
            Err(code) => Err(failure(&reply.authority, code)),
        }
    }

    fn early_response(self, until_ms: u64) -> Result<Response, TransportError> {
        // The body is dropped only afterwards: breaking the connection off would lose the response.
        let Self { writable, stream, body, reply } = self;
        let response = reply.wait(until_ms);
        drop(writable);
        drop(stream);
        drop(body);
        response
    }
}

/// A response that is waited for.
struct Reply {
    ready: Pollable,
    future: FutureIncomingResponse,
    authority: String,
    sent_ms: u64,
}

impl Reply {
    fn send(request: &Request, outgoing: OutgoingRequest, options: RequestOptions) -> Result<Self, TransportError> {
        let authority = request.server.authority.clone();
        let future = outgoing_handler::handle(outgoing, Some(options)).map_err(|code| failure(&authority, code))?;
        Ok(Self { ready: future.subscribe(), future, authority, sent_ms: WasiHttp.now_ms() })
    }

    fn ready(&self, wait_ms: u64) -> bool {
        wait(&self.ready, wait_ms)
    }

    /// Waits for the whole response.
    fn wait(self, until_ms: u64) -> Result<Response, TransportError> {
        if !self.ready(until_ms.saturating_sub(WasiHttp.now_ms())) {
            return Err(self.timed_out());
        }
        match self.future.get() {
            Some(Ok(Ok(response))) => self.read(&response, until_ms),
            Some(Ok(Err(code))) => Err(failure(&self.authority, code)),
            Some(Err(())) | None => Err(self.broken("the host has no response")),
        }
    }

    fn read(&self, response: &IncomingResponse, until_ms: u64) -> Result<Response, TransportError> {
        let status = response.status();
        let location = response.headers().get("location").first().map(|value| String::from_utf8_lossy(value).into_owned());
        let incoming: IncomingBody = response.consume().map_err(|()| self.broken("the response has no body"))?;
        let stream: InputStream = incoming.stream().map_err(|()| self.broken("the response has no body"))?;
        let readable = stream.subscribe();
        let mut body = Vec::new();
        let end = loop {
            match stream.read(READ_LIMIT) {
                Ok(bytes) if bytes.is_empty() => {
                    if !wait(&readable, until_ms.saturating_sub(WasiHttp.now_ms())) {
                        break Err(self.timed_out());
                    }
                }
                Ok(bytes) => body.extend_from_slice(&bytes),
                Err(StreamError::Closed) => break Ok(()),
                Err(StreamError::LastOperationFailed(error)) => break Err(self.broken(&error.to_debug_string())),
            }
            if body.len() >= REPLY_LIMIT {
                body.truncate(REPLY_LIMIT);
                break Ok(());
            }
        };
        drop(readable);
        drop(stream);
        drop(incoming);
        end.map(|()| Response { status, location, body })
    }

    fn timed_out(&self) -> TransportError {
        TransportError::TimedOut { authority: self.authority.clone(), after_ms: WasiHttp.now_ms().saturating_sub(self.sent_ms) }
    }

    fn broken(&self, why: &str) -> TransportError {
        TransportError::Broken { authority: self.authority.clone(), why: why.to_owned() }
    }
}

/// Waits for a pollable; 0 only looks.
fn wait(pollable: &Pollable, wait_ms: u64) -> bool {
    if wait_ms > 0 && !pollable.ready() {
        poll(&[pollable, &timer(wait_ms)]);
    }
    pollable.ready()
}

fn timer(ms: u64) -> Pollable {
    monotonic_clock::subscribe_duration(ms.saturating_mul(NANOS_PER_MS))
}

/// The request as the host takes it.
fn prepare(request: &Request, limits: Limits) -> Result<(OutgoingRequest, RequestOptions), TransportError> {
    let entries: Vec<(String, Vec<u8>)> = request.headers.iter().map(|(name, value)| (name.clone(), value.clone().into_bytes())).collect();
    let fields = Fields::from_list(&entries).map_err(|error| malformed(request, &format!("{error:?}")))?;
    let outgoing = OutgoingRequest::new(fields);
    let method = match request.method {
        Method::Get => WasiMethod::Get,
        Method::Put => WasiMethod::Put,
    };
    let scheme = if request.server.https { Scheme::Https } else { Scheme::Http };
    let path = format!("{}{}", request.server.prefix, request.path);
    let set = outgoing.set_method(&method).and_then(|()| outgoing.set_scheme(Some(&scheme)));
    let set = set.and_then(|()| outgoing.set_authority(Some(&request.server.authority)));
    set.and_then(|()| outgoing.set_path_with_query(Some(&path))).map_err(|()| malformed(request, "the host refuses its address"))?;
    let options = RequestOptions::new();
    let total = Some(limits.total_ms.saturating_mul(NANOS_PER_MS));
    let set = options.set_connect_timeout(Some(limits.connect_ms.saturating_mul(NANOS_PER_MS)));
    let set = set.and_then(|()| options.set_first_byte_timeout(total)).and_then(|()| options.set_between_bytes_timeout(total));
    set.map_err(|()| malformed(request, "the host refuses its time-outs"))?;
    Ok((outgoing, options))
}

fn malformed(request: &Request, why: &str) -> TransportError {
    TransportError::Malformed { authority: request.server.authority.clone(), why: why.to_owned() }
}

/// What the host's error means for whether something was sent.
fn failure(authority: &str, code: ErrorCode) -> TransportError {
    let authority = authority.to_owned();
    match code {
        ErrorCode::HttpRequestDenied | ErrorCode::DestinationIpProhibited => TransportError::NotGranted { authority },
        ErrorCode::DnsTimeout
        | ErrorCode::DnsError(_)
        | ErrorCode::DestinationNotFound
        | ErrorCode::DestinationUnavailable
        | ErrorCode::DestinationIpUnroutable
        | ErrorCode::ConnectionRefused
        | ErrorCode::ConnectionTimeout
        | ErrorCode::ConnectionLimitReached
        | ErrorCode::TlsProtocolError
        | ErrorCode::TlsCertificateError
        | ErrorCode::TlsAlertReceived(_) => TransportError::Unreachable { authority, why: why(&code) },
        ErrorCode::HttpRequestMethodInvalid
        | ErrorCode::HttpRequestUriInvalid
        | ErrorCode::HttpRequestUriTooLong
        | ErrorCode::HttpRequestHeaderSectionSize(_)
        | ErrorCode::HttpRequestHeaderSize(_) => TransportError::Malformed { authority, why: why(&code) },
        other => TransportError::Broken { authority, why: why(&other) },
    }
}

/// A host's error in words: `ErrorCode::ConnectionRefused` as `connection refused`.
fn why(code: &impl Debug) -> String {
    let name = format!("{code:?}");
    let name = name.strip_prefix("ErrorCode::").unwrap_or(&name);
    let mut words = String::with_capacity(name.len() + 8);
    let mut in_name = true;
    for letter in name.chars() {
        in_name &= letter.is_ascii_alphanumeric();
        if in_name && letter.is_ascii_uppercase() {
            if !words.is_empty() {
                words.push(' ');
            }
            words.push(letter.to_ascii_lowercase());
        } else {
            words.push(letter);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use wasip2::http::types::DnsErrorPayload;

    use super::*;

    #[test]
    fn only_what_never_left_the_host_counts_as_not_sent() {
        let dns = DnsErrorPayload { rcode: Some("NXDOMAIN".into()), info_code: None };
        for (code, nothing_sent, words) in [
            (ErrorCode::HttpRequestDenied, true, "grant: { http: [...] }"),
            (ErrorCode::ConnectionRefused, true, "fe:8030 cannot be reached: connection refused"),
            (ErrorCode::DnsError(dns), true, "NXDOMAIN"),
            (ErrorCode::TlsCertificateError, true, "tls certificate error"),
            (ErrorCode::HttpRequestUriInvalid, true, "http request uri invalid"),
            (ErrorCode::ConnectionTerminated, false, "the connection to fe:8030 broke: connection terminated"),
            (ErrorCode::HttpResponseTimeout, false, "http response timeout"),
            (ErrorCode::HttpProtocolError, false, "http protocol error"),
            (ErrorCode::InternalError(Some("Broken Pipe".into())), false, "Broken Pipe"),
        ] {
            let error = failure("fe:8030", code);
            assert_eq!(error.nothing_sent(), nothing_sent, "{error}");
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}
