//! A plugin's stdout and stderr: each line becomes a log line of the host, bounded in length and rate. The last lines are kept for errors.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

use crate::limits::{LOG_BYTES_PER_SECOND, LOG_LINES_PER_SECOND, LOG_TAIL_LINES, MAX_LOG_LINE_BYTES};
use crate::text::clean;

/// How much a plugin is told that it may write at once. Nothing is buffered beyond a line, so the number only bounds one copy.
const WRITE_BYTES: usize = 64 * 1024;

/// How often it is said how many lines were dropped, at most; else a flood of lines became one of these.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// Whose log it is.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) plugin: String,
    pub(crate) pipeline: String,
    pub(crate) sink: String,
    pub(crate) lane: u32,
    pub(crate) role: &'static str,
}

/// The log of one instance.
#[derive(Debug)]
pub(crate) struct Log {
    origin: Origin,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    stdout: Line,
    stderr: Line,
    tail: VecDeque<String>,
    lines: Bucket,
    bytes: Bucket,
    dropped: u64,
    /// When it was last said how many were dropped.
    reported: Instant,
}

/// A line that has not ended yet.
#[derive(Debug, Default)]
struct Line {
    bytes: Vec<u8>,
    cut: bool,
}

/// So many units a second, and as many at once.
#[derive(Debug)]
struct Bucket {
    left: u64,
    per_second: u64,
    filled: Instant,
}

#[derive(Clone, Copy, Debug)]
enum Stream {
    Stdout,
    Stderr,
}

impl Log {
    pub(crate) fn new(origin: Origin) -> Arc<Self> {
        let state = State {
            stdout: Line::default(),
            stderr: Line::default(),
            tail: VecDeque::new(),
            lines: Bucket::new(LOG_LINES_PER_SECOND),
            bytes: Bucket::new(LOG_BYTES_PER_SECOND),
            dropped: 0,
            reported: Instant::now(),
        };
        Arc::new(Self { origin, state: Mutex::new(state) })
    }

    pub(crate) fn stdout(self: &Arc<Self>) -> LogStream {
        LogStream { log: self.clone(), stream: Stream::Stdout }
    }

    pub(crate) fn stderr(self: &Arc<Self>) -> LogStream {
        LogStream { log: self.clone(), stream: Stream::Stderr }
    }

    /// The last lines, oldest first, unfinished ones included.
    pub(crate) fn tail(&self) -> Vec<String> {
        self.finish();
        self.lock().tail.iter().cloned().collect()
    }

    /// Notes what the host saw, so that it stands among the plugin's own lines when a call fails.
    pub(crate) fn note(&self, text: String) {
        let Origin { plugin, pipeline, sink, lane, role } = &self.origin;
        tracing::info!(target: "weir::plugin", plugin, pipeline, sink, lane, role, stream = "host", "{text}");
        self.lock().keep(format!("host: {text}"));
    }

    /// Ends lines that are not ended, and says how many were dropped. Called when a call failed and when the instance ends.
    pub(crate) fn finish(&self) {
        let mut state = self.lock();
        for stream in [Stream::Stdout, Stream::Stderr] {
            if !state.line(stream).bytes.is_empty() {
                self.end_line(&mut state, stream);
            }
        }
        self.report_dropped(&mut state);
    }

