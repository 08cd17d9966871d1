//! Where records come from. A source is replayable: opened again at a position, a split reads the same records with the same numbers.
//!
//! Modules in reading order: [`codes`] what can go wrong; [`file`]; [`generate`].

use async_trait::async_trait;
use thiserror::Error;
use weir_engine::{Batch, Input};
use weir_protocol::{Position, Positions, SplitId};

pub mod codes;
pub mod file;
pub mod generate;

use codes::Code;

/// One place to read from, cut into splits. A pipeline has one, and each of its generations a new one: what a source remembers beside the
/// positions that it is given is true for one generation only.
#[async_trait]
pub trait Source: Send + Sync {
    /// What is read, in a form that stays the same for as long as it is the same place. Kept in the pipeline's manifest.
    fn identity(&self) -> String;

    /// Whether reading comes to an end.
    fn bounded(&self) -> bool;

    /// What the records are. Called once, before `discover`. A followed CSV source without a file waits here for its first header.
    async fn prepare(&mut self) -> Result<Input, SourceError>;

    /// The splits to read, given where the decided ones stand. Called at start, and again after each [`Source::changed`] while following: the answer
    /// then lists every split that may have something to read, also those listed before. The order is the one to read them in.
    /// A split that has a position, is not read to its end and cannot be found again is an error, not a silent end.
    async fn discover(&mut self, known: &Positions) -> Result<Vec<SplitId>, SourceError>;

    /// Opens a split where reading goes on; `None`: at its beginning. Also called for splits that were not listed, to replay a decided slice: where
    /// the split no longer has what lies before the position, or is gone, that is an error.
    async fn open(&self, split: &SplitId, from: Option<&Position>) -> Result<Box<dyn SplitReader>, SourceError>;

    /// Returns when there may be something new to read. Never returns early in a loop: at most a few times a second. Only for unbounded sources.
    /// May be dropped and called again; no change is lost by that.
    async fn changed(&self) -> Result<(), SourceError>;

    /// Where a position is, for people: the file's name and the byte, or the like.
    fn describe(&self, split: &SplitId, position: Option<&Position>) -> String;
}

/// Reads one split in order.
#[async_trait]
pub trait SplitReader: Send {
    /// The next records, as many as are at hand within the limits. A record larger than `limits.bytes` is an error that names its place.
    /// May be dropped and called again; no record is lost by that. After an error or [`Read::End`] the reader is of no more use.
    async fn read(&mut self, limits: &BatchLimits) -> Result<Read, SourceError>;

    /// Where reading would go on after the last read that was returned. A read without records may have moved it, too: past a header or blank
    /// lines, or to what is known of the file's size.
    fn position(&self) -> Position;

    /// The number of the next record in the split.
    fn next_record(&self) -> u64;
}

/// What a read found.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one a batch, and a batch is up to a mebibyte")]
pub enum Read {
    /// Records.
    Batch(Batch),
    /// None now; there may be more later.
    Idle,
    /// The split has ended.
    End,
}

/// How large a batch may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchLimits {
    /// Most bytes in a batch, and in one record.
    pub bytes: usize,
    /// Most records in a batch.
    pub records: u32,
    /// Whether a batch must say where each record ends. False leaves that to the line feeds.
    pub ends: bool,
}

/// Why reading stopped. Never swallowed: nothing is skipped.
#[derive(Debug, Error)]
#[error("{message}")]
pub struct SourceError {
    /// One of [`codes::ALL`]; each has a page under docs/errors.
    pub code: &'static str,
    /// What happened, where (file, record, byte), and what to do.
    pub message: String,
    /// Whether the same read may succeed later without anybody's help.
    pub retry: bool,
}

impl SourceError {
    /// An error that somebody has to do something about.
    fn stop(code: Code, message: String) -> Self {
        Self { code: code.text, message, retry: false }
    }

    /// An error of the file system. Whether it may pass by itself depends on its kind.
    fn io(code: Code, what: &str, error: &std::io::Error) -> Self {
        use std::io::ErrorKind::{InvalidInput, IsADirectory, NotADirectory, NotFound, PermissionDenied, Unsupported};
        let lasting = matches!(error.kind(), InvalidInput | IsADirectory | NotADirectory | NotFound | PermissionDenied | Unsupported);
        Self { code: code.text, message: format!("{what}: {error}"), retry: !lasting }
    }

    /// Blocking work was cut off, which only the end of the runtime does.
    fn cut_off(error: &tokio::task::JoinError) -> Self {
        Self { code: codes::UNREADABLE.text, message: format!("reading was cut off: {error}"), retry: true }
    }
}
