//! The contract's values as types of the host, the same for every version of the contract.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;
use weir_protocol::{Lane, PipelineId, SinkId, SplitId};

/// What a plugin says about itself, checked.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Description {
    /// Its name: `[a-z0-9][a-z0-9_-]*`. A pipeline names a plugin by its file's stem, not by this.
    pub name: String,
    /// Its version.
    pub version: String,
    /// One line.
    pub summary: String,
    /// Markdown.
    pub documentation: String,
    /// JSON Schema of its config, an object.
    pub config_schema: serde_json::Value,
    /// The best guarantee it can give.
    pub guarantee: Guarantee,
    /// The handle formats that it commits; it writes the first. At least one.
    pub handle_formats: Vec<String>,
    /// The WASI interfaces that it needs, and why.
    pub needs: Vec<Need>,
}

impl Description {
    /// The format of the handles that the plugin writes.
    pub fn written_format(&self) -> &str {
        self.handle_formats.first().map(String::as_str).unwrap_or_default()
    }
}

/// What a sink can promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Guarantee {
    /// The target holds prepared data invisibly.
    ExactlyOnce,
    /// Record ids are keys; a replay overwrites.
    Idempotent,
    /// Neither.
    AtLeastOnce,
}

/// A WASI interface that a plugin needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Need {
    /// The interface without its version, such as `wasi:http/outgoing-handler`.
    pub name: String,
    /// The reason that the operator is shown.
    pub why: String,
}

/// What one configured instance asks for and promises, checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Profile {
    /// What is written to, in a form that stays the same for as long as it is the same place.
    pub target: String,
    /// Whether it wants to know where each record ends, also where line feeds say it.
    pub ends: bool,
    /// Whether it wants keys.
    pub keys: bool,
    /// Whether it wants timestamps.
    pub timestamps: bool,
    /// Whether it wants headers.
    pub headers: bool,
    /// The largest batch it wishes for, in bytes; absent: no wish.
    pub max_batch_bytes: Option<u32>,
    /// The most records it wishes for in a batch; absent: no wish.
    pub max_batch_records: Option<u32>,
    /// How long the target keeps a prepared transaction; absent: for ever.
    pub prepared_lifetime: Option<Duration>,
    /// How long a request that was sent can still take effect at the target after its sender is gone, in milliseconds.
    pub settle_ms: u32,
}

impl Profile {
    /// Whether a batch with that framing has to say where each record ends.
    pub fn wants_ends(&self, framing: Framing) -> bool {
        self.ends || framing == Framing::Bare
    }
}

/// What the records are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Bytes.
    Opaque,
    /// Text without structure.
    Lines,
    /// One JSON value a record.
    Json,
    /// One CSV row a record.
    Csv,
}

/// What a sink gets to read: the same for the life of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// What the records are.
    pub format: Format,
    /// The names in a CSV header, else empty.
    pub columns: Vec<String>,
}

/// What an instance is opened with.
#[derive(Clone, Debug)]
pub struct OpenRequest {
    /// The pipeline.
    pub pipeline: PipelineId,
    /// The sink within it.
    pub sink: SinkId,
    /// The lane that a writer serves. Committers and probes are told 0.
    pub lane: Lane,
    /// How many lanes the pipeline has.
    pub lanes: u32,
    /// What is read.
    pub input: Input,
    /// The sink's config, one JSON object that was checked against the plugin's schema.
    pub config_json: String,
}

/// How the records of a batch lie in its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// The records' bytes and nothing else.
    Bare,
    /// Every record ends in its one line feed.
    LineFeed,
}

/// Values back to back: value i is `bytes[ends[i-1]..ends[i]]`.
#[derive(Clone, Debug, Default)]
pub struct Column {
    /// The values.
    pub bytes: Bytes,
    /// Where each ends.
    pub ends: Arc<[u32]>,
    /// Rising indexes of null values.
    pub absent: Arc<[u32]>,
}

/// The headers of a batch: record i owns entries `ends[i-1]..ends[i]` of names and values.
#[derive(Clone, Debug, Default)]
pub struct HeaderColumns {
    /// Where each record's headers end.
    pub ends: Arc<[u32]>,
    /// Their names.
    pub names: Column,
    /// Their values.
    pub values: Column,
}

/// Records of one split. Cheap to clone: the bytes are shared, and are copied once, into the plugin's memory.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The split.
    pub split: SplitId,
    /// The first record's number in the split.
    pub first: u64,
    /// How many records.
    pub count: u32,
    /// How they lie in `bytes`.
    pub framing: Framing,
    /// The records.
    pub bytes: Bytes,
    /// Where each record ends; needed where [`Profile::wants_ends`] says so, and not handed over otherwise.
    pub ends: Option<Arc<[u32]>>,
    /// Rising indexes of null records.
    pub absent: Option<Arc<[u32]>>,
    /// Keys, where the source has them.
    pub keys: Option<Column>,
    /// Milliseconds since 1970 UTC, where the source has them.
    pub timestamps: Option<Arc<[i64]>>,
    /// Headers, where the source has them.
    pub headers: Option<HeaderColumns>,
}

impl Batch {
    /// A batch of plain records, without keys, timestamps and headers.
    pub fn new(split: SplitId, first: u64, count: u32, framing: Framing, bytes: Bytes, ends: Option<Arc<[u32]>>) -> Self {
        Self { split, first, count, framing, bytes, ends, absent: None, keys: None, timestamps: None, headers: None }
    }
}

/// A record that the target can never take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Its index in the batch.
    pub index: u32,
    /// The target's words, bounded in length.
    pub reason: String,
}

/// What a plugin returns from precommit, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// All that a new process needs to commit, besides the transaction.
    pub handle: Vec<u8>,
    /// How many records the target says it holds, where it says so.
    pub records: Option<u64>,
}

/// What a plugin that keeps the contract answers to abort.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AbortAnswer {
    /// The transaction is not visible and never will be.
    Done,
    /// It was committed. The ledger is older than the target, and the pipeline has to stop.
    Committed {
        /// The plugin's words.
        message: String,
    },
}

/// What an instance is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// begin, invoke, precommit
    Writer,
    /// commit, abort
    Committer,
    /// open only; writes nothing
    Probe,
}

impl Role {
    /// The role's name in the contract.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Writer => "writer",
            Role::Committer => "committer",
            Role::Probe => "probe",
        }
    }
}

/// A plugin's name within Weir: the stem of its file.
pub(crate) fn stem_of(path: &Path) -> Option<String> {
    let stem = path.file_stem()?.to_str()?;
    is_name(stem, crate::limits::MAX_NAME_BYTES).then(|| stem.to_owned())
}

/// `[a-z0-9][a-z0-9_-]*`, and not too long.
pub(crate) fn is_name(text: &str, limit: usize) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    text.len() <= limit && text.bytes().next().is_some_and(plain) && text.bytes().all(|b| plain(b) || b == b'-' || b == b'_')
}
