//! Why a pipeline does not go on, and what follows: another try under the restart policy, the end of this pipeline, or the end of the host.

use std::fmt;

use weir_engine::{Call, Code, PluginError, Retry};
use weir_ledger::LedgerError;
use weir_protocol::decide::{Obligation, Owed, Unsettled};
use weir_protocol::invariants::Violation;
use weir_protocol::{Epoch, ProtocolError, SinkId, SplitId, Transaction};

use crate::lease::LeaseLost;
use crate::source::SourceError;

/// What follows from a [`Stop`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// Rewind to the last decision and go on, under the pipeline's restart policy.
    Restart,
    /// This pipeline ends; somebody has to mend something. Other pipelines go on.
    EndPipeline,
    /// The host ends: it may decide nothing any more.
    EndHost,
}

/// Why a pipeline does not go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The code; each has a page under docs/errors.
    pub code: &'static str,
    /// What happened, where, and what to do.
    pub message: String,
    /// What follows.
    pub then: Then,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self.message, self.code)
    }
}

impl std::error::Error for Stop {}

/// The codes of this file, with one line of meaning each. Plugins' and sources' codes are listed where they arise.
pub const CODES: &[(&str, &str)] = &[
    ("record-rejected", "a sink can never take one of the records"),
    ("transaction-lost", "a target lost a transaction that was decided"),
    ("transaction-unknown", "a target no longer remembers a transaction that was decided"),
    ("ledger-is-older", "a target shows what this ledger never decided"),
    ("unsettled-obligations", "the config cannot settle what earlier runs owe"),
    ("fenced", "another host runs this pipeline now"),
    ("lease-lost", "another host holds the ledger's lease now"),
    ("lease-held", "another host holds the ledger's lease"),
    ("ledger-unavailable", "the ledger cannot be reached"),
    ("ledger-corrupt", "the ledger is damaged or of another version"),
    ("ledger-cannot-open", "the ledger cannot be opened"),
    ("ledger-must-restart", "the ledger failed while writing"),
    ("prepared-wrong", "a sink's prepared transaction does not hold what was read"),
    ("decision-too-large", "one decision would list too many splits or slices"),
    ("invariant-violated", "the protocol found its own rules broken"),
    ("internal", "a bug in the host"),
];

impl Stop {
    fn new(code: &'static str, then: Then, message: String) -> Self {
        Self { code, message, then }
    }

    /// Of two reasons the one that asks for more: the host's end, the pipeline's end, a restart.
    pub(crate) fn more_severe(self, other: Option<Self>) -> Self {
        let severity = |stop: &Self| match stop.then {
            Then::Restart => 0,
            Then::EndPipeline => 1,
            Then::EndHost => 2,
        };
        match other {
            Some(other) if severity(&other) > severity(&self) => other,
            _ => self,
        }
    }

    /// Is what it is about such that nothing may be committed or aborted at a target before somebody has looked?
    pub(crate) fn leaves_targets_alone(&self) -> bool {
        const LOOK_FIRST: [&str; 6] =
            ["ledger-is-older", "transaction-lost", "transaction-unknown", "unsettled-obligations", "ledger-corrupt", "invariant-violated"];
        LOOK_FIRST.contains(&self.code)
    }

    /// The restart policy's tries are used up.
    pub(crate) fn gave_up(mut self, tries: u32) -> Self {
        self.message = format!("{}; given up after {tries} tries", self.message);
        self
    }

    /// A bug of the host.
    pub(crate) fn internal(message: String) -> Self {
        Self::new("internal", Then::EndPipeline, format!("{message}; this is a bug in the host, please report it"))
    }

    /// A call to a plugin failed before the decision. `conflict` on begin means that the label was used by somebody who knew more decisions.
    pub(crate) fn from_plugin(sink: &SinkId, error: PluginError) -> Self {
        let then = match error.retry() {
            Retry::Later => Then::Restart,
            Retry::Never => Then::EndPipeline,
        };
        if error.call() == Call::Begin && error.code() == Code::PluginConflict {
            return Self::new(
                "ledger-is-older",
                Then::EndPipeline,
                format!(
                    "sink {sink}: the target already knows a label that this ledger never used: {error}. \
                     The ledger is older than the target: a restored copy, or a lost tail. Bring back the newest ledger, or begin anew under another pipeline name"
                ),
            );
        }
        Self::new(error.code().as_str(), then, format!("sink {sink}: {error}{}", last_lines(&error)))
    }

    /// If records are at fault: which ones it is about.
    pub(crate) fn about(mut self, records: &str) -> Self {
        if self.code == Code::PluginBadData.as_str() {
            self.message = format!("{}\n    the transaction held {records}; nothing of it is visible", self.message);
        }
        self
    }

    /// Reading failed.
    pub(crate) fn from_source(split: &SplitId, error: SourceError) -> Self {
        let then = if error.retry { Then::Restart } else { Then::EndPipeline };
        Self::new(error.code, then, format!("{} (split {split})", error.message))
    }

    /// The source as a whole failed.
    pub(crate) fn from_discovery(error: SourceError) -> Self {
        let then = if error.retry { Then::Restart } else { Then::EndPipeline };
        Self::new(error.code, then, error.message)
    }

