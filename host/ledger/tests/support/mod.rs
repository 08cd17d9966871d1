//! Small builders for ledger tests: a pipeline with one lane and one sink, and a host that decides epochs of ten records.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of it")]

use std::sync::Arc;

use weir_ledger::{Decided, Ledger, LedgerError};
use weir_protocol::decide::{EpochDraft, LaneEpoch};
use weir_protocol::{
    Attempt, AttemptRecord, Confirmation, Decision, Delivery, Durable, Epoch, Generation, Hash, Labels, Lane, Manifest, PipelineFacts,
    PipelineId, PipelineState, Position, PreparedHandle, Replacement, SinkId, SinkManifest, Slice, SplitId, Transaction, Verdict,
};

pub const RECORDS: u64 = 10;

pub fn pipeline() -> PipelineId {
    "orders".parse().unwrap()
}

pub fn sink() -> SinkId {
    "files".parse().unwrap()
}

pub fn split() -> SplitId {
    SplitId::try_from("a.jsonl".to_owned()).unwrap()
}

pub fn position(record: u64) -> Position {
    Position(record.to_string().into_bytes())
}

pub fn manifest() -> Manifest {
    let files = SinkManifest {
        sink: sink(),
        plugin: "file".to_owned(),
        version: "0.1.0".to_owned(),
        digest: Hash::of(b"file.wasm"),
        target: "file:///out".to_owned(),
        handle_formats: vec!["file-1".to_owned()],
        settle_ms: 0,
    };
    Manifest { lanes: 1, source: "data/*.jsonl".to_owned(), delivery: Delivery::ExactlyOnce, sinks: vec![files] }
}

pub fn confirmation(handle: &PreparedHandle) -> Confirmation {
    Confirmation { epoch: handle.transaction.epoch, label: handle.transaction.label.clone(), verdict: Verdict::Committed }
}

pub fn confirmations(decision: &Decision) -> Vec<Confirmation> {
    decision.handles.iter().map(confirmation).collect()
}

/// A handle that holds records `first..first + RECORDS` of the split.
pub fn handle(transaction: Transaction, first: u64) -> PreparedHandle {
    let slice = Slice {
        split: split(),
        from: (first > 0).then(|| position(first)),
        to: position(first + RECORDS),
        first,
        records: RECORDS,
        bytes: RECORDS * 8,
        tail: Hash::of(&first.to_le_bytes()),
    };
    let bytes = format!("prepared {}", transaction.label).into_bytes();
    PreparedHandle { transaction, format: "file-1".to_owned(), handle: bytes, held: Some(RECORDS), slices: vec![slice], rejected: vec![] }
}

/// A host that runs the pipeline: what the driver does with a ledger, less the sinks.
pub struct Host {
    pub ledger: Arc<dyn Ledger>,
    pub generation: Generation,
    pub manifest: Manifest,
    pub state: PipelineState,
    pub pipeline: PipelineId,
}

impl Host {
    /// Raises the generation after whichever is there, and recovers.
    pub async fn start(ledger: Arc<dyn Ledger>) -> Self {
        let seen = ledger.peek(&pipeline()).await.unwrap().map_or(Generation(0), |facts| facts.generation);
        Self::start_after(ledger, seen).await.unwrap()
    }

    pub async fn start_after(ledger: Arc<dyn Ledger>, seen: Generation) -> Result<Self, LedgerError> {
        let facts = ledger.raise_generation(&pipeline(), seen, &manifest()).await?;
        let (state, _) = facts.recover().unwrap();
        Ok(Self { ledger, generation: facts.get().generation, manifest: manifest(), state, pipeline: pipeline() })
    }

    pub fn transaction(&self, epoch: Epoch, attempt: u32) -> Transaction {
        let labels = Labels::new(self.ledger.id(), self.pipeline.clone());
        labels.transaction(&sink(), self.generation, epoch, Lane(0), Attempt(attempt)).unwrap()
    }

    pub fn attempt(&self, epoch: Epoch, attempt: u32) -> AttemptRecord {
        AttemptRecord { sink: sink(), lane: Lane(0), epoch, attempt: Attempt(attempt) }
    }

    /// The next decision, of the next ten records.
    pub fn draft(&self) -> Decision {
        self.draft_with(1)
    }

    pub fn draft_with(&self, attempt: u32) -> Decision {
        let epoch = self.state.head().epoch.next();
        let first = self.state.positions().get(&split()).map_or(0, |at| String::from_utf8(at.0.clone()).unwrap().parse().unwrap());
        let handle = handle(self.transaction(epoch, attempt), first);
        let lane = LaneEpoch {
            positions: [(split(), position(first + RECORDS))].into(),
            read: handle.slices.clone(),
            prepared: [(sink(), handle)].into(),
        };
        let draft = EpochDraft {
            pipeline: &self.pipeline,
            generation: self.generation,
            manifest: &self.manifest,
            state: &self.state,
            lanes: [(Lane(0), lane)].into(),
        };
        draft.seal().unwrap().unwrap()
    }

    /// A decision that must be made, with the confirmations given.
    pub async fn decide(&mut self, confirmations: &[Confirmation]) -> Decision {
        let made = made(self.ledger.decide(&self.draft(), confirmations).await);
        for confirmation in confirmations {
            self.state.apply_confirmation(confirmation).unwrap();
        }
        self.state.apply_decision(&made).unwrap();
        made.into_inner()
    }

    /// Decides `count` epochs, each confirmed by the next.
    pub async fn run(&mut self, count: u64) -> Vec<Decision> {
        let mut decisions: Vec<Decision> = Vec::new();
        for _ in 0..count {
            let confirmed: Vec<_> = self.state.unconfirmed().map(confirmation).collect();
            decisions.push(self.decide(&confirmed).await);
        }
        decisions
    }

    pub async fn confirm(&mut self, decision: &Decision) {
        self.ledger.confirm(&self.pipeline, self.generation, &confirmations(decision)).await.unwrap();
        for confirmation in &confirmations(decision) {
            self.state.apply_confirmation(confirmation).unwrap();
        }
    }

    /// What a repair writes for the first handle of a decision.
    pub fn replacement(&self, decision: &Decision, attempt: u32) -> Replacement {
        let lost = &decision.handles[0];
        let first = lost.slices[0].first;
        Replacement { lost: lost.transaction.label.clone(), handle: handle(self.transaction(decision.epoch, attempt), first) }
    }

    pub async fn facts(&self) -> PipelineFacts {
        self.ledger.peek(&self.pipeline).await.unwrap().unwrap()
    }
}

pub fn made(answer: Result<Decided, LedgerError>) -> Durable<Decision> {
    match answer {
        Ok(Decided::Made(decision)) => decision,
        other => panic!("expected a decision made, got {other:?}"),
    }
}

pub fn labels(facts: &PipelineFacts) -> Vec<String> {
    let state = PipelineState::from_facts(facts).unwrap();
    state.unconfirmed().map(|handle| handle.transaction.label.to_string()).collect()
}
