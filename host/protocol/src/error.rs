//! A violated invariant or an impossible fact, with what was expected and what was found.

use thiserror::Error;

use crate::ids::{Attempt, Epoch, Generation, Hash, Label, Lane, MAX_LABEL_BYTES, MAX_NAME_BYTES, MAX_SPLIT_ID_BYTES, SinkId, SplitId};

/// Why the protocol refuses to go on. None of these is mended by trying again.
#[derive(Debug, Error)]
pub enum ProtocolError {
    /// A name outside its pattern.
    #[error(
        "{what} name {text:?} is not allowed: pipelines and sinks are [a-z0-9][a-z0-9_-]* of at most {MAX_NAME_BYTES} characters, \
         splits are at most {MAX_SPLIT_ID_BYTES} bytes without control characters, labels [a-z0-9-] of at most {MAX_LABEL_BYTES}"
    )]
    BadName {
        /// What it names.
        what: &'static str,
        /// The text.
        text: String,
    },
    /// A number that labels have no room for.
    #[error("generation {generation}, epoch {epoch}, lane {lane}, attempt {attempt}: one of them is larger than a label has room for")]
    NumberTooLarge {
        /// The generation.
        generation: Generation,
        /// The epoch.
        epoch: Epoch,
        /// The lane.
        lane: Lane,
        /// The attempt.
        attempt: Attempt,
    },
    /// A durable value that cannot be written as text.
    #[error("cannot encode a {what}")]
    Encode {
        /// What kind of value.
        what: &'static str,
        /// Why.
        source: serde_json::Error,
    },
    /// A durable value that cannot be read back.
    #[error("cannot decode a {what}; the ledger was damaged, or written by a newer version")]
    Decode {
        /// What kind of value.
        what: &'static str,
        /// Why.
        source: serde_json::Error,
    },
    /// Too much for one decision.
    #[error(
        "the decision of epoch {epoch} has {bytes} bytes, more than the {} allowed; make checkpoints more often, or read fewer splits in one pipeline",
        crate::facts::MAX_DECISION_BYTES
    )]
    DecisionTooLarge {
        /// The epoch.
        epoch: Epoch,
        /// Its size.
        bytes: usize,
    },
    /// A handle that is larger than the contract allows.
    #[error("sink {sink} returned a handle of {bytes} bytes; at most {} are allowed", crate::facts::MAX_HANDLE_BYTES)]
    HandleTooLarge {
        /// The sink.
        sink: SinkId,
        /// Its size.
        bytes: usize,
    },
    /// A decision that does not follow the one before it (EO-4).
    #[error(
        "EO-4: the decision of epoch {epoch} follows hash {found}, but the one before it has hash {expected}; the ledger was damaged or edited"
    )]
    ChainBroken {
        /// The epoch whose decision does not fit.
        epoch: Epoch,
        /// The hash of the decision before it.
        expected: Hash,
        /// The hash that it names.
        found: Hash,
    },
    /// Facts from which the positions cannot be told.
    #[error("the decisions at hand begin with epoch {epoch}, which has no snapshot of all positions; the ledger was damaged or edited")]
    NoSnapshot {
        /// The oldest decision's epoch.
        epoch: Epoch,
    },
    /// A confirmation or a replacement of a handle that no decision names (EO-1).
    #[error("EO-1: the ledger speaks of transaction {label}, which no decision names")]
    Unnamed {
        /// The label.
        label: Label,
    },
    /// A confirmation whose verdict does not say that the transaction is visible (EO-1).
    #[error("EO-1: transaction {label} is confirmed by a verdict that does not say it is visible")]
    NotVisible {
        /// The label.
        label: Label,
    },
    /// A generation that said it had ended goes on.
    #[error("EO-7: generation {generation} has stepped down: it may begin and decide nothing more")]
    SteppedDown {
        /// The generation.
        generation: Generation,
    },
    /// An epoch out of turn.
    #[error("epoch {found} out of turn: expected {expected}")]
    OutOfTurn {
        /// The epoch that is due.
        expected: Epoch,
        /// The epoch at hand.
        found: Epoch,
    },
    /// A sweep of something that is not owed.
    #[error("EO-2: generation {generation} owes no sweep, or is not over")]
    NotOwed {
        /// The generation.
        generation: Generation,
    },
    /// A sink's prepared transaction that does not hold what was read (EO-6).
    #[error("EO-6: epoch {epoch}: sink {sink}, lane {lane}: {problem}")]
    WrongContents {
        /// The epoch.
        epoch: Epoch,
        /// The sink.
        sink: SinkId,
        /// The lane.
        lane: Lane,
        /// What does not fit, with both figures.
        problem: String,
    },
    /// A lane's positions that do not follow from what it read (EO-3).
    #[error("EO-3: epoch {epoch}: lane {lane} read split {split} to one position and goes on at another")]
    WrongPosition {
        /// The epoch.
        epoch: Epoch,
        /// The lane.
        lane: Lane,
        /// The split.
        split: SplitId,
    },
    /// A lane that the manifest does not have (EO-6).
    #[error("EO-6: epoch {epoch}: there is no lane {lane}, the manifest has {lanes}")]
    NoSuchLane {
        /// The epoch.
        epoch: Epoch,
        /// The lane.
        lane: Lane,
        /// How many there are, numbered from 0.
        lanes: u32,
    },
    /// An invariant that events broke.
    #[error(transparent)]
    Violation(#[from] crate::invariants::Violation),
}
