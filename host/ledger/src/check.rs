//! What is refused before anything is written, the same in every implementation.

use std::collections::BTreeSet;

use weir_protocol::invariants::Violation;
use weir_protocol::{Confirmation, Decision, Epoch, Hash, Head, Label, MAX_HANDLE_BYTES, PreparedHandle, ProtocolError, Verdict};

use crate::LedgerError;

/// The newest decisions that are kept for people although nothing needs them any more.
pub const DECISIONS_KEPT: u64 = 100;

/// A decision in its durable form.
pub(crate) struct Sealed {
    pub(crate) bytes: Vec<u8>,
    pub(crate) head: Head,
}

/// Checks a decision by itself, without the facts: what is written can be read back, continues its base, and names no transaction twice.
pub(crate) fn decision(decision: &Decision) -> Result<Sealed, LedgerError> {
    if decision.epoch != decision.base.next() {
        return Err(ProtocolError::OutOfTurn { expected: decision.base.next(), found: decision.epoch }.into());
    }
    if decision.base == Epoch::GENESIS && !decision.snapshot {
        return Err(ProtocolError::NoSnapshot { epoch: decision.epoch }.into());
    }
    let mut labels = BTreeSet::new();
    for prepared in &decision.handles {
        handle(prepared, decision.epoch)?;
        if !labels.insert(&prepared.transaction.label) {
            return Err(used_twice(&prepared.transaction.label));
        }
    }
    let bytes = decision.to_bytes()?;
    let head = Head { epoch: decision.epoch, hash: Hash::of(&bytes) };
    Ok(Sealed { bytes, head })
}

/// Checks one handle of a decision or of a replacement.
pub(crate) fn handle(prepared: &PreparedHandle, epoch: Epoch) -> Result<(), LedgerError> {
    if prepared.transaction.epoch != epoch {
        return Err(ProtocolError::OutOfTurn { expected: epoch, found: prepared.transaction.epoch }.into());
    }
    if prepared.handle.len() > MAX_HANDLE_BYTES {
        return Err(ProtocolError::HandleTooLarge { sink: prepared.transaction.sink.clone(), bytes: prepared.handle.len() }.into());
    }
    Ok(())
}

/// Only a verdict that says "visible" confirms.
pub(crate) fn confirmation(confirmation: &Confirmation) -> Result<(), LedgerError> {
    match confirmation.verdict {
        Verdict::Committed | Verdict::AlreadyCommitted => Ok(()),
        Verdict::Lost | Verdict::Unknown => Err(ProtocolError::NotVisible { label: confirmation.label.clone() }.into()),
    }
}

/// A label that a decision or a replacement names already.
pub(crate) fn used_twice(label: &Label) -> LedgerError {
    let what = format!("label {label} is named a second time");
    LedgerError::Protocol(Violation { invariant: "EO-5", what }.into())
}

/// A confirmation or a replacement of something that is not decided, or that was confirmed or replaced already.
pub(crate) fn unnamed(label: &Label) -> LedgerError {
    ProtocolError::Unnamed { label: label.clone() }.into()
}
