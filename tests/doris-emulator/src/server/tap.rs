//! A socket that remembers the head of the request on it.
//!
//! An HTTP library hides two things that Doris looks at: whether a request names both framings, and whether body bytes
//! arrive before an answer.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use memchr::memmem;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Longest head that is looked at; the HTTP library refuses longer ones.
const HEAD_BYTES_MAX: usize = 512 << 10;
/// The end of a chunked body that has nothing in it.
const EMPTY_CHUNKED: &[u8] = b"0\r\n\r\n";

/// How a request says where its body ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Framing {
    pub(crate) content_length: Option<u64>,
    pub(crate) chunked: bool,
}

impl Framing {
    /// Whether body bytes are to be expected.
    pub(crate) fn has_body(self) -> bool {
        self.chunked || self.content_length.is_some_and(|length| length > 0)
    }
}

/// The side that the HTTP library reads and writes.
pub(crate) struct Tap {
    shared: Arc<Shared>,
}

/// The side that handlers ask.
pub(crate) struct Shared {
    stream: TcpStream,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// Bytes read since the last write, as long as they may belong to a head or show an early body.
    bytes: Vec<u8>,
    head_end: Option<usize>,
    answered: bool,
    early_noted: bool,
}

impl Tap {
    pub(crate) fn new(stream: TcpStream) -> (Self, Arc<Shared>) {
        let shared = Arc::new(Shared { stream, seen: Mutex::default() });
        (Self { shared: shared.clone() }, shared)
    }
}

impl Shared {
    /// The framing headers of the current request, as sent. Valid until its answer begins.
    pub(crate) fn framing(&self) -> Framing {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let head = seen.bytes.get(..seen.head_end.unwrap_or(0)).unwrap_or_default();
        let mut framing = Framing::default();
        for line in head.split(|&byte| byte == b'\n') {
            let mut parts = line.splitn(2, |&byte| byte == b':');
            let (Some(name), Some(value)) = (parts.next(), parts.next()) else { continue };
            let value = String::from_utf8_lossy(value).trim().to_ascii_lowercase();
            if name.eq_ignore_ascii_case(b"content-length") {
                framing.content_length = value.parse().ok();
            } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
                framing.chunked = value.contains("chunked");
            }
        }
        framing
    }

    /// Whether body bytes are there already or arrive within `window`. The end of an empty chunked body is none.
    pub(crate) async fn early_body(&self, window: Duration) -> bool {
        let early = {
            let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            let rest = seen.head_end.and_then(|end| seen.bytes.get(end..)).unwrap_or_default();
            rest.to_vec()
        };
        if !early.is_empty() {
            return !EMPTY_CHUNKED.starts_with(&early);
        }
        let mut next = [0_u8; 16];
        match tokio::time::timeout(window, self.stream.peek(&mut next)).await {
            Ok(Ok(count)) => next.get(..count).is_some_and(|bytes| count > 0 && !EMPTY_CHUNKED.starts_with(bytes)),
            _ => false,
        }
    }

    /// True the first time it is asked for the current request: an early body counts once.
    pub(crate) fn note_early_body(&self) -> bool {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        !std::mem::replace(&mut seen.early_noted, true)
    }

    /// Reads on after the last answer, so that unread bytes do not make the system destroy the answer on its way.
    pub(crate) async fn drain(&self, limit_bytes: usize, limit: Duration) {
        let drain = async {
            let (mut buffer, mut left) = (vec![0_u8; 64 << 10], limit_bytes);
            while left > 0 && self.stream.readable().await.is_ok() {
                match self.stream.try_read(&mut buffer) {
                    Ok(0) => return,
                    Ok(count) => left = left.saturating_sub(count),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(_) => return,
                }
            }
        };
        // Running into the limit is one of the ways this ends.
        tokio::time::timeout(limit, drain).await.ok();
    }

    fn read(&self, bytes: &[u8]) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.answered {
            *seen = Seen::default();
        }
        if seen.head_end.is_some() || seen.bytes.len() > HEAD_BYTES_MAX {
            return;
        }
        seen.bytes.extend_from_slice(bytes);
        seen.head_end = memmem::find(&seen.bytes, b"\r\n\r\n").map(|at| at + 4);
    }

    fn written(&self) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).answered = true;
    }
}

impl AsyncRead for Tap {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        loop {
            ready!(self.shared.stream.poll_read_ready(cx))?;
            match self.shared.stream.try_read_buf(buf) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
                Ok(_) => {
                    self.shared.read(buf.filled().get(before..).unwrap_or_default());
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}

impl AsyncWrite for Tap {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.shared.stream.poll_write_ready(cx))?;
            match self.shared.stream.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => {
                    self.shared.written();
                    return Poll::Ready(other);
                }
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// The socket closes when its last owner goes.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