    fn write(&self, stream: Stream, bytes: &[u8]) {
        let mut state = self.lock();
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, after) = rest.split_at(end);
            state.line(stream).append(line);
            self.end_line(&mut state, stream);
            rest = after.get(1..).unwrap_or_default();
        }
        state.line(stream).append(rest);
    }

    fn end_line(&self, state: &mut State, stream: Stream) {
        let line = std::mem::take(state.line(stream));
        let mut text = clean(String::from_utf8_lossy(&line.bytes).trim_end_matches('\r'), MAX_LOG_LINE_BYTES);
        if line.cut {
            text.push_str(" [cut]");
        }
        let now = Instant::now();
        if state.lines.take(1, now) && state.bytes.take(text.len() as u64, now) {
            if now.duration_since(state.reported) >= REPORT_INTERVAL {
                self.report_dropped(state);
            }
            let Origin { plugin, pipeline, sink, lane, role } = &self.origin;
            tracing::info!(target: "weir::plugin", plugin, pipeline, sink, lane, role, stream = stream.name(), "{text}");
        } else {
            state.dropped += 1;
        }
        state.keep(text);
    }

    fn report_dropped(&self, state: &mut State) {
        let dropped = std::mem::take(&mut state.dropped);
        if dropped > 0 {
            state.reported = Instant::now();
            let Origin { plugin, pipeline, sink, lane, role } = &self.origin;
            tracing::warn!(target: "weir::plugin", plugin, pipeline, sink, lane, role, dropped, "{dropped} log lines dropped: the plugin writes too many");
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is whole between any two statements, so a panic elsewhere has not broken it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn line(&mut self, stream: Stream) -> &mut Line {
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }

    fn keep(&mut self, text: String) {
        if self.tail.len() >= LOG_TAIL_LINES {
            self.tail.pop_front();
        }
        self.tail.push_back(text);
    }
}

impl Line {
    fn append(&mut self, bytes: &[u8]) {
        let room = MAX_LOG_LINE_BYTES - self.bytes.len();
        let fitting = bytes.get(..room).unwrap_or(bytes);
        self.bytes.extend_from_slice(fitting);
        self.cut |= fitting.len() < bytes.len();
    }
}

impl Bucket {
    fn new(per_second: u64) -> Self {
        Self { left: per_second, per_second, filled: Instant::now() }
    }

    fn take(&mut self, amount: u64, now: Instant) -> bool {
        let millis = u64::try_from(now.duration_since(self.filled).as_millis()).unwrap_or(u64::MAX);
        let gained = millis.saturating_mul(self.per_second) / 1000;
        if gained > 0 {
            self.left = self.left.saturating_add(gained).min(self.per_second);
            self.filled = now;
        }
        match self.left.checked_sub(amount) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }
}

impl Stream {
    fn name(self) -> &'static str {
        match self {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
        }
    }
}

/// One of the two streams, as wasmtime-wasi wants it.
#[derive(Clone, Debug)]
pub(crate) struct LogStream {
    log: Arc<Log>,
    stream: Stream,
}

impl IsTerminal for LogStream {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for LogStream {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[async_trait::async_trait]
impl Pollable for LogStream {
    async fn ready(&mut self) {}
}

impl OutputStream for LogStream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.log.write(self.stream, &bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(WRITE_BYTES)
    }
}

impl AsyncWrite for LogStream {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.log.write(self.stream, bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::{Log, Origin, Stream};
    use crate::limits::{LOG_LINES_PER_SECOND, LOG_TAIL_LINES, MAX_LOG_LINE_BYTES};

    fn log() -> std::sync::Arc<Log> {
        Log::new(Origin { plugin: "p".into(), pipeline: "p".into(), sink: "s".into(), lane: 0, role: "writer" })
    }

    #[test]
    fn lines_are_put_together_from_pieces_and_cut_when_long() {
        let log = log();
        log.write(Stream::Stdout, b"one\r\ntw");
        log.write(Stream::Stderr, b"err");
        log.write(Stream::Stdout, b"o\n");
        log.write(Stream::Stdout, &vec![b'x'; 3 * MAX_LOG_LINE_BYTES]);
        let tail = log.tail();
        assert_eq!(tail.get(..2), Some(["one".to_owned(), "two".to_owned()].as_slice()));
        assert!(tail.iter().any(|line| line == "err"));
        assert!(tail.iter().any(|line| line.starts_with("xxx") && line.ends_with("[cut]") && line.len() < 2 * MAX_LOG_LINE_BYTES));
    }

    #[test]
    fn a_flood_is_counted_and_its_last_lines_are_kept() {
        let log = log();
        for line in 0..10_000 {
            log.write(Stream::Stdout, format!("line {line}\n").as_bytes());
        }
        assert!(log.lock().dropped > 10_000 - 10 * LOG_LINES_PER_SECOND);
        let tail = log.tail();
        assert_eq!(tail.len(), LOG_TAIL_LINES);
        assert_eq!(tail.last().map(String::as_str), Some("line 9999"));
        assert_eq!(log.lock().dropped, 0);
    }
}
