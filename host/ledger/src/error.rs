//! What can go wrong with a ledger, told apart by what the caller must do.

use thiserror::Error;
use weir_protocol::{Generation, ProtocolError};

/// Who has to act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Whoever runs the hosts: two of them want the same pipelines, or the path is wrong.
    User,
    /// This machine, its disk, or Weir itself.
    Host,
}

/// Why a ledger did not do what it was asked.
#[derive(Debug, Error)]
pub enum LedgerError {
    /// Another host or a newer generation owns this now: stop, decide nothing, abort nothing.
    #[error("fenced: generation {found} was raised, this is generation {ours}; another host runs this pipeline now")]
    Fenced {
        /// The caller's.
        ours: Generation,
        /// The ledger's.
        found: Generation,
    },
    /// Another host holds the lease now, or nobody does.
    #[error("this host does not hold the lease any more: {holder} does")]
    LeaseLost {
        /// Who, for people.
        holder: String,
    },
    /// The database did not answer, or is busy: whether a write was made is unknown. Try again.
    #[error("the ledger cannot be reached now: {message}")]
    Unavailable {
        /// The database's words.
        message: String,
    },
    /// A ledger that contradicts itself, or whose file was replaced under a running host.
    #[error("the ledger is damaged: {message}")]
    Corrupt {
        /// What does not fit.
        message: String,
    },
    /// It cannot be opened, created or taken over: path, permissions, not a ledger, another version, a lock that is never given back.
    #[error("cannot open the ledger {url}: {message}")]
    CannotOpen {
        /// Where.
        url: String,
        /// Why.
        message: String,
    },
    /// An I/O error on commit: this process can no longer tell what is durable. End it; the next start reads what became true.
    #[error("the ledger failed while writing, and this process cannot tell what was written: {message}")]
    MustRestart {
        /// The database's words.
        message: String,
    },
    /// The facts contradict the protocol.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
}

impl LedgerError {
    /// The code, which names a page of the documentation.
    pub fn code(&self) -> &'static str {
        match self {
            LedgerError::Fenced { .. } => "fenced",
            LedgerError::LeaseLost { .. } => "lease-lost",
            LedgerError::Unavailable { .. } => "ledger-unavailable",
            LedgerError::Corrupt { .. } => "ledger-corrupt",
            LedgerError::CannotOpen { .. } => "ledger-cannot-open",
            LedgerError::MustRestart { .. } => "ledger-must-restart",
            LedgerError::Protocol(_) => "invariant-violated",
        }
    }

    /// Who has to act.
    pub fn fault(&self) -> Fault {
        match self {
            LedgerError::Fenced { .. } | LedgerError::LeaseLost { .. } | LedgerError::CannotOpen { .. } => Fault::User,
            LedgerError::Unavailable { .. } | LedgerError::Corrupt { .. } | LedgerError::MustRestart { .. } | LedgerError::Protocol(_) => {
                Fault::Host
            }
        }
    }

    /// Whether the same call can work later in this process although nobody acts.
    pub fn retry(&self) -> bool {
        matches!(self, LedgerError::Unavailable { .. })
    }

    pub(crate) fn corrupt(message: impl Into<String>) -> Self {
        LedgerError::Corrupt { message: message.into() }
    }
}
