//! State to step: what follows from an answer. Each function is a table without a catch-all; the driver does what it says and has no
//! opinion of its own.

use std::collections::BTreeMap;

use crate::error::ProtocolError;
use crate::facts::{Confirmation, Decision, MAX_HANDLE_BYTES, Manifest, PipelineFacts, Positions, PreparedHandle, Slice, Verdict};
use crate::ids::{Generation, Label, Lane, PipelineId, SinkId, SplitId, Transaction};
use crate::state::PipelineState;

/// Decisions between two that list every position. Bounds both how much a decision carries and how many a start reads.
pub const DECISIONS_PER_SNAPSHOT: u64 = 64;
/// How often `unknown` is asked again before it is a person's question. A target's follower can lag behind its leader for a moment.
pub const UNKNOWN_ANSWERS_ALLOWED: u32 = 3;

/// What one lane has read and prepared when it stands at the barrier.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaneEpoch {
    /// Where each split goes on that moved.
    pub positions: Positions,
    /// What was read, in order: at most one slice a split, unless the split was left and taken up again.
    pub read: Vec<Slice>,
    /// What each sink prepared of it. A sink is absent if nothing was read.
    pub prepared: BTreeMap<SinkId, PreparedHandle>,
}

/// Puts the lanes' epochs together.
#[derive(Clone, Debug)]
pub struct EpochDraft<'a> {
    /// The pipeline.
    pub pipeline: &'a PipelineId,
    /// The generation that runs it.
    pub generation: Generation,
    /// What it runs.
    pub manifest: &'a Manifest,
    /// What has been decided.
    pub state: &'a PipelineState,
    /// Every lane's part. A lane that read nothing has an empty one.
    pub lanes: BTreeMap<Lane, LaneEpoch>,
}

impl EpochDraft<'_> {
    /// The decision to write, after a check that every sink holds what was read, all of it and nothing else (EO-6), and that reading goes on where
    /// that ends (EO-3). `None`: nothing moved, so there is nothing to decide and the epoch's number is not used.
    pub fn seal(self) -> Result<Option<Decision>, ProtocolError> {
        let epoch = self.state.head().epoch.next();
        if let Some(lane) = self.lanes.keys().copied().find(|lane| lane.0 >= self.manifest.lanes) {
            return Err(ProtocolError::NoSuchLane { epoch, lane, lanes: self.manifest.lanes });
        }
        let mut positions = Positions::new();
        let mut handles = Vec::new();
        for number in 0..self.manifest.lanes {
            let lane = Lane(number);
            let wrong = |sink: &SinkId, problem: String| ProtocolError::WrongContents { epoch, sink: sink.clone(), lane, problem };
            let part = self.lanes.get(&lane).cloned().unwrap_or_default();
            let ends: BTreeMap<_, _> = part.read.iter().map(|slice| (&slice.split, &slice.to)).collect();
            if let Some((split, _)) = ends.iter().find(|(split, to)| part.positions.get(split) != Some(to)) {
                return Err(ProtocolError::WrongPosition { epoch, lane, split: (*split).clone() });
            }
            for sink in &self.manifest.sinks {
                match part.prepared.get(&sink.sink) {
                    Some(prepared) => check_contents(prepared, &part.read).map_err(|problem| wrong(&sink.sink, problem))?,
                    None if part.read.is_empty() => {}
                    None => return Err(wrong(&sink.sink, "records were read, and it prepared nothing".to_owned())),
                }
            }
            for (sink, prepared) in part.prepared {
                let transaction = &prepared.transaction;
                let is_due = transaction.sink == sink && transaction.epoch == epoch && transaction.lane == lane;
                if self.manifest.sink(&sink).is_none() || !is_due {
                    return Err(wrong(&sink, format!("it prepared {}, which is not due", prepared.transaction.label)));
                }
                if prepared.handle.len() > MAX_HANDLE_BYTES {
                    return Err(ProtocolError::HandleTooLarge { sink, bytes: prepared.handle.len() });
                }
                handles.push(prepared);
            }
            positions.extend(part.positions);
        }
        if handles.is_empty() && positions.iter().all(|(split, to)| self.state.positions().get(split) == Some(to)) {
            return Ok(None);
        }
        let first = self.state.head() == crate::facts::Head::GENESIS;
        let snapshot = first || self.state.decisions_since_snapshot() + 1 >= DECISIONS_PER_SNAPSHOT;
        if snapshot {
            let mut all = self.state.positions().clone();
            all.extend(positions);
            positions = all;
        }
        Ok(Some(Decision {
            pipeline: self.pipeline.clone(),
            generation: self.generation,
            epoch,
            base: self.state.head().epoch,
            base_hash: self.state.head().hash,
            snapshot,
            positions,
            handles,
        }))
    }
}

/// Does the handle hold what was read, less what was rejected?
fn check_contents(prepared: &PreparedHandle, read: &[Slice]) -> Result<(), String> {
    if prepared.slices != read {
        return Err("its slices are not those that were read".to_owned());
    }
    let mut rejected: Vec<_> = prepared.rejected.iter().map(|record| (&record.split, record.record)).collect();
    rejected.sort_unstable();
    let before = rejected.len();
    rejected.dedup();
    let within = |(split, record): &(&SplitId, u64)| {
        read.iter().any(|slice| slice.split == **split && (slice.first..slice.first.saturating_add(slice.records)).contains(record))
    };
    if rejected.len() != before || !rejected.iter().all(within) {
        return Err("it rejected a record twice, or one that it never got".to_owned());
    }
    let sent = prepared.records_read();
    let expected = sent.saturating_sub(before as u64);
    match prepared.held {
        Some(held) if held != expected => {
            Err(format!("the target says it holds {held} records, but {sent} were sent and {before} rejected"))
        }
        Some(_) | None => Ok(()),
    }
}