    /// A sink rejected a record, and there is nowhere else to put it.
    pub(crate) fn rejected(sink: &SinkId, place: &str, record: u64, reason: &str) -> Self {
        Self::new(
            "record-rejected",
            Then::EndPipeline,
            format!(
                "sink {sink} can never take record {record} of {place}: {reason}. Nothing of its epoch was written; mend the record or the sink's config, and start again"
            ),
        )
    }

    /// A target lost what was decided.
    pub(crate) fn lost(transaction: &Transaction) -> Self {
        Self::new(
            "transaction-lost",
            Then::EndPipeline,
            format!(
                "sink {} lost transaction {} of epoch {}, which was decided: it is not visible and never will be. `weir epochs` lists the records that it held",
                transaction.sink, transaction.label, transaction.epoch
            ),
        )
    }

    /// A target cannot say whether what was decided is visible.
    pub(crate) fn unknown(transaction: &Transaction) -> Self {
        Self::new(
            "transaction-unknown",
            Then::EndPipeline,
            format!(
                "sink {} no longer remembers transaction {} of epoch {}, which was decided: look at the target whether its records are visible",
                transaction.sink, transaction.label, transaction.epoch
            ),
        )
    }

    /// A target shows what was never decided here.
    pub(crate) fn ledger_is_older(transaction: &Transaction) -> Self {
        Self::new(
            "ledger-is-older",
            Then::EndPipeline,
            format!(
                "sink {} shows transaction {} of epoch {}, which this ledger never decided. \
                 The ledger is older than the target: a restored copy, or a lost tail. Bring back the newest ledger, or begin anew under another pipeline name",
                transaction.sink, transaction.label, transaction.epoch
            ),
        )
    }

    /// The config cannot settle what is owed.
    pub(crate) fn unsettled(obligations: &[Obligation]) -> Self {
        let lines: Vec<String> = obligations.iter().map(|obligation| format!("\n  - {}", Owing(obligation))).collect();
        Self::new(
            "unsettled-obligations",
            Then::EndPipeline,
            format!(
                "earlier runs left obligations that this config cannot settle; start once with the config they ran under:{}",
                lines.concat()
            ),
        )
    }

    /// Another generation was raised.
    pub(crate) fn fenced(epoch: Epoch, found: weir_protocol::Generation) -> Self {
        Self::new("fenced", Then::EndHost, format!("the decision of epoch {epoch} was refused: generation {found} runs this pipeline now"))
    }

    /// Whether a decision was written is not known, and there is no time to find out.
    pub(crate) fn outcome_unknown(epoch: Epoch) -> Self {
        Self::new(
            "ledger-unavailable",
            Then::EndHost,
            format!("the ledger has not answered whether epoch {epoch} is decided; the next start finds out"),
        )
    }

    /// The lease is gone.
    pub(crate) fn from_lease(lost: LeaseLost) -> Self {
        Self::new("lease-lost", Then::EndHost, lost.to_string())
    }

    /// A ledger call failed.
    pub(crate) fn from_ledger(error: LedgerError) -> Self {
        let then = match error {
            LedgerError::Unavailable { .. } => Then::Restart,
            LedgerError::Corrupt { .. } => Then::EndPipeline,
            LedgerError::Fenced { .. }
            | LedgerError::LeaseLost { .. }
            | LedgerError::CannotOpen { .. }
            | LedgerError::MustRestart { .. } => Then::EndHost,
            LedgerError::Protocol(error) => return error.into(),
        };
        Self::new(error.code(), then, error.to_string())
    }
}

impl From<ProtocolError> for Stop {
    fn from(error: ProtocolError) -> Self {
        let code = match &error {
            ProtocolError::WrongContents { .. } => "prepared-wrong",
            ProtocolError::DecisionTooLarge { .. } => "decision-too-large",
            _ => "invariant-violated",
        };
        Self::new(code, Then::EndPipeline, error.to_string())
    }
}

impl From<Violation> for Stop {
    fn from(violation: Violation) -> Self {
        Self::new("invariant-violated", Then::EndPipeline, violation.to_string())
    }
}

/// What the plugin wrote last, indented, where it wrote anything.
fn last_lines(error: &PluginError) -> String {
    error.log().iter().map(|line| format!("\n    {line}")).collect()
}

/// An obligation as a sentence.
struct Owing<'a>(&'a Obligation);

impl fmt::Display for Owing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.owed {
            Owed::Commit { sink, label } => write!(f, "sink {sink}: transaction {label} is decided and not yet known to be visible")?,
            Owed::Sweep { sink, generation } => {
                write!(f, "sink {sink}: generation {generation} may have left transactions that must be aborted")?
            }
        }
        match &self.0.problem {
            Unsettled::SinkGone => write!(f, ", and the config has no such sink"),
            Unsettled::TargetMoved { from, to } => write!(f, ", it wrote to {from}, and the config writes to {to}"),
            Unsettled::FormatUnknown { format } => write!(f, ", and its plugin does not commit handles of format {format}"),
            Unsettled::SourceMoved { from, to } => write!(f, ", its records came from {from}, and the config reads {to}"),
        }
    }
}
