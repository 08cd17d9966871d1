//! Error codes and exit codes. Each code has a page under docs/errors with its cause and its remedy.

use std::process::ExitCode;

use weir_engine::{Fault, Retry};

/// How the process ends, for scripts. The numbers are a promise; docs/cli.md lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Everything that was asked for is done; for `run`: and committed.
    Done = 0,
    /// The host itself failed: a bug, or this machine.
    Internal = 1,
    /// The command line is wrong.
    Usage = 2,
    /// The configuration, or a plugin that it names, was refused. Nothing was opened.
    ConfigRefused = 3,
    /// The ledger cannot be used, or another host holds it.
    LedgerRefused = 4,
    /// A pipeline stopped with a coded error; what was decided before is safe.
    PipelineStopped = 5,
    /// The host was asked to stop and did, with epochs that are decided and not committed everywhere yet. The next run commits them first.
    CommitsOutstanding = 6,
}

impl Exit {
    /// All of them, ascending.
    pub const ALL: &'static [Exit] = &[
        Self::Done,
        Self::Internal,
        Self::Usage,
        Self::ConfigRefused,
        Self::LedgerRefused,
        Self::PipelineStopped,
        Self::CommitsOutstanding,
    ];

    /// The number.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// What it means, in one line.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Done => "done; `run`: everything decided is committed",
            Self::Internal => "the host failed: a bug, or this machine",
            Self::Usage => "the command line is wrong",
            Self::ConfigRefused => "the configuration or a plugin was refused; nothing was opened",
            Self::LedgerRefused => "the ledger cannot be used, or another host holds it",
            Self::PipelineStopped => "a pipeline stopped with a coded error; what was decided before is safe",
            Self::CommitsOutstanding => "stopped as asked; not everything decided is committed yet, which the next run does first",
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit.number())
    }
}

/// A code with what its page says at least.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodePage {
    /// The code.
    pub code: &'static str,
    /// What it means, as a sentence.
    pub meaning: String,
    /// Who has to act, as a sentence; empty where the page says more.
    pub cause: String,
    /// What to do; empty where the page says more.
    pub remedy: String,
}

impl CodePage {
    /// A page to begin with.
    pub fn skeleton(&self) -> String {
        format!("# {}\n\n{}\n\n## Cause\n\n{}\n\n## Remedy\n\n{}\n", self.code, self.meaning, self.cause, self.remedy)
    }
}

/// Every code that the host can report: its own, the sources' and the engine's.
pub fn all_codes() -> Vec<CodePage> {
    let own = CODES.iter().chain(crate::stop::CODES).map(|(code, meaning)| CodePage {
        code,
        meaning: sentence(meaning),
        cause: String::new(),
        remedy: String::new(),
    });
    let sources = crate::source::codes::ALL.iter().map(|code| CodePage {
        code: code.text,
        meaning: code.meaning.to_owned(),
        cause: "What the source reads.".to_owned(),
        remedy: code.remedy.to_owned(),
    });
    let engine = weir_engine::Code::ALL.iter().map(|code| CodePage {
        code: code.as_str(),
        meaning: code.meaning().to_owned(),
        cause: cause(code.fault(), code.retry()).to_owned(),
        remedy: code.remedy().to_owned(),
    });
    own.chain(sources).chain(engine).collect()
}

fn cause(fault: Fault, retry: Retry) -> &'static str {
    match (fault, retry) {
        (Fault::User, Retry::Never) => "The configuration, the data, or how Weir is run. It stays until somebody changes that.",
        (Fault::User, Retry::Later) => {
            "The configuration, the data, or how Weir is run. The pipeline tries again under its restart policy."
        }
        (Fault::Target, Retry::Never) => "What the sink writes to. It stays until somebody changes that.",
        (Fault::Target, Retry::Later) => "What the sink writes to, or the way there. The pipeline tries again under its restart policy.",
        (Fault::Plugin, Retry::Never) => "The plugin. It stays until the plugin is changed.",
        (Fault::Plugin, Retry::Later) => "The plugin. The pipeline tries again with a new instance, under its restart policy.",
        (Fault::Host, Retry::Never) => "This machine, or Weir itself. It stays until somebody changes that.",
        (Fault::Host, Retry::Later) => "This machine, or Weir itself. The pipeline tries again under its restart policy.",
    }
}

/// A phrase with a capital and a full stop.
fn sentence(phrase: &str) -> String {
    let mut letters = phrase.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str().trim_end_matches('.'))
}

macro_rules! codes {
    ($($name:ident = $text:literal, $meaning:literal;)*) => {
        /// The codes of the configuration and of the command line.
        pub mod code {
            $(#[doc = $meaning] pub const $name: &str = $text;)*

            /// A bug in the host; the other reasons for it are in `stop.rs`, which lists it.
            pub const INTERNAL: &str = "internal";
        }

        /// The codes of [`code`] with one line of meaning each.
        pub const CODES: &[(&str, &str)] = &[$(($text, $meaning),)*];
    };
}

codes! {
    CONFIG_UNREADABLE = "config-unreadable", "The configuration file cannot be read.";
    CONFIG_SYNTAX = "config-syntax", "The configuration file is not the YAML that Weir reads.";
    CONFIG_DUPLICATE_KEY = "config-duplicate-key", "A key is there twice in one mapping.";
    CONFIG_UNKNOWN_KEY = "config-unknown-key", "A key that means nothing where it is.";
    CONFIG_MISSING_KEY = "config-missing-key", "A key that must be there is not.";
    CONFIG_WRONG_TYPE = "config-wrong-type", "A value of the wrong type.";
    CONFIG_BAD_VALUE = "config-bad-value", "A value of the right type that is not allowed.";
    CONFIG_BAD_NAME = "config-bad-name", "The name of a pipeline or a sink that is not allowed.";
    CONFIG_MISSING_VARIABLE = "config-missing-variable", "An environment variable that the configuration uses is not set.";
    CONFIG_BAD_VARIABLE = "config-bad-variable", "Something between `${` and `}` that is not the name of a variable.";
    CONFIG_NOT_SUPPORTED = "config-not-supported", "A feature that this version does not have.";
    CONFIG_PATH_MISSING = "config-path-missing", "A folder or a file that the configuration names does not exist.";
    CONFIG_PLUGIN_MISSING = "config-plugin-missing", "A plugin that is not in the plugin folder.";
    CONFIG_PLUGIN_BROKEN = "config-plugin-broken", "A plugin whose config schema is not a JSON Schema.";
    CONFIG_PLUGIN_REFUSES = "config-plugin-refuses", "A sink's config that its plugin's schema refuses.";
    CONFIG_GUARANTEE = "config-guarantee", "A plugin that cannot give what the pipeline promises.";
    CONFIG_GRANT_MISSING = "config-grant-missing", "A plugin needs what the sink does not grant.";
    CONFIG_BAD_GRANT = "config-bad-grant", "A grant that does not say what may be reached.";
    CONFIG_SAME_SINK = "config-same-sink", "Two sinks of a pipeline that write the same records to the same place.";
    USAGE_UNKNOWN_PIPELINE = "usage-unknown-pipeline", "A pipeline that the configuration or the ledger does not have.";
    USAGE_BAD_LOG = "usage-bad-log", "What to log is not a level or a list of directives.";
    LEDGER_MISSING = "ledger-missing", "There is no ledger yet.";
}