/// What follows from a verdict on a decided handle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AfterCommit {
    /// It is visible: record that.
    Confirm(Confirmation),
    /// Ask again after a pause.
    AskAgain,
    /// It can never be visible: replay exactly its slices.
    Repair,
    /// A person has to say whether it is visible.
    AskOperator,
}

/// A commit was answered. An error instead of a verdict is always tried again, whatever it says: the decision is final.
pub fn after_commit(transaction: &Transaction, verdict: Verdict, unknown_answers_before: u32) -> AfterCommit {
    match verdict {
        Verdict::Committed | Verdict::AlreadyCommitted => {
            AfterCommit::Confirm(Confirmation { epoch: transaction.epoch, label: transaction.label.clone(), verdict })
        }
        Verdict::Lost => AfterCommit::Repair,
        Verdict::Unknown if unknown_answers_before < UNKNOWN_ANSWERS_ALLOWED => AfterCommit::AskAgain,
        Verdict::Unknown => AfterCommit::AskOperator,
    }
}

/// What a target said when it was told to abort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbortAnswer {
    /// It is not visible and never will be.
    Gone,
    /// It was committed: the error `conflict`.
    FoundCommitted,
    /// It could not be told.
    Failed,
}

/// What follows from that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterAbort {
    /// This label is clean in this pass.
    Clean,
    /// Ask again after a pause.
    AskAgain,
    /// The target shows what this ledger never decided: the ledger is older than the target (a restored copy, a lost tail).
    LedgerIsOlder,
}

/// An abort of an undecided transaction was answered.
pub fn after_abort(answer: AbortAnswer) -> AfterAbort {
    match answer {
        AbortAnswer::Gone => AfterAbort::Clean,
        AbortAnswer::Failed => AfterAbort::AskAgain,
        AbortAnswer::FoundCommitted => AfterAbort::LedgerIsOlder,
    }
}

/// Something owed that the new manifest could not settle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obligation {
    /// What is owed.
    pub owed: Owed,
    /// Why it could not be settled.
    pub problem: Unsettled,
}

/// What is owed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owed {
    /// A decided handle is not known to be visible.
    Commit {
        /// The sink.
        sink: SinkId,
        /// The handle's label.
        label: Label,
    },
    /// A generation that ended may have left transactions.
    Sweep {
        /// The sink.
        sink: SinkId,
        /// The generation.
        generation: Generation,
    },
}

/// Why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsettled {
    /// The config has no such sink any more.
    SinkGone,
    /// The sink writes somewhere else now.
    TargetMoved {
        /// Where it wrote.
        from: String,
        /// Where it would write.
        to: String,
    },
    /// The plugin does not commit handles of this format.
    FormatUnknown {
        /// The format.
        format: String,
    },
    /// The config reads something else now, so a handle that its target loses could not be filled again.
    SourceMoved {
        /// What was read.
        from: String,
        /// What would be read.
        to: String,
    },
}

/// What a start under `wanted` would leave unsettled. Asked before the generation is raised, so that a mistaken config changes nothing.
pub fn unsettled(facts: &PipelineFacts, wanted: &Manifest) -> Result<Vec<Obligation>, ProtocolError> {
    let state = PipelineState::from_facts(facts)?;
    let mut found = Vec::new();
    for handle in state.unconfirmed() {
        let sink = &handle.transaction.sink;
        let owed = Owed::Commit { sink: sink.clone(), label: handle.transaction.label.clone() };
        let mut problem = moved(&facts.manifest, wanted, sink);
        if problem.is_none() && wanted.sink(sink).is_some_and(|now| !now.handle_formats.contains(&handle.format)) {
            problem = Some(Unsettled::FormatUnknown { format: handle.format.clone() });
        }
        if problem.is_none() && facts.manifest.source != wanted.source {
            problem = Some(Unsettled::SourceMoved { from: facts.manifest.source.clone(), to: wanted.source.clone() });
        }
        found.extend(problem.map(|problem| Obligation { owed, problem }));
    }
    for debt in &facts.debts {
        for sink in &debt.manifest.sinks {
            let owed = Owed::Sweep { sink: sink.sink.clone(), generation: debt.generation };
            found.extend(moved(&debt.manifest, wanted, &sink.sink).map(|problem| Obligation { owed, problem }));
        }
    }
    // The running generation becomes a debt when the next one is raised.
    for sink in facts.manifest.sinks.iter().filter(|_| facts.undecided_may_exist) {
        let owed = Owed::Sweep { sink: sink.sink.clone(), generation: facts.generation };
        found.extend(moved(&facts.manifest, wanted, &sink.sink).map(|problem| Obligation { owed, problem }));
    }
    Ok(found)
}

fn moved(before: &Manifest, wanted: &Manifest, sink: &SinkId) -> Option<Unsettled> {
    let Some(now) = wanted.sink(sink) else { return Some(Unsettled::SinkGone) };
    let then = before.sink(sink)?;
    (then.target != now.target).then(|| Unsettled::TargetMoved { from: then.target.clone(), to: now.target.clone() })
}
