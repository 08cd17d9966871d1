//! Facts to state: what a pipeline's durable facts mean. Derived whenever it is needed, and never stored.
//!
//! The same state serves at start, after a crash and in between: a decision or a confirmation just written is applied to it as if it had
//! been read.

use std::collections::BTreeMap;

use crate::error::ProtocolError;
use crate::facts::{Confirmation, Decision, Head, MAX_EPOCHS_IN_FLIGHT, PipelineFacts, Positions, PreparedHandle, Replacement};
use crate::ids::{Epoch, Label};
use crate::permit::{CommitPermit, Durable};

/// A pipeline between two durable writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipelineState {
    head: Head,
    positions: Positions,
    /// The handles that wait for their confirmation, by epoch. An epoch without any is not listed.
    unconfirmed: BTreeMap<Epoch, BTreeMap<Label, PreparedHandle>>,
    decisions_since_snapshot: u64,
}

impl PipelineState {
    /// Derives the state, and checks on the way that the decisions form one chain up to the head (EO-4) and that confirmations and
    /// replacements speak of decided handles only (EO-1).
    pub fn from_facts(facts: &PipelineFacts) -> Result<Self, ProtocolError> {
        let mut state =
            Self { head: Head::GENESIS, positions: Positions::new(), unconfirmed: BTreeMap::new(), decisions_since_snapshot: 0 };
        let mut before: Option<Head> = None;
        for decision in &facts.decisions {
            if let Some(before) = before.filter(|before| before.epoch == decision.base)
                && before.hash != decision.base_hash
            {
                return Err(ProtocolError::ChainBroken { epoch: decision.epoch, expected: before.hash, found: decision.base_hash });
            }
            state.absorb(decision)?;
            before = Some(state.head);
        }
        if state.head != facts.head {
            return Err(ProtocolError::ChainBroken { epoch: facts.head.epoch, expected: state.head.hash, found: facts.head.hash });
        }
        state.check_positions_known(&facts.decisions)?;
        for replacement in &facts.replacements {
            state.replace_lost(replacement)?;
        }
        for confirmation in &facts.confirmations {
            state.apply_confirmation(confirmation)?;
        }
        Ok(state)
    }

    /// Records a decision just made. Its base must be the head.
    pub fn apply_decision(&mut self, decision: &Durable<Decision>) -> Result<(), ProtocolError> {
        let decision = decision.get();
        if decision.base != self.head.epoch || decision.base_hash != self.head.hash {
            return Err(ProtocolError::ChainBroken { epoch: decision.epoch, expected: self.head.hash, found: decision.base_hash });
        }
        self.absorb(decision)
    }

    /// Records that a handle is known to be visible.
    pub fn apply_confirmation(&mut self, confirmation: &Confirmation) -> Result<(), ProtocolError> {
        let unnamed = || ProtocolError::Unnamed { label: confirmation.label.clone() };
        let handles = self.unconfirmed.get_mut(&confirmation.epoch).ok_or_else(unnamed)?;
        handles.remove(&confirmation.label).ok_or_else(unnamed)?;
        if handles.is_empty() {
            self.unconfirmed.remove(&confirmation.epoch);
        }
        Ok(())
    }

    /// Records that another handle stands in for a lost one.
    pub fn apply_replacement(&mut self, replacement: &Durable<Replacement>) -> Result<(), ProtocolError> {
        self.replace_lost(replacement.get())
    }

    /// The newest decision.
    pub fn head(&self) -> Head {
        self.head
    }

    /// Where each split goes on.
    pub fn positions(&self) -> &Positions {
        &self.positions
    }

    /// Decided handles that are not known to be visible, oldest epoch first.
    pub fn unconfirmed(&self) -> impl Iterator<Item = &PreparedHandle> {
        self.unconfirmed.values().flat_map(BTreeMap::values)
    }

    /// The oldest epoch with a handle unconfirmed: the only one whose handles may be committed now.
    pub fn epoch_to_commit(&self) -> Option<Epoch> {
        self.unconfirmed.keys().next().copied()
    }

    /// May another epoch begin, besides `undecided` ones that have begun already? Not if it would be the third in flight: a target that is
    /// down then stalls the pipeline, and what waits there stays bounded.
    pub fn may_begin(&self, undecided: usize) -> bool {
        self.unconfirmed.len() + undecided < MAX_EPOCHS_IN_FLIGHT
    }

    /// How many decisions since the newest that lists every position.
    pub fn decisions_since_snapshot(&self) -> u64 {
        self.decisions_since_snapshot
    }

    fn absorb(&mut self, decision: &Decision) -> Result<(), ProtocolError> {
        if decision.epoch != decision.base.next() || decision.base < self.head.epoch {
            return Err(ProtocolError::OutOfTurn { expected: self.head.epoch.next(), found: decision.epoch });
        }
        if decision.snapshot {
            self.positions.clear();
            self.decisions_since_snapshot = 0;
        } else {
            self.decisions_since_snapshot += 1;
        }
        self.positions.extend(decision.positions.clone());
        if !decision.handles.is_empty() {
            let handles = decision.handles.iter().map(|handle| (handle.transaction.label.clone(), handle.clone())).collect();
            self.unconfirmed.insert(decision.epoch, handles);
        }
        self.head = decision.head()?;
        Ok(())
    }

    /// The positions are known if the newest snapshot and everything after it are at hand, without a gap.
    fn check_positions_known(&self, decisions: &[Decision]) -> Result<(), ProtocolError> {
        let Some(last) = decisions.last() else { return Ok(()) };
        let snapshot = decisions.iter().rposition(|decision| decision.snapshot);
        let tail = snapshot.and_then(|at| decisions.get(at..)).ok_or(ProtocolError::NoSnapshot { epoch: last.epoch })?;
        let mut expected: Option<Epoch> = None;
        for decision in tail {
            if let Some(expected) = expected.filter(|expected| *expected != decision.base) {
                return Err(ProtocolError::OutOfTurn { expected, found: decision.base });
            }
            expected = Some(decision.epoch);
        }
        Ok(())
    }

    /// Puts a replacement in the place of the handle that it stands in for.
    fn replace_lost(&mut self, replacement: &Replacement) -> Result<(), ProtocolError> {
        let epoch = replacement.handle.transaction.epoch;
        let unnamed = || ProtocolError::Unnamed { label: replacement.lost.clone() };
        let handles = self.unconfirmed.get_mut(&epoch).ok_or_else(unnamed)?;
        handles.remove(&replacement.lost).ok_or_else(unnamed)?;
        handles.insert(replacement.handle.transaction.label.clone(), replacement.handle.clone());
        Ok(())
    }
}

impl Durable<PipelineFacts> {
    /// The state, and the right to commit every handle that is decided and not confirmed, oldest epoch first.
    pub fn recover(&self) -> Result<(PipelineState, BTreeMap<Epoch, Vec<CommitPermit>>), ProtocolError> {
        let state = PipelineState::from_facts(self.get())?;
        let permits =
            state.unconfirmed.iter().map(|(epoch, handles)| (*epoch, handles.values().map(CommitPermit::for_handle).collect())).collect();
        Ok((state, permits))
    }
}
