//! The invariants EO-1 to EO-8 as a monitor that watches what happens.
//!
//! The runtime feeds it what it does and stops the pipeline when it answers with a violation; tests and simulations feed it what several
//! hosts do to one target. Its memory is bounded by what is in flight.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use crate::facts::{Decision, Head, PipelineFacts, Slice};
use crate::ids::{Attempt, Generation, Label, Lane, SinkId, SplitId, Transaction};

/// Something that happened to one pipeline, on any host.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// A generation was raised.
    GenerationRaised(Generation),
    /// `begin` is about to be called.
    Begin {
        /// The transaction.
        transaction: &'a Transaction,
        /// The generation of the host that calls.
        generation: Generation,
        /// Which try.
        attempt: Attempt,
    },
    /// A decision is about to be sent to the ledger, for the first time or again.
    DecisionSent(&'a Decision),
    /// The ledger has it.
    DecisionMade(&'a Decision),
    /// The ledger will never have it.
    DecisionRefused(&'a Decision),
    /// A replacement of a lost handle is durable.
    Replaced {
        /// The label that was lost.
        lost: &'a Label,
        /// The label that stands in.
        replacement: &'a Label,
    },
    /// `commit` is about to be called.
    Commit(&'a Label),
    /// A confirmation is durable.
    Confirmed(&'a Label),
    /// `abort` is about to be called.
    Abort(&'a Label),
    /// `abort` succeeded.
    Aborted(&'a Label),
    /// A generation ended, and its debt is durable.
    DebtOwed(Generation),
    /// That debt is paid.
    DebtPaid(Generation),
    /// A decided slice was read again.
    Replay {
        /// What the decision says.
        decided: &'a Slice,
        /// What was read now.
        found: &'a Slice,
    },
}

/// An invariant that an event broke.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{invariant}: {what}")]
pub struct Violation {
    /// `EO-1` to `EO-8`.
    pub invariant: &'static str,
    /// What happened, with the names.
    pub what: String,
}

fn broken(invariant: &'static str, what: String) -> Result<(), Violation> {
    Err(Violation { invariant, what })
}

/// Watches one pipeline.
#[derive(Clone, Debug)]
pub struct Monitor {
    generation: Generation,
    head: Head,
    /// The newest epoch and attempt begun, by who may begin it.
    begun: BTreeMap<(Generation, SinkId, Lane), (u64, Attempt)>,
    /// Begun and neither decided nor aborted, with the generation that answers for it.
    undecided: BTreeMap<Label, Generation>,
    /// Named by a decision that was sent and may still turn out made.
    uncertain: BTreeMap<Label, Decision>,
    /// Named by a decision that was made, or by a replacement, and not confirmed.
    decided: BTreeSet<Label>,
    owing: BTreeSet<Generation>,
    /// The number of the next record of a split that a sink has not been given under a decision.
    next_record: BTreeMap<(SinkId, SplitId), u64>,
}

impl Default for Monitor {
    fn default() -> Self {
        Self {
            generation: Generation(0),
            head: Head::GENESIS,
            begun: BTreeMap::new(),
            undecided: BTreeMap::new(),
            uncertain: BTreeMap::new(),
            decided: BTreeSet::new(),
            owing: BTreeSet::new(),
            next_record: BTreeMap::new(),
        }
    }
}

impl Monitor {
    /// Watches a pipeline from the facts that a start has read.
    pub fn from_facts(facts: &PipelineFacts) -> Self {
        let replaced: BTreeSet<&Label> = facts.replacements.iter().map(|replacement| &replacement.lost).collect();
        let confirmed: BTreeSet<&Label> = facts.confirmations.iter().map(|confirmation| &confirmation.label).collect();
        let named = facts.decisions.iter().flat_map(|decision| &decision.handles);
        let standing_in = facts.replacements.iter().map(|replacement| &replacement.handle);
        let mut monitor = Self {
            generation: facts.generation,
            head: facts.head,
            owing: facts.debts.iter().map(|debt| debt.generation).collect(),
            ..Self::default()
        };
        for handle in named.chain(standing_in) {
            let label = &handle.transaction.label;
            if !replaced.contains(label) && !confirmed.contains(label) {
                monitor.decided.insert(label.clone());
            }
        }
        for decision in &facts.decisions {
            monitor.count_records(decision);
        }
        monitor
    }

    /// Takes note of an event, or answers with the invariant that it breaks.
    pub fn observe(&mut self, event: &Event<'_>) -> Result<(), Violation> {
        match event {
            Event::GenerationRaised(generation) => self.raised(*generation),
            Event::Begin { transaction, generation, attempt } => self.begin(transaction, *generation, *attempt),
            Event::DecisionSent(decision) => {
                for handle in &decision.handles {
                    self.uncertain.insert(handle.transaction.label.clone(), (*decision).clone());
                }
                Ok(())
            }
            Event::DecisionMade(decision) => self.decision_made(decision),
            Event::DecisionRefused(decision) => {
                self.uncertain.retain(|_, sent| sent != *decision);
                Ok(())
            }
            Event::Replaced { lost, replacement } => {
                if !self.decided.remove(*lost) {
                    return broken("EO-1", format!("{replacement} replaces {lost}, which no decision names"));
                }
                self.undecided.remove(*replacement);
                self.decided.insert((*replacement).clone());
                Ok(())
            }
            Event::Commit(label) => {
                if self.decided.contains(*label) {
                    return Ok(());
                }
                broken("EO-1", format!("commit of {label}, which no durable decision names"))
            }
            Event::Confirmed(label) => {
                if self.decided.remove(*label) {
                    return Ok(());
                }
                broken("EO-1", format!("confirmation of {label}, which no durable decision names"))
            }
            Event::Abort(label) => {
                if self.decided.contains(*label) || self.uncertain.contains_key(*label) {
                    return broken("EO-2", format!("abort of {label}, which a decision names or may still name"));
                }
                Ok(())
            }
            Event::Aborted(label) => {
                self.undecided.remove(*label);
                Ok(())
            }
            Event::DebtOwed(generation) => {
                self.owing.insert(*generation);
                Ok(())
            }
            Event::DebtPaid(generation) => {
                self.owing.remove(generation);
                self.undecided.retain(|_, owner| owner != generation);
                self.begun.retain(|(owner, _, _), _| owner != generation);
                Ok(())
            }
            Event::Replay { decided, found } => {
                if decided == found {
                    return Ok(());
                }
                broken("EO-8", format!("split {} reads differently now: decided {decided:?}, found {found:?}", decided.split))
            }
        }
    }

    /// Nothing runs any more: is every transaction committed, aborted, or listed as a debt (EO-7)?
    pub fn finish(&self) -> Result<(), Violation> {
        let unlisted = |(_, owner): &(&Label, &Generation)| !self.owing.contains(owner);
        match self.undecided.iter().find(unlisted) {
            Some((label, generation)) => {
                broken("EO-7", format!("{label} was begun, is neither committed nor aborted, and generation {generation} owes no sweep"))
            }
            None => Ok(()),
        }
    }

    fn raised(&mut self, generation: Generation) -> Result<(), Violation> {
        if generation <= self.generation {
            return broken("EO-4", format!("generation {generation} was raised after generation {}", self.generation));
        }
        self.generation = generation;
        // What was sent under an older generation and did not become the head is refused from now on.
        self.uncertain.retain(|_, sent| sent.generation >= generation);
        Ok(())
    }

    fn begin(&mut self, transaction: &Transaction, generation: Generation, attempt: Attempt) -> Result<(), Violation> {
        let who = (generation, transaction.sink.clone(), transaction.lane);
        let now = (transaction.epoch.0, attempt);
        if self.begun.get(&who).is_some_and(|before| *before >= now) {
            return broken("EO-5", format!("label {} is begun again", transaction.label));
        }
        self.begun.insert(who, now);
        self.undecided.insert(transaction.label.clone(), generation);
        Ok(())
    }

    fn decision_made(&mut self, decision: &Decision) -> Result<(), Violation> {
        let epoch = decision.epoch;
        if decision.generation != self.generation {
            return broken(
                "EO-4",
                format!("generation {} decided epoch {epoch} after {} was raised", decision.generation, self.generation),
            );
        }
        if decision.base != self.head.epoch || decision.base_hash != self.head.hash || epoch != decision.base.next() {
            return broken("EO-4", format!("epoch {epoch} does not extend epoch {}", self.head.epoch));
        }
        self.check_positions(decision)?;
        self.check_records(decision)?;
        self.count_records(decision);
        for handle in &decision.handles {
            let label = &handle.transaction.label;
            self.undecided.remove(label);
            self.uncertain.remove(label);
            self.decided.insert(label.clone());
        }
        self.head = decision.head().map_err(|error| Violation { invariant: "EO-4", what: error.to_string() })?;
        Ok(())
    }

    /// Every split that a handle has records of goes on where its last slice ends (EO-3).
    fn check_positions(&self, decision: &Decision) -> Result<(), Violation> {
        for handle in &decision.handles {
            let mut ends = BTreeMap::new();
            for slice in &handle.slices {
                ends.insert(&slice.split, &slice.to);
            }
            for (split, to) in ends {
                if decision.positions.get(split) != Some(to) {
                    return broken("EO-3", format!("epoch {} has records of split {split} without their position", decision.epoch));
                }
            }
        }
        Ok(())
    }

    /// Every sink is given the same records, each once and without a gap (EO-6).
    fn check_records(&self, decision: &Decision) -> Result<(), Violation> {
        let mut given: BTreeMap<&SinkId, BTreeMap<&SplitId, (u64, u64)>> = BTreeMap::new();
        for handle in &decision.handles {
            let sink = &handle.transaction.sink;
            for slice in &handle.slices {
                let range = given.entry(sink).or_default().entry(&slice.split).or_insert((slice.first, slice.first));
                if slice.first != range.1 {
                    return broken("EO-6", format!("sink {sink} skips or repeats records of split {} at {}", slice.split, range.1));
                }
                range.1 = slice.first + slice.records;
            }
        }
        for (sink, splits) in &given {
            for (split, (first, _)) in splits {
                let due = self.next_record.get(&((*sink).clone(), (*split).clone()));
                if due.is_some_and(|due| due != first) {
                    return broken("EO-6", format!("sink {sink} goes on at record {first} of split {split}, but {due:?} is due"));
                }
            }
        }
        let mut sinks = given.iter();
        if let Some((one, expected)) = sinks.next()
            && let Some((other, _)) = sinks.find(|(_, splits)| *splits != expected)
        {
            return broken("EO-6", format!("sinks {one} and {other} were given different records in epoch {}", decision.epoch));
        }
        Ok(())
    }

    fn count_records(&mut self, decision: &Decision) {
        for handle in &decision.handles {
            for slice in &handle.slices {
                let key = (handle.transaction.sink.clone(), slice.split.clone());
                self.next_record.insert(key, slice.first + slice.records);
            }
        }
    }
}
