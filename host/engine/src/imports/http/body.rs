//! Bodies on their way out and in.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, Sleep};
use wasmtime_wasi_http::{Error, WasiBody};

use super::Gate;
use super::pool::Lease;

/// The body of a request.
///
/// wasmtime's own body ends cleanly when its writer is dropped with the instance, and a clean end would make a target take half of the records
/// for all of them. So its end counts only while the instance lives.
pub(super) struct SentBody {
    inner: WasiBody,
    gate: Gate,
    ended: watch::Sender<bool>,
}

impl SentBody {
    /// `ended` becomes true when the body has been handed over whole, and is dropped when it never will be.
    pub(super) fn new(inner: WasiBody, gate: Gate, ended: watch::Sender<bool>) -> Self {
        if inner.is_end_stream() {
            ended.send_replace(true);
        }
        Self { inner, gate, ended }
    }
}

impl Body for SentBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(cx);
        match polled {
            Poll::Ready(None) if self.gate.is_closed() => Poll::Ready(Some(Err(Error::ConnectionTerminated))),
            Poll::Ready(None) => {
                self.ended.send_replace(true);
                Poll::Ready(None)
            }
            other => other,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream() && !self.gate.is_closed()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// The body of a response. At its end the connection goes back for the next request; dropped before, the connection is closed.
pub(super) struct ReceivedBody {
    incoming: Incoming,
    lease: Option<Lease>,
    /// Gives back the room for another request.
    _permit: OwnedSemaphorePermit,
    between: Duration,
    stalled: Pin<Box<Sleep>>,
}

impl ReceivedBody {
    pub(super) fn new(incoming: Incoming, lease: Lease, permit: OwnedSemaphorePermit, between: Duration) -> Self {
        Self { incoming, lease: Some(lease), _permit: permit, between, stalled: Box::pin(tokio::time::sleep(between)) }
    }
}

impl Body for ReceivedBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        match Pin::new(&mut self.incoming).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                let next = Instant::now() + self.between;
                self.stalled.as_mut().reset(next);
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => {
                self.lease = None;
                Poll::Ready(Some(Err(Error::Hyper(error))))
            }
            Poll::Ready(None) => {
                if let Some(lease) = self.lease.take() {
                    lease.give_back();
                }
                Poll::Ready(None)
            }
            Poll::Pending => match self.stalled.as_mut().poll(cx) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(()) => {
                    self.lease = None;
                    Poll::Ready(Some(Err(Error::ConnectionReadTimeout)))
                }
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

impl Drop for ReceivedBody {
    fn drop(&mut self) {
        // A plugin that knows the length need not read as far as the end.
        if self.incoming.is_end_stream()
            && let Some(lease) = self.lease.take()
        {
            lease.give_back();
        }
    }
}
