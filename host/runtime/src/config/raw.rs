//! The keys of the file. The file's JSON Schema is made from these types, and so are its checks and its reference: a key is added here, and
//! taken over into the checked config in `check` or `sinks`.
//!
//! A type that is read as a whole has `Deserialize`. The others are read key by key, so that an error in one key hides none in the next; of those only the
//! schema is used.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::values::{Attempts, Count, Size, Time};
use crate::source::file::FileSourceConfig;
use crate::source::generate::GenerateSourceConfig;

/// What to read, where to write it, and how.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, title = "a Weir configuration")]
#[expect(dead_code, reason = "read key by key; the type is its schema")]
pub(crate) struct File {
    /// Where Weir keeps what it must never forget: `sqlite://` and the path of a file, which the first run creates. A relative path counts
    /// from the folder of this file. Keep it on a disk of this machine, and back it up with the targets.
    #[schemars(extend("examples" = ["sqlite://weir.db", "sqlite:///var/lib/weir/weir.db"]))]
    ledger: String,
    /// The folder of plugins. A plugin's name is the stem of its file: `plugins/doris.wasm` is `doris`. A relative path counts from the folder of this file.
    #[serde(default = "default_plugins")]
    plugins: String,
    /// The pipelines, by name. A name is part of what identifies a pipeline's transactions, so a renamed pipeline is a new one.
    #[schemars(extend("minProperties" = 1, "propertyNames" = name_schema()))]
    pipelines: BTreeMap<String, Pipeline>,
}

/// One source, one or more sinks, and when their transactions end. All sinks of a pipeline get all its records, and are decided on in one step.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "read key by key; the type is its schema")]
pub(crate) struct Pipeline {
    /// What to read: one kind of source.
    source: Source,
    /// How many workers read and write beside each other. This version runs one.
    #[serde(default = "default_lanes")]
    #[schemars(range(min = 1, max = 10_000))]
    lanes: u32,
    /// When an epoch ends and its records become visible: whichever comes first.
    #[serde(default)]
    checkpoint: Checkpoint,
    /// What the sinks' targets will show of each record. `exactly-once`: once, through every crash.
    #[serde(default)]
    delivery: DeliveryName,
    /// What follows a failure that may pass.
    #[serde(default)]
    restart: Restart,
    /// Where the records go: a name of your own for each sink. The name is part of what identifies the sink's transactions.
    #[schemars(extend("minProperties" = 1, "propertyNames" = name_schema()))]
    sinks: BTreeMap<String, Sink>,
}

/// What to read: exactly one of these.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
pub(crate) struct Source {
    /// Files that a pattern names.
    #[serde(default, skip_serializing)]
    #[schemars(with = "FileSourceConfig")]
    pub(crate) file: Option<FileSourceConfig>,
    /// Records made up on the spot, always the same ones, to try things out.
    #[serde(default, skip_serializing)]
    #[schemars(with = "GenerateSourceConfig")]
    pub(crate) generate: Option<GenerateSourceConfig>,
}

/// When an epoch ends.
#[derive(Serialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Checkpoint {
    /// After this time at the latest. It is how long a record waits to be seen.
    pub(crate) interval: Time,
    /// After this many records.
    #[serde(skip_serializing)]
    #[schemars(with = "Count")]
    pub(crate) records: Option<Count>,
    /// After this many bytes of records.
    #[serde(skip_serializing)]
    #[schemars(with = "Size")]
    pub(crate) bytes: Option<Size>,
}

impl Default for Checkpoint {
    fn default() -> Self {
        Self { interval: Time(std::time::Duration::from_secs(5)), records: None, bytes: None }
    }
}

/// What the sinks' targets will show of each record.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum DeliveryName {
    /// Each record once, through every crash.
    #[default]
    ExactlyOnce,
}

