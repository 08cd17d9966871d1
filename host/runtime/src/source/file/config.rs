//! What a pipeline says about the files it reads.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::memory::Memory;
use crate::config::values::{Size, Time};

/// Files that a pattern names, read in the order of their names.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileSourceConfig {
    /// Which files: a path with `*`, `?` and `[…]` for characters of a name and `**` for folders. A relative path counts from the folder of the configuration
    /// file. Names that begin with a dot match only a pattern that says so. Regular files only; links are followed.
    #[schemars(extend("examples" = ["data/orders-*.jsonl", "/var/log/shop/*.log"], "minLength" = 1))]
    pub(crate) path: String,
    /// What a record is. `lines`: a line of any bytes. `json`: a line that holds one JSON value, in UTF-8. `csv`: a row by RFC 4180, comma-separated; the
    /// first row of every file is the header.
    #[serde(default)]
    pub(crate) format: FileFormat,
    /// Whether to go on when the end is reached: wait for appended data and for new files. Without it each file is read to the size it has at the start, and
    /// the pipeline ends.
    #[serde(default)]
    pub(crate) follow: bool,
    /// For `json`: whether to parse every line and to stop at one that is not a JSON value. Without it only UTF-8 is checked, and the sink judges the rest.
    #[serde(default)]
    pub(crate) validate: bool,
    /// The longest record, with its line feed. A longer one stops the pipeline.
    #[serde(default = "default_max_record")]
    pub(crate) max_record_bytes: Size,
    /// For `follow`: how often to look at least, for file systems that do not tell of changes.
    #[serde(default = "default_poll")]
    pub(crate) poll: Time,
    /// Splits whose unread rest is given up for lost, by the id that an error named. Nothing is ever given up without being named here.
    #[serde(default)]
    pub(crate) abandon: Vec<String>,
    /// What the pipeline's generations tell each other, for as long as the process lives.
    #[serde(skip)]
    pub(super) memory: Memory,
}

/// What a record of a file is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum FileFormat {
    /// A line of any bytes.
    #[default]
    Lines,
    /// A line that holds one JSON value.
    Json,
    /// A row by RFC 4180, below a header.
    Csv,
}

/// Shortest time between two looks at the files: a smaller `poll` is raised to it.
pub(super) const MIN_POLL: Duration = Duration::from_millis(50);

impl FileSourceConfig {
    /// Files by a pattern, everything else as it is by default.
    pub fn new(path: impl Into<String>, format: FileFormat) -> Self {
        Self {
            path: path.into(),
            format,
            follow: false,
            validate: false,
            max_record_bytes: default_max_record(),
            poll: default_poll(),
            abandon: Vec::new(),
            memory: Memory::default(),
        }
    }

    /// The same, followed.
    #[must_use]
    pub fn followed(mut self) -> Self {
        self.follow = true;
        self
    }

    pub(super) fn max_record(&self) -> usize {
        usize::try_from(self.max_record_bytes.0).unwrap_or(usize::MAX)
    }

    pub(super) fn poll(&self) -> Duration {
        self.poll.0.max(MIN_POLL)
    }
}

fn default_max_record() -> Size {
    Size(1024 * 1024)
}

fn default_poll() -> Time {
    Time(Duration::from_secs(1))
}
