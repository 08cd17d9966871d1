//! From the file's text to a checked [`Config`], or to everything that is wrong with it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use weir_protocol::{Delivery, PipelineId, SinkId};

use super::catalog::Catalog;
use super::node::{Node, Place, Step, descend, path_text};
use super::raw;
use super::report::{ConfigError, Report};
use super::schema::{Owner, Schema, file_schema};
use super::variables::{Variables, resolve};
use super::{CheckpointConfig, Config, LedgerConfig, MAX_FILE_BYTES, PipelineConfig, RestartConfig, SourceConfig, planned, sinks, yaml};
use crate::error::code;
use crate::source::codes::BAD_PATTERN;
use crate::source::file::{FileSource, FileSourceConfig};

/// A file that was read and taken apart, with what is wrong with it so far.
#[derive(Debug)]
pub struct Draft {
    file: PathBuf,
    pub(super) folder: PathBuf,
    pub(super) text: String,
    pub(super) root: Node,
    pub(super) errors: Vec<ConfigError>,
}

impl Draft {
    /// Reads a file. What is wrong with its values is kept for [`Draft::check`]; an error here means that there are no values.
    pub fn read(file: &Path, variables: &dyn Variables) -> Result<Self, Report> {
        let unreadable = |message: String| {
            let help = "name the file with `--config FILE`; docs/configuration.md has one to begin with".to_owned();
            Report::new(file, "", vec![ConfigError { code: code::CONFIG_UNREADABLE, message, help, place: None, path: String::new() }])
        };
        let bytes = read_at_most(file, MAX_FILE_BYTES).map_err(|error| unreadable(format!("the file cannot be read: {error}")))?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(unreadable(format!("the file has more than {MAX_FILE_BYTES} bytes")));
        }
        let text = String::from_utf8(bytes).map_err(|error| unreadable(format!("the file is not UTF-8: {error}")))?;
        let folder = std::path::absolute(file).ok().and_then(|path| path.parent().map(Path::to_owned));
        Self::from_text(file, folder.unwrap_or_else(|| PathBuf::from("/")), text, variables)
    }

    /// Takes the text of a file apart; relative paths in it count from `folder`.
    pub fn from_text(file: &Path, folder: PathBuf, text: String, variables: &dyn Variables) -> Result<Self, Report> {
        let mut errors = Vec::new();
        let Some(mut root) = yaml::parse(&text, &mut errors) else { return Err(Report::new(file, &text, errors)) };
        resolve(&mut root, variables, &mut Vec::new(), &mut errors);
        match Schema::new(&file_schema()) {
            Ok(schema) => errors.extend(schema.check(Owner::File, &text, &root, &[])),
            Err(error) => errors.push(ConfigError {
                code: code::INTERNAL,
                message: format!("the schema of the configuration is broken: {error}"),
                help: "report it; this is a bug".to_owned(),
                place: None,
                path: String::new(),
            }),
        }
        planned::amend(&mut errors, &root);
        Ok(Self { file: file.to_owned(), folder, text, root, errors })
    }

    /// The folder of plugins, absolute; `None` if the file does not say.
    pub fn plugins_folder(&self) -> Option<PathBuf> {
        match self.root.get("plugins") {
            Some(node) => node.text().filter(|_| !node.unresolved()).map(|text| self.absolute(&text.text)),
            None => Some(self.absolute(raw::DEFAULT_PLUGINS)),
        }
    }

    /// The plugins that the sinks name.
    pub fn plugins_used(&self) -> BTreeSet<String> {
        let pipelines = self.root.get("pipelines").map(Node::entries).unwrap_or_default();
        let sinks = pipelines.iter().filter_map(|pipeline| pipeline.node.get("sinks")).flat_map(Node::entries);
        sinks.filter_map(|sink| sink.node.get("plugin")).filter_map(|node| node.text()).map(|text| text.text.clone()).collect()
    }

    /// The ledger alone, for commands that need nothing else.
    pub fn ledger(mut self) -> Result<LedgerConfig, Report> {
        let ledger = self.read_ledger();
        let Self { file, text, errors, .. } = self;
        ledger.ok_or_else(|| {
            let errors = errors.into_iter().filter(|error| error.path == "ledger" || error.path.is_empty()).collect();
            Report::new(&file, &text, errors)
        })
    }

    /// What is wrong so far.
    pub fn report(self) -> Report {
        Report::new(&self.file, &self.text, self.errors)
    }

    /// Holds the file against the plugins. Opens nothing.
    pub fn check(mut self, catalog: &dyn Catalog) -> Result<Config, Report> {
        let ledger = self.read_ledger();
        let plugins = self.read_plugins_folder();
        let pipelines = self.read_pipelines(catalog);
        match (ledger, plugins) {
            (Some(ledger), Some(plugins)) if self.errors.is_empty() => {
                Ok(Config { file: self.file, folder: self.folder, ledger, plugins, pipelines })
            }
            _ => Err(Report::new(&self.file, &self.text, self.errors)),
        }
    }

    fn read_ledger(&mut self) -> Option<LedgerConfig> {
        let at = [Step::Key("ledger".to_owned())];
        let url: String = self.section(&at)?;
        let shown = self.node(&at).map(|node| node.shown(&self.text)).unwrap_or_default();
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            return self.refuse(
                &at,
                code::CONFIG_NOT_SUPPORTED,
                "a ledger in PostgreSQL is not supported yet".to_owned(),
                "write `sqlite://` and a path",
            );
        }
        let Some(path) = url.strip_prefix("sqlite://").filter(|path| !path.is_empty() && *path != ":memory:" && !path.contains('?')) else {
            return self.refuse(
                &at,
                code::CONFIG_BAD_VALUE,
                format!("{shown} is not a ledger"),
                "write `sqlite://` and the path of a file, without options, such as `sqlite://weir.db`",
            );
        };
        let path = self.absolute(path);
        if path.is_dir() {
            return self.refuse(&at, code::CONFIG_BAD_VALUE, format!("{shown} is a folder"), "name a file, such as `sqlite://weir.db`");
        }
        let folder = path.parent().unwrap_or(&path);
        if !folder.is_dir() {
            let message = format!("the folder of the ledger, {}, does not exist", self.shown_path(&at, folder));
            return self.refuse(&at, code::CONFIG_PATH_MISSING, message, "create the folder; the file in it is made by the first run");
        }
        Some(LedgerConfig::Sqlite { path })
    }

    fn read_plugins_folder(&mut self) -> Option<PathBuf> {
        let folder = self.plugins_folder()?;
        if !folder.is_dir() {
            let at = [Step::Key("plugins".to_owned())];
            let message = format!("the folder of plugins, {}, does not exist", self.shown_path(&at, &folder));
            let help = "create it and put the plugins' `.wasm` files there, or write where they are: `plugins: PATH`";
            return self.refuse(&at, code::CONFIG_PATH_MISSING, message, help);
        }
        Some(folder)
    }

    fn read_pipelines(&mut self, catalog: &dyn Catalog) -> BTreeMap<PipelineId, PipelineConfig> {
        let mut pipelines = BTreeMap::new();
        for name in keys(self.root.get("pipelines")) {
            let at = [Step::Key("pipelines".to_owned()), Step::Key(name.clone())];
            let pipeline = self.read_pipeline(&at, catalog);
            // A name that is not allowed was reported by the schema.
            if let (Some(pipeline), Ok(id)) = (pipeline, PipelineId::try_from(name)) {
                pipelines.insert(id, pipeline);
            }
        }
        pipelines
    }

    fn read_pipeline(&mut self, at: &[Step; 2], catalog: &dyn Catalog) -> Option<PipelineConfig> {
        let source = self.read_source(&under(at, "source"));
        let lanes = self.read_lanes(at);
        let checkpoint = self.read_checkpoint(&under(at, "checkpoint"));
        let restart = self.read_restart(&under(at, "restart"));
        let delivery = self.field(at, "delivery", raw::DeliveryName::default()).map(|raw::DeliveryName::ExactlyOnce| Delivery::ExactlyOnce);
        let at_sinks = under(at, "sinks");
        let mut sinks = BTreeMap::new();
        for name in keys(self.node(&at_sinks)) {
            let sink = sinks::read(self, &under(&at_sinks, &name), delivery, catalog);
            if let (Some(sink), Ok(id)) = (sink, SinkId::try_from(name)) {
                sinks.insert(id, sink);
            }
        }
        sinks::refuse_twins(self, &at_sinks);
        Some(PipelineConfig { source: source?, lanes: lanes?, checkpoint: checkpoint?, delivery: delivery?, restart: restart?, sinks })
    }

    fn read_source(&mut self, at: &[Step]) -> Option<SourceConfig> {
        let source: raw::Source = self.section(at)?;
        match (source.file, source.generate) {
            (Some(file), None) => self.check_pattern(at, &file).map(|()| SourceConfig::File(file)),
            (None, Some(generate)) => Some(SourceConfig::Generate(generate)),
            // The schema refuses a mapping with none or several of them.
            _ => None,
        }
    }

    fn check_pattern(&mut self, at: &[Step], file: &FileSourceConfig) -> Option<()> {
        if FileSource::new(file.clone(), &self.folder).is_ok() {
            return Some(());
        }
        let at = under(&under(at, "file"), "path");
        let shown = self.node(&at).map(|node| node.shown(&self.text)).unwrap_or_default();
        self.refuse(&at, BAD_PATTERN.text, format!("{shown} is not a pattern of files"), BAD_PATTERN.remedy)
    }

    fn read_lanes(&mut self, at: &[Step]) -> Option<u32> {
        let lanes: u32 = self.field(at, "lanes", 1)?;
        if lanes > 1 {
            return self.refuse(
                &under(at, "lanes"),
                code::CONFIG_NOT_SUPPORTED,
                format!("{lanes} lanes are not supported yet"),
                "write `lanes: 1`, or leave the key out",
            );
        }
        Some(lanes)
    }

    fn read_checkpoint(&mut self, at: &[Step]) -> Option<CheckpointConfig> {
        let default = raw::Checkpoint::default();
        let interval = self.field(at, "interval", default.interval);
        let records = self.field(at, "records", default.records);
        let bytes = self.field(at, "bytes", default.bytes);
        let interval = interval?.0;
        if interval.is_zero() {
            let help = "write how long an epoch may last, such as `5s`";
            return self.refuse(&under(at, "interval"), code::CONFIG_BAD_VALUE, "a checkpoint all the time is none".to_owned(), help);
        }
        Some(CheckpointConfig { interval, records: records?.map(|count| count.0), bytes: bytes?.map(|size| size.0) })
    }

    fn read_restart(&mut self, at: &[Step]) -> Option<RestartConfig> {
        let default = raw::Restart::default();
        let backoff = self.field(at, "backoff", default.backoff);
        let max_backoff = self.field(at, "max_backoff", default.max_backoff);
        let attempts = self.field(at, "attempts", default.attempts);
        let (backoff, max_backoff) = (backoff?.0, max_backoff?.0);
        if backoff.is_zero() {
            let help = "write at least `1ms`";
            return self.refuse(
                &under(at, "backoff"),
                code::CONFIG_BAD_VALUE,
                "a wait of nothing would restart in a circle".to_owned(),
                help,
            );
        }
        if backoff > max_backoff {
            let key = if self.node(&under(at, "max_backoff")).is_some() { "max_backoff" } else { "backoff" };
            let help = "raise `max_backoff` (1m if it is not there), or lower `backoff`";
            return self.refuse(&under(at, key), code::CONFIG_BAD_VALUE, "the first wait is longer than the longest".to_owned(), help);
        }
        Some(RestartConfig { backoff, max_backoff, attempts: attempts?.0 })
    }

    /// The node at a path.
    pub(super) fn node(&self, at: &[Step]) -> Option<&Node> {
        descend(&self.root, at).map(|(node, _)| node)
    }

    /// The value at a path. `None` if there is none, or if something in it was found wrong before.
    pub(super) fn section<T: DeserializeOwned>(&mut self, at: &[Step]) -> Option<T> {
        let node = self.node(at)?;
        if !self.clean(at) {
            return None;
        }
        let secret = node.holds_variables();
        match serde_json::from_value(node.to_json()) {
            Ok(value) => Some(value),
            // What the schema lets through and the type does not: a rule that a schema cannot say. The type's words may quote the value.
            Err(error) => {
                let message = if secret { "it is not what is allowed here".to_owned() } else { error.to_string() };
                self.refuse(at, code::CONFIG_BAD_VALUE, message, "docs/configuration.md says what is allowed here")
            }
        }
    }

    /// The value of a key, or its default where the key is not there.
    pub(super) fn field<T: DeserializeOwned>(&mut self, at: &[Step], key: &str, default: T) -> Option<T> {
        let at = under(at, key);
        if self.node(&at).is_some() { self.section(&at) } else { Some(default) }
    }

    /// A path of the file as an absolute one, without `./` in it.
    pub(super) fn absolute(&self, path: &str) -> PathBuf {
        self.folder.join(path).components().collect()
    }

    /// A path that a value names, for an error message: in full, unless a variable had a part in it.
    pub(super) fn shown_path(&self, at: &[Step], path: &Path) -> String {
        match self.node(at).filter(|node| node.holds_variables()) {
            Some(node) => node.shown(&self.text),
            None => path.display().to_string(),
        }
    }

    /// Whether nothing at or below a path was found wrong.
    pub(super) fn clean(&self, at: &[Step]) -> bool {
        let path = path_text(at);
        !self.errors.iter().any(|error| error.path.strip_prefix(&path).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '['])))
    }

    /// Adds an error at a path, or at the nearest place above it that there is.
    pub(super) fn refuse<T>(&mut self, at: &[Step], code: &'static str, message: String, help: &str) -> Option<T> {
        let place = self.place(at);
        self.errors.push(ConfigError { code, message, help: help.to_owned(), place, path: path_text(at) });
        None
    }

    fn place(&self, at: &[Step]) -> Option<Place> {
        (0..=at.len()).rev().find_map(|length| {
            let (node, entry) = descend(&self.root, at.get(..length)?)?;
            let scalar = node.entries().is_empty() && length == at.len();
            Some(if scalar { node.place } else { entry.map_or(Place { length: 0, ..node.place }, |entry| entry.key_place) })
        })
    }
}

/// The path to a key of what a path leads to.
pub(super) fn under(at: &[Step], key: &str) -> Vec<Step> {
    let mut path = at.to_vec();
    path.push(Step::Key(key.to_owned()));
    path
}

pub(super) fn keys(node: Option<&Node>) -> Vec<String> {
    node.map(Node::entries).unwrap_or_default().iter().map(|entry| entry.key.clone()).collect()
}

fn read_at_most(file: &Path, limit: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(file)?.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}
