//! What the protocol says, as tables, properties and broken invariants. The builders here make small facts: one pipeline, the sinks `a` and `b`, one
//! split.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may")]

mod after;
mod histories;
mod labels;
mod monitor;
mod seal;
mod settle;
mod state;

use crate::decide::{EpochDraft, LaneEpoch};
use crate::*;

fn pipeline() -> PipelineId {
    "orders".parse().unwrap()
}

fn sink(name: &str) -> SinkId {
    name.parse().unwrap()
}

fn split(name: &str) -> SplitId {
    SplitId::try_from(name.to_owned()).unwrap()
}

fn position(record: u64) -> Position {
    Position(record.to_string().into_bytes())
}

fn labels() -> Labels {
    Labels::new(LedgerId::from_random([1, 2, 3, 4, 5, 6, 7, 8]), pipeline())
}

fn transaction(sink_name: &str, generation: u64, epoch: u64, attempt: u32) -> Transaction {
    labels().transaction(&sink(sink_name), Generation(generation), Epoch(epoch), Lane(0), Attempt(attempt)).unwrap()
}

/// Records `first..end` of the split `s`.
fn slice(first: u64, end: u64) -> Slice {
    Slice {
        split: split("s"),
        from: Some(position(first)),
        to: position(end),
        first,
        records: end - first,
        bytes: (end - first) * 8,
        tail: Hash::of(&end.to_le_bytes()),
    }
}

fn prepared(transaction: Transaction, slices: Vec<Slice>) -> PreparedHandle {
    let held = Some(slices.iter().map(|slice| slice.records).sum());
    let handle = transaction.label.to_string().into_bytes();
    PreparedHandle { transaction, format: "v1".to_owned(), handle, held, slices, rejected: vec![] }
}

fn sink_manifest(name: &str) -> SinkManifest {
    SinkManifest {
        sink: sink(name),
        plugin: "file".to_owned(),
        version: "0.1.0".to_owned(),
        digest: Hash::of(name.as_bytes()),
        target: format!("file:///{name}"),
        handle_formats: vec!["v1".to_owned()],
        settle_ms: 0,
    }
}

fn manifest(sinks: &[&str]) -> Manifest {
    let sinks = sinks.iter().map(|name| sink_manifest(name)).collect();
    Manifest { lanes: 1, source: "data/*".to_owned(), delivery: Delivery::ExactlyOnce, sinks }
}

/// Vouches as a ledger would.
#[allow(clippy::disallowed_methods, reason = "the test stands in for the ledger")]
fn durable<T>(fact: T) -> Durable<T> {
    Durable::attest(fact)
}

/// Facts of generation 1 that has decided nothing.
fn no_facts(sinks: &[&str]) -> PipelineFacts {
    PipelineFacts {
        pipeline: pipeline(),
        ledger: LedgerId::from_random([1, 2, 3, 4, 5, 6, 7, 8]),
        generation: Generation(1),
        manifest: manifest(sinks),
        head: Head::GENESIS,
        decisions: vec![],
        confirmations: vec![],
        replacements: vec![],
        debts: vec![],
        undecided_may_exist: true,
    }
}

/// A lane that read records `first..end` into each sink, in one generation's first try.
fn lane(sinks: &[&str], generation: u64, epoch: u64, first: u64, end: u64) -> LaneEpoch {
    let read = vec![slice(first, end)];
    let hold = |name: &&str| (sink(name), prepared(transaction(name, generation, epoch, 1), read.clone()));
    LaneEpoch { positions: [(split("s"), position(end))].into(), prepared: sinks.iter().map(hold).collect(), read }
}

/// Seals what one lane has.
fn seal(facts: &PipelineFacts, part: LaneEpoch) -> Result<Option<Decision>, ProtocolError> {
    let state = PipelineState::from_facts(facts).unwrap();
    let lanes = [(Lane(0), part)].into();
    EpochDraft { pipeline: &facts.pipeline, generation: facts.generation, manifest: &facts.manifest, state: &state, lanes }.seal()
}

/// Decides the next ten records for every sink of the manifest.
fn decide(facts: &mut PipelineFacts) -> Decision {
    let epoch = facts.head.epoch.next().0;
    let sinks: Vec<_> = facts.manifest.sinks.iter().map(|sink| sink.sink.to_string()).collect();
    let sinks: Vec<_> = sinks.iter().map(String::as_str).collect();
    let part = lane(&sinks, facts.generation.0, epoch, (epoch - 1) * 10, epoch * 10);
    let decision = seal(facts, part).unwrap().unwrap();
    facts.head = decision.head().unwrap();
    facts.decisions.push(decision.clone());
    decision
}

fn confirmation(handle: &PreparedHandle) -> Confirmation {
    Confirmation { epoch: handle.transaction.epoch, label: handle.transaction.label.clone(), verdict: Verdict::Committed }
}

fn confirm(facts: &mut PipelineFacts, decision: &Decision) {
    facts.confirmations.extend(decision.handles.iter().map(confirmation));
}

/// The error's text, for a table of refusals.
fn words<T: std::fmt::Debug>(result: Result<T, ProtocolError>) -> String {
    result.unwrap_err().to_string()
}
