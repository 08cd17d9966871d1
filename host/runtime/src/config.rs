//! The configuration file: raw YAML to checked values, before anything is opened.
//!
//! Two steps. [`Draft::read`] takes the file apart and finds what can be told from it alone: syntax, keys, types, variables, names. [`Draft::check`] then
//! holds it against the [`Catalog`] of plugins, which the caller has filled in between with the plugins that [`Draft::plugins_used`] names, and ends in a
//! [`Config`] or in a [`Report`] of everything that is wrong, each with its place and what to write instead.
//!
//! [`Config`] and what it holds are what the rest of the runtime works with. Nothing in them needs checking again: names are names, paths are
//! absolute, plugin configs have passed their plugin's schema, and every folder that is granted was there.
//!
//! Modules in reading order: [`report`] what is wrong, for people and for programs; `node` and `yaml` the file as a tree in which every value knows its place;
//! `variables`; `raw` the keys of the file, from which its JSON Schema is made; `schema` and `explain` a tree held against a JSON Schema, the file's own
//! or a plugin's; [`catalog`]; `check`, `sinks` and `planned` what no schema can say; [`reference`] the documentation.

mod check;
mod explain;
mod node;
mod planned;
mod raw;
mod schema;
mod sinks;
mod spelling;
pub(crate) mod values;
mod variables;
mod yaml;

pub mod catalog;
pub mod reference;
pub mod report;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use weir_engine::{Grants, Limits};
use weir_protocol::{Delivery, PipelineId, SinkId};

use crate::source::file::FileSourceConfig;
use crate::source::generate::GenerateSourceConfig;

pub use catalog::{Catalog, PluginFacts};
pub use check::Draft;
pub use raw::DEFAULT_PLUGINS;
pub use report::{ConfigError, Report};
pub use schema::file_schema;
pub(crate) use spelling::{list, nearest};
pub use variables::{ProcessVariables, Variables};

/// Largest configuration file, in bytes.
pub const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// A configuration file that was checked to the end.
#[derive(Clone, Debug)]
pub struct Config {
    /// The file, as it was named on the command line.
    pub file: PathBuf,
    /// The file's folder, absolute. Relative paths count from here, the file source's pattern too.
    pub folder: PathBuf,
    /// Where the durable facts are.
    pub ledger: LedgerConfig,
    /// The folder of plugins, absolute.
    pub plugins: PathBuf,
    /// The pipelines; at least one.
    pub pipelines: BTreeMap<PipelineId, PipelineConfig>,
}

/// Where the durable facts are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LedgerConfig {
    /// A SQLite file.
    Sqlite {
        /// Its path, absolute. The folder exists; the file is created by the first run.
        path: PathBuf,
    },
}

impl fmt::Display for LedgerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite { path } => write!(f, "sqlite://{}", path.display()),
        }
    }
}

/// One source, its sinks, and when their transactions end.
#[derive(Clone, Debug)]
pub struct PipelineConfig {
    /// What is read.
    pub source: SourceConfig,
    /// How many workers read and write beside each other; at least 1.
    pub lanes: u32,
    /// When an epoch ends.
    pub checkpoint: CheckpointConfig,
    /// What is promised. Every sink's plugin can keep it.
    pub delivery: Delivery,
    /// What follows a failure.
    pub restart: RestartConfig,
    /// Where the records go; at least one sink.
    pub sinks: BTreeMap<SinkId, SinkConfig>,
}

/// What is read.
#[derive(Clone, Debug)]
pub enum SourceConfig {
    /// Files.
    File(FileSourceConfig),
    /// Records made up on the spot.
    Generate(GenerateSourceConfig),
}

/// When an epoch ends: whichever comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointConfig {
    /// After this time; more than zero.
    pub interval: Duration,
    /// After this many records, of all lanes together; at least 1.
    pub records: Option<u64>,
    /// After this many bytes of records, of all lanes together; at least 1.
    pub bytes: Option<u64>,
}

/// What follows a failure that may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestartConfig {
    /// The wait before the first restart; it doubles with every failure in a row. More than zero.
    pub backoff: Duration,
    /// The longest wait; at least `backoff`.
    pub max_backoff: Duration,
    /// How many restarts in a row without a decision between them; `None`: as many as it takes.
    pub attempts: Option<u32>,
}

/// Where records go.
#[derive(Clone)]
pub struct SinkConfig {
    /// The plugin: the stem of a file in the plugin folder.
    pub plugin: String,
    /// The plugin's own config: one JSON object that its schema accepts. It may hold passwords, so it is never logged.
    pub config_json: String,
    /// What the plugin may reach.
    pub grants: Grants,
    /// How much it may use.
    pub limits: Limits,
}

impl fmt::Debug for SinkConfig {
    /// Without the config and the values of granted environment variables, which may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SinkConfig").field("plugin", &self.plugin).field("limits", &self.limits).finish_non_exhaustive()
    }
}
