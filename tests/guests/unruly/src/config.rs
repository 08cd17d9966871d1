//! What a test writes under `config`. The README lists the abuses.

use contract::types::{Error, ErrorKind, Verdict};
use serde::Deserialize;

use crate::errors;

pub(crate) const SCHEMA: &str = include_str!("config.schema.json");

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// A granted folder for the data and the log of calls.
    pub(crate) directory: String,
    /// Absent: none, a sink that behaves.
    pub(crate) abuse: Option<Abuse>,
    /// The call that it happens in; abuses that belong to one call ignore it.
    #[serde(default)]
    pub(crate) r#in: Call,
    /// How often it happens in all instances that share the folder; absent: always.
    pub(crate) times: Option<u32>,
    /// HOST:PORT for abuses that call somebody.
    pub(crate) address: Option<String>,
    /// How large, for abuses that have a size.
    pub(crate) bytes: Option<usize>,
    /// How long, for `slow`.
    #[serde(default)]
    pub(crate) ms: u64,
    /// The kind of error that `fail` answers.
    #[serde(default)]
    kind: Kind,
    /// What `verdict` answers.
    #[serde(default)]
    verdict: Answer,
    /// What the profile asks for and promises.
    #[serde(default)]
    pub(crate) profile: Wishes,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Abuse {
    Trap,
    Exit,
    Spin,
    Recurse,
    WaitPollable,
    WaitHttp,
    Grow,
    Hoard,
    FloodLog,
    LongLogLine,
    HugeWrite,
    CallHttp,
    CallTcp,
    Escape,
    Slow,
    Fail,
    HugeError,
    HugeTarget,
    RejectLast,
    RejectTwice,
    RejectOutOfRange,
    HugeReasons,
    HugeHandle,
    WrongRecords,
    Verdict,
}

#[derive(Clone, Copy, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Call {
    Open,
    Begin,
    #[default]
    Invoke,
    Precommit,
    Commit,
    Abort,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    #[default]
    Unavailable,
    Refused,
    BadData,
    Conflict,
    Broken,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Answer {
    Committed,
    AlreadyCommitted,
    #[default]
    Lost,
    Unknown,
}

#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Wishes {
    pub(crate) ends: bool,
    pub(crate) keys: bool,
    pub(crate) timestamps: bool,
    pub(crate) headers: bool,
    pub(crate) max_batch_bytes: u32,
    pub(crate) max_batch_records: u32,
    pub(crate) prepared_lifetime_s: Option<u32>,
    pub(crate) settle_ms: u32,
}

impl Config {
    pub(crate) fn parse(json: &str) -> Result<Self, Error> {
        serde_json::from_str(json).map_err(|error| errors::refused(format!("the configuration does not fit: {error}")))
    }

    pub(crate) fn error_kind(&self) -> ErrorKind {
        match self.kind {
            Kind::Unavailable => ErrorKind::Unavailable,
            Kind::Refused => ErrorKind::Refused,
            Kind::BadData => ErrorKind::BadData,
            Kind::Conflict => ErrorKind::Conflict,
            Kind::Broken => ErrorKind::Broken,
        }
    }

    pub(crate) fn verdict(&self) -> Verdict {
        match self.verdict {
            Answer::Committed => Verdict::Committed,
            Answer::AlreadyCommitted => Verdict::AlreadyCommitted,
            Answer::Lost => Verdict::Lost,
            Answer::Unknown => Verdict::Unknown,
        }
    }
}

impl Abuse {
    /// The one call that an abuse belongs to; `None` where the configuration says which.
    pub(crate) fn belongs_to(self) -> Option<Call> {
        match self {
            Self::HugeTarget => Some(Call::Open),
            Self::RejectLast | Self::RejectTwice | Self::RejectOutOfRange | Self::HugeReasons => Some(Call::Invoke),
            Self::HugeHandle | Self::WrongRecords => Some(Call::Precommit),
            Self::Verdict => Some(Call::Commit),
            _ => None,
        }
    }

    /// The size that is used where the configuration gives none: beyond what a host should take.
    pub(crate) fn default_bytes(self) -> usize {
        match self {
            Self::HugeHandle | Self::HugeWrite => 100_000_000,
            Self::FloodLog | Self::LongLogLine => 50_000_000,
            _ => 10_000_000,
        }
    }
}