/// What follows a failure that may pass: the pipeline goes back to its last decision and on from there.
#[derive(Serialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Restart {
    /// The wait before the first restart. It doubles with every failure in a row.
    pub(crate) backoff: Time,
    /// The longest wait.
    pub(crate) max_backoff: Time,
    /// How many restarts in a row, without an epoch decided between them, before the pipeline stops.
    pub(crate) attempts: Attempts,
}

impl Default for Restart {
    fn default() -> Self {
        let seconds = |s| Time(std::time::Duration::from_secs(s));
        Self { backoff: seconds(1), max_backoff: seconds(60), attempts: Attempts(None) }
    }
}

/// One place that the records go to.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "read key by key; the type is its schema")]
pub(crate) struct Sink {
    /// The plugin that writes there: the stem of a file in the plugin folder.
    plugin: String,
    /// The plugin's own config. `weir plugins inspect FILE` prints its schema.
    #[serde(default)]
    config: BTreeMap<String, serde_json::Value>,
    /// What the plugin may reach. Without a grant it reaches nothing but its own memory.
    #[serde(default)]
    grant: Grant,
    /// How much the plugin may use.
    #[serde(default)]
    limits: SinkLimits,
}

/// What a plugin may reach.
#[derive(Default, Serialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "read key by key; the type is its schema")]
pub(crate) struct Grant {
    /// Servers that it may send HTTP requests to, each `host:port`. The name is compared as it is written in the request.
    #[schemars(extend("examples" = [["127.0.0.1:8030", "doris.example:443"]]))]
    pub(crate) http: Vec<String>,
    /// Folders that it may use: the path that it sees, and the folder of this machine behind it. A relative path counts from the folder of this file.
    #[schemars(extend("examples" = [{ "/out": "./out", "/in": { "path": "./in", "write": false } }]))]
    pub(crate) folders: BTreeMap<String, FolderGrant>,
    /// Environment variables that it sees. Nothing of this process's environment reaches it otherwise.
    #[schemars(extend("examples" = [{ "TZ": "UTC", "TOKEN": "${TOKEN}" }]))]
    pub(crate) env: BTreeMap<String, String>,
    /// A file of certificates (PEM) that its HTTPS requests trust beside the public ones. A relative path counts from the folder of this file.
    #[serde(skip_serializing)]
    #[schemars(with = "String", extend("examples" = ["./ca.pem"]))]
    pub(crate) ca_file: Option<String>,
}

/// A folder of this machine.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline, title = "a folder", description = "A path, or `{ path: ./in, write: false }` for a folder that is only read.")]
pub(crate) enum FolderGrant {
    /// To read and write in.
    Path(String),
    /// With a choice.
    Full(FolderAccess),
}

/// A folder, and whether it may be written.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub(crate) struct FolderAccess {
    /// The folder of this machine.
    pub(crate) path: String,
    /// Whether the plugin may write in it.
    #[serde(default = "yes")]
    pub(crate) write: bool,
}

/// How much a plugin may use.
#[derive(Default, Serialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "read key by key; the type is its schema")]
pub(crate) struct SinkLimits {
    /// Memory of one instance. A plugin that asks for more is ended.
    #[serde(skip_serializing)]
    #[schemars(with = "Size", extend("default" = "256MiB"))]
    pub(crate) memory: Option<Size>,
    /// The longest that one call into the plugin may take. A plugin that takes longer is ended.
    #[serde(skip_serializing)]
    #[schemars(with = "Time", extend("default" = "60s"))]
    pub(crate) call: Option<Time>,
}

/// Where plugins are, where the file does not say.
pub const DEFAULT_PLUGINS: &str = "./plugins";

fn default_plugins() -> String {
    DEFAULT_PLUGINS.to_owned()
}

fn default_lanes() -> u32 {
    1
}

fn yes() -> bool {
    true
}

/// What names look like, as weir-protocol's `PipelineId` and `SinkId` check it.
fn name_schema() -> serde_json::Value {
    serde_json::json!({ "pattern": "^[a-z0-9][a-z0-9_-]{0,62}$" })
}
