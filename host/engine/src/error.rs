//! What goes wrong with a plugin, who has to act, and whether trying again can help.

use std::fmt;
use std::time::Duration;

use crate::code::Code;

/// Who has to act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// Whoever wrote the pipeline file, or the data.
    User,
    /// Whoever runs what the sink writes to.
    Target,
    /// Whoever wrote the plugin.
    Plugin,
    /// This machine, or Weir itself.
    Host,
}

/// Whether the same thing can work later although nobody changed anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Retry {
    /// It can.
    Later,
    /// It fails again until somebody acts.
    Never,
}

/// Whether the instance that a call failed in can be called again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum InstanceState {
    /// The plugin answered with an error, and goes on.
    Usable,
    /// It trapped, ran out of time, broke the contract, or was never made. Close it and make another.
    Dead,
}

/// A function of the contract, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Call {
    /// Making the instance, before any call.
    Start,
    /// `describe`
    Describe,
    /// `open`
    Open,
    /// `begin`
    Begin,
    /// `invoke`
    Invoke,
    /// `precommit`
    Precommit,
    /// `commit`
    Commit,
    /// `abort`
    Abort,
    /// Ending the instance, after any call.
    Close,
}

impl Call {
    /// The function's name in the contract.
    pub fn as_str(self) -> &'static str {
        match self {
            Call::Start => "start",
            Call::Describe => "describe",
            Call::Open => "open",
            Call::Begin => "begin",
            Call::Invoke => "invoke",
            Call::Precommit => "precommit",
            Call::Commit => "commit",
            Call::Abort => "abort",
            Call::Close => "close",
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A call of a plugin that did not work.
///
/// The message is for people, bounded in length, and free of control characters other than line feed and tab.
#[derive(Clone, Debug, thiserror::Error)]
#[error("plugin {plugin}, {call}: {message}", plugin = .0.plugin, call = .0.call, message = .0.message)]
pub struct PluginError(Box<Details>);

#[derive(Clone, Debug)]
struct Details {
    plugin: String,
    call: Call,
    code: Code,
    message: String,
    target_code: Option<String>,
    retry_after: Option<Duration>,
    instance: InstanceState,
    log: Vec<String>,
}

impl PluginError {
    pub(crate) fn new(plugin: &str, call: Call, code: Code, message: impl Into<String>) -> Self {
        Self(Box::new(Details {
            plugin: plugin.to_owned(),
            call,
            code,
            message: message.into(),
            target_code: None,
            retry_after: None,
            instance: InstanceState::Dead,
            log: Vec::new(),
        }))
    }

    pub(crate) fn usable(mut self) -> Self {
        self.0.instance = InstanceState::Usable;
        self
    }

    pub(crate) fn with_log(mut self, log: Vec<String>) -> Self {
        self.0.log = log;
        self
    }

    pub(crate) fn with_target(mut self, code: String, retry_after: Option<Duration>) -> Self {
        self.0.target_code = Some(code).filter(|code| !code.is_empty());
        self.0.retry_after = retry_after;
        self
    }

    /// The plugin's name, as its file stem gives it.
    pub fn plugin(&self) -> &str {
        &self.0.plugin
    }

    /// Which function failed.
    pub fn call(&self) -> Call {
        self.0.call
    }

    /// What kind of failure it is; each has a page under `docs/errors/`.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// Who has to act.
    pub fn fault(&self) -> Fault {
        self.0.code.fault()
    }

    /// Whether trying again can help although nobody acts.
    pub fn retry(&self) -> Retry {
        self.0.code.retry()
    }

    /// What happened, without the plugin's name and the function's.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The target's own code (SQLSTATE, HTTP status), where the plugin gave one.
    pub fn target_code(&self) -> Option<&str> {
        self.0.target_code.as_deref()
    }

    /// How long the plugin asks to wait before the next try, where it asks.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// Whether the instance can be called again.
    pub fn instance(&self) -> InstanceState {
        self.0.instance
    }

    /// The last lines that the plugin wrote, oldest first, and what the host noticed about its requests. A Python traceback is here.
    pub fn log(&self) -> &[String] {
        &self.0.log
    }
}

/// A plugin that cannot be loaded, or an engine that cannot be made.
#[derive(Clone, Debug, thiserror::Error)]
pub enum EngineError {
    /// Something about the file, or about this machine.
    #[error("{subject}: {message}")]
    Load {
        /// The kind of failure; each has a page under `docs/errors/`.
        code: Code,
        /// The file or folder.
        subject: String,
        /// What is wrong with it, and what to do.
        message: String,
    },
    /// The plugin could not be asked what it is.
    #[error(transparent)]
    Describe(#[from] PluginError),
}

impl EngineError {
    pub(crate) fn load(code: Code, subject: impl fmt::Display, message: impl Into<String>) -> Self {
        Self::Load { code, subject: subject.to_string(), message: message.into() }
    }

    /// What kind of failure it is.
    pub fn code(&self) -> Code {
        match self {
            Self::Load { code, .. } => *code,
            Self::Describe(error) => error.code(),
        }
    }

    /// Who has to act.
    pub fn fault(&self) -> Fault {
        self.code().fault()
    }

    /// Whether trying again can help although nobody acts.
    pub fn retry(&self) -> Retry {
        self.code().retry()
    }
}
