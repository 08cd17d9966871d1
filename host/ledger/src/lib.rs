//! The durable facts. The crate exists to keep SQL, and everything that is true of one database only, out of the others.
//!
//! [`Ledger`] says what a pipeline's host may ask of it and what consistency it may count on. [`memory`] is the reference implementation,
//! which simulations use; [`sqlite`] is the embedded one. One suite runs against each.
//!
//! Consistency that every implementation gives:
//! * [`Ledger::decide`] is one conditional write of the pipeline's head: generation and base must match, or nothing is written.
//! * [`Ledger::raise_generation`] is a synced write, and the facts that it returns were read after it. Rights to commit come only from those
//!   facts and from decisions made.
//! * Whatever a call reports as done survives a crash of the machine, except heartbeats and discharged debts, whose loss only repeats work.

pub mod memory;
pub mod sqlite;

mod check;
mod durable;
mod error;
mod lease;
mod liveness;
mod rows;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use weir_protocol::{
    AttemptRecord, Confirmation, Decision, Durable, Generation, Head, LedgerId, Manifest, PipelineFacts, PipelineId, Replacement,
};

pub use check::DECISIONS_KEPT;
pub use error::{Fault, LedgerError};
pub use lease::{Holder, LeaseAnswer};
pub use memory::MemoryLedger;
pub use sqlite::{SqliteLedger, SqliteReader};

/// What a ledger knows of one pipeline, as one line for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PipelineSummary {
    /// The pipeline.
    pub pipeline: PipelineId,
    /// Its newest generation.
    pub generation: Generation,
    /// Its newest decision.
    pub head: Head,
}

/// The outcome of a decision that could be told.
#[derive(Debug)]
pub enum Decided {
    /// It is durable. Found already, word for word, counts as made: the answer to an earlier try was lost. Also when another generation has
    /// decided more since, so that nobody takes for refused what will be committed.
    Made(Durable<Decision>),
    /// It is not, and never will be: another generation was raised, or another decision extends the same base.
    Refused {
        /// The newest generation.
        generation: Generation,
        /// The newest decision.
        head: Head,
    },
}

/// Durable facts of the pipelines of one host. Shared by all of them; every method may be called from several tasks at once.
#[async_trait]
pub trait Ledger: Send + Sync + std::fmt::Debug {
    /// Its random id, made with it.
    fn id(&self) -> LedgerId;

    /// Tries to take the lease, once. The caller asks again while the answer is [`LeaseAnswer::Held`], and passes what it was told the time before, so
    /// that a holder whose heartbeat counter has not moved for a lease period of the caller's own monotonic clock is replaced.
    /// A holder that is provably dead on this machine is replaced at once.
    async fn take_lease(&self, holder: &Holder, stale: Option<&LeaseAnswer>) -> Result<LeaseAnswer, LedgerError>;

    /// Shows that the holder lives: adds one to its counter. [`LedgerError::LeaseLost`] if somebody else holds the lease now.
    /// Costs no fsync.
    async fn heartbeat(&self, holder: &Holder) -> Result<(), LedgerError>;

    /// Gives the lease back, so that the next host need not wait. Nothing happens if it is held by another.
    async fn release_lease(&self, holder: &Holder) -> Result<(), LedgerError>;

    /// Everything about a pipeline, without any right: for checks before a start, and for people. `None`: the ledger does not know it.
    async fn peek(&self, pipeline: &PipelineId) -> Result<Option<PipelineFacts>, LedgerError>;

    /// The pipelines it knows, by name.
    async fn pipelines(&self) -> Result<Vec<PipelineSummary>, LedgerError>;

    /// Raises a pipeline's generation to the one after `seen` (0: the pipeline is new) under a manifest, and lists the generation before
    /// as a debt unless it had stepped down with nothing under way. [`LedgerError::Fenced`] if the newest generation is not `seen`.
    /// The write is synced before the facts are read (SQLite: `wal_checkpoint(TRUNCATE)` first, so that what a crashed process wrote is on the disk).
    async fn raise_generation(
        &self,
        pipeline: &PipelineId,
        seen: Generation,
        manifest: &Manifest,
    ) -> Result<Durable<PipelineFacts>, LedgerError>;

    /// Writes a decision and the confirmations since the last, in one transaction with one sync.
    ///
    /// [`LedgerError::Unavailable`] means that the outcome is unknown: ask again with the same decision until the answer is a
    /// [`Decided`]. [`LedgerError::MustRestart`] means that this process can no longer tell what is durable: end it without aborting anything.
    /// [`LedgerError::Fenced`] means that newer generations have decided so much that this can no longer be told either. A generation that has stepped
    /// down decides nothing more ([`ProtocolError::SteppedDown`](weir_protocol::ProtocolError::SteppedDown)), and a confirmation of what no decision names is
    /// an error that leaves everything unwritten.
    async fn decide(&self, decision: &Decision, confirmations: &[Confirmation]) -> Result<Decided, LedgerError>;

    /// Writes confirmations that no decision carried. Fenced by the generation. Repeating one changes nothing.
    async fn confirm(&self, pipeline: &PipelineId, generation: Generation, confirmations: &[Confirmation]) -> Result<(), LedgerError>;

    /// Writes the handle that stands in for a lost one. Fenced by the generation; durable before it returns.
    async fn replace(
        &self,
        pipeline: &PipelineId,
        generation: Generation,
        replacement: &Replacement,
    ) -> Result<Durable<Replacement>, LedgerError>;

    /// Records a try other than the first, before its `begin`. Fenced; durable before it returns.
    async fn record_attempt(&self, pipeline: &PipelineId, generation: Generation, attempt: &AttemptRecord) -> Result<(), LedgerError>;

    /// Strikes the debt of a generation that ended. Fenced by the running generation. Striking one that is not owed changes nothing.
    async fn discharge(&self, pipeline: &PipelineId, generation: Generation, owed_by: Generation) -> Result<(), LedgerError>;

    /// The running generation has ended and has nothing under way that no decision names: the next one owes no sweep for it. From here on it
    /// can confirm and discharge, and begin nothing.
    async fn step_down(&self, pipeline: &PipelineId, generation: Generation) -> Result<(), LedgerError>;
}
