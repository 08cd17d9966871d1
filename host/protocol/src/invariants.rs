//! The invariants EO-1 to EO-8 as a monitor that watches what happens.
//!
//! The runtime feeds it what it does and stops the pipeline when it answers with a violation; tests and simulations feed it what several
//! hosts do to one target. Its memory is bounded by what is in flight and by [`EPOCHS_REMEMBERED`].

mod contents;

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use crate::facts::{Decision, Head, MAX_UNDECIDED_EPOCHS, PipelineFacts, Slice};
use crate::ids::{Attempt, Epoch, Generation, Label, Lane, SinkId, Transaction};

use contents::Contents;

/// For how many epochs after its decision a settled transaction is remembered, to notice that it is aborted.
pub const EPOCHS_REMEMBERED: u64 = 64;

/// Something that happened to one pipeline, on any host.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// A generation was raised. The debt of the one before is written by the same step, so [`Event::DebtOwed`] comes first.
    GenerationRaised(Generation),
    /// A try other than the first is durable.
    AttemptRecorded(&'a Transaction),
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
    /// That debt is struck: everything that its generation began has been aborted.
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

/// What a decision made of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// To be committed, or committed and not known to be.
    Decided,
    /// Known to be visible.
    Confirmed,
    /// Lost, and another stands in.
    Replaced,
}

/// A transaction begun that no decision names.
#[derive(Clone, Debug)]
struct Undecided {
    /// Who answers for it.
    generation: Generation,
    /// An abort of it was called.
    aborting: bool,
}

/// Watches one pipeline.
#[derive(Clone, Debug)]
pub struct Monitor {
    generation: Generation,
    head: Head,
    /// The newest attempt begun of each epoch that is not over, by who may begin it.
    begun: BTreeMap<(Generation, SinkId, Lane), BTreeMap<Epoch, Attempt>>,
    /// Tries other than the first that may be begun.
    recorded: BTreeSet<Label>,
    undecided: BTreeMap<Label, Undecided>,
    /// Named by a decision that was sent and may still turn out made.
    uncertain: BTreeMap<Label, Decision>,
    /// Named by a decision that was made, or by a replacement.
    named: BTreeMap<Label, (Epoch, Stage)>,
    /// The generations that owe a sweep, each with the newest decision when it ended.
    owing: BTreeMap<Generation, Epoch>,
    contents: Contents,
}

impl Default for Monitor {
    fn default() -> Self {
        Self {
            generation: Generation(0),
            head: Head::GENESIS,
            begun: BTreeMap::new(),
            recorded: BTreeSet::new(),
            undecided: BTreeMap::new(),
            uncertain: BTreeMap::new(),
            named: BTreeMap::new(),
            owing: BTreeMap::new(),
            contents: Contents::default(),
        }
    }
}

impl Monitor {
    /// Watches a pipeline from the facts that a start has read.
    pub fn from_facts(facts: &PipelineFacts) -> Self {
        let mut monitor = Self {
            generation: facts.generation,
            head: facts.head,
            owing: facts.debts.iter().map(|debt| (debt.generation, debt.base)).collect(),
            ..Self::default()
        };
        let handles = facts.decisions.iter().flat_map(|decision| &decision.handles);
        for handle in handles.chain(facts.replacements.iter().map(|replacement| &replacement.handle)) {
            monitor.named.insert(handle.transaction.label.clone(), (handle.transaction.epoch, Stage::Decided));
        }
        let replaced = facts.replacements.iter().map(|replacement| (&replacement.lost, Stage::Replaced));
        let confirmed = facts.confirmations.iter().map(|confirmation| (&confirmation.label, Stage::Confirmed));
        for (label, stage) in replaced.chain(confirmed) {
            monitor.set_stage(label, stage);
        }
        for decision in &facts.decisions {
            monitor.contents.count(decision);
        }
        // Who gets records is the new generation's manifest, which its first decision shows.
        monitor.contents.new_generation();
        monitor
    }

    /// Takes note of an event, or answers with the invariant that it breaks.
    pub fn observe(&mut self, event: &Event<'_>) -> Result<(), Violation> {
        match event {
            Event::GenerationRaised(generation) => self.raised(*generation),
            Event::AttemptRecorded(transaction) => {
                self.recorded.insert(transaction.label.clone());
                Ok(())
            }
            Event::Begin { transaction, generation, attempt } => self.begin(transaction, *generation, *attempt),
            Event::DecisionSent(decision) => self.decision_sent(decision),
            Event::DecisionMade(decision) => self.decision_made(decision),
            Event::DecisionRefused(decision) => {
                self.uncertain.retain(|_, sent| sent != *decision);
                Ok(())
            }
            Event::Replaced { lost, replacement } => self.replaced(lost, replacement),
            // A host that was replaced may still try what was lost and repaired meanwhile: its target has made sure that it stays lost.
            Event::Commit(label) if self.named.contains_key(*label) => Ok(()),
            Event::Commit(label) => broken("EO-1", format!("commit of {label}, which no durable decision names")),
            Event::Confirmed(label) => match self.named.get(*label) {
                Some((_, Stage::Decided | Stage::Confirmed)) => {
                    self.set_stage(label, Stage::Confirmed);
                    self.forget_settled();
                    Ok(())
                }
                Some((_, Stage::Replaced)) => broken("EO-1", format!("confirmation of {label}, which was lost and is replaced")),
                None => broken("EO-1", format!("confirmation of {label}, which no durable decision names")),
            },
            Event::Abort(label) => self.abort(label),
            Event::Aborted(label) => {
                self.undecided.remove(*label);
                Ok(())
            }
            Event::DebtOwed(generation) => {
                self.owing.insert(*generation, self.head.epoch);
                Ok(())
            }
            Event::DebtPaid(generation) => self.paid(*generation),
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
        match self.undecided.iter().find(|(_, begun)| !self.owing.contains_key(&begun.generation)) {
            Some((label, begun)) => {
                let owner = begun.generation;
                broken("EO-7", format!("{label} was begun, is neither committed nor aborted, and generation {owner} owes no sweep"))
            }
            None => Ok(()),
        }
    }

    fn raised(&mut self, generation: Generation) -> Result<(), Violation> {
        if generation <= self.generation {
            return broken("EO-4", format!("generation {generation} was raised after generation {}", self.generation));
        }
        self.finish()?;
        self.generation = generation;
        // What was sent under an older generation and did not become the head is refused from now on.
        self.uncertain.clear();
        self.begun.retain(|(owner, _, _), _| self.owing.contains_key(owner));
        self.contents.new_generation();
        Ok(())
    }

    fn begin(&mut self, transaction: &Transaction, generation: Generation, attempt: Attempt) -> Result<(), Violation> {
        let (label, epoch) = (&transaction.label, transaction.epoch);
        let owed = self.owing.get(&generation).copied();
        let Some(base) = owed.or((generation == self.generation).then_some(self.head.epoch)) else {
            return broken("EO-7", format!("{label} is begun by generation {generation}, which does not run and owes no sweep"));
        };
        if attempt != Attempt::FIRST && !self.recorded.remove(label) {
            return broken("EO-7", format!("{label} is begun, and a sweep would not know of attempt {attempt}"));
        }
        if attempt == Attempt::FIRST && epoch.0 > base.0.saturating_add(MAX_UNDECIDED_EPOCHS) {
            return broken("EO-7", format!("{label} is begun, and a sweep after epoch {base} would not look as far as epoch {epoch}"));
        }
        let is_over = owed.is_none() && epoch < self.oldest_unsettled();
        let known = self.undecided.contains_key(label) || self.uncertain.contains_key(label) || self.named.contains_key(label);
        let tries = self.begun.entry((generation, transaction.sink.clone(), transaction.lane)).or_default();
        if is_over || known || tries.get(&epoch).is_some_and(|before| *before >= attempt) {
            return broken("EO-5", format!("label {label} is begun again"));
        }
        tries.insert(epoch, attempt);
        self.undecided.insert(label.clone(), Undecided { generation, aborting: false });
        Ok(())
    }

    fn decision_sent(&mut self, decision: &Decision) -> Result<(), Violation> {
        // A host that was replaced does not know yet that it can decide nothing any more.
        if decision.generation != self.generation {
            return Ok(());
        }
        // What is sent again can have become the head meanwhile.
        if decision.base == self.head.epoch {
            self.contents.check(decision)?;
        }
        for handle in &decision.handles {
            let label = &handle.transaction.label;
            if self.named.contains_key(label) || self.uncertain.get(label) == Some(decision) {
                continue;
            }
            self.check_can_be_named(label)?;
            self.uncertain.insert(label.clone(), decision.clone());
        }
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
        self.contents.check(decision)?;
        self.contents.count(decision);
        for handle in &decision.handles {
            self.name(&handle.transaction.label, epoch);
        }
        self.head = decision.head().map_err(|error| Violation { invariant: "EO-4", what: error.to_string() })?;
        self.forget_settled();
        Ok(())
    }

    fn replaced(&mut self, lost: &Label, replacement: &Label) -> Result<(), Violation> {
        let Some((epoch, Stage::Decided)) = self.named.get(lost).copied() else {
            return broken("EO-1", format!("{replacement} replaces {lost}, which no decision names"));
        };
        self.check_can_be_named(replacement)?;
        self.set_stage(lost, Stage::Replaced);
        self.name(replacement, epoch);
        Ok(())
    }

    fn abort(&mut self, label: &Label) -> Result<(), Violation> {
        if self.named.contains_key(label) || self.uncertain.contains_key(label) {
            return broken("EO-2", format!("abort of {label}, which a decision names or may still name"));
        }
        if let Some(begun) = self.undecided.get_mut(label) {
            begun.aborting = true;
        }
        Ok(())
    }

    fn paid(&mut self, generation: Generation) -> Result<(), Violation> {
        if let Some((label, _)) = self.undecided.iter().find(|(_, begun)| begun.generation == generation) {
            return broken("EO-7", format!("the debt of generation {generation} is struck, and its {label} was never aborted"));
        }
        self.owing.remove(&generation);
        self.begun.retain(|(owner, _, _), _| *owner != generation);
        Ok(())
    }

    /// A decision or a replacement may name what was begun and what nobody has told to abort (EO-2).
    fn check_can_be_named(&self, label: &Label) -> Result<(), Violation> {
        match self.undecided.get(label) {
            Some(Undecided { aborting: false, .. }) => Ok(()),
            Some(Undecided { aborting: true, .. }) => broken("EO-2", format!("{label} is to be committed, and its abort was called")),
            None => broken("EO-2", format!("{label} is to be committed, and was never begun or was aborted")),
        }
    }

    fn name(&mut self, label: &Label, epoch: Epoch) {
        self.undecided.remove(label);
        self.uncertain.remove(label);
        self.named.insert(label.clone(), (epoch, Stage::Decided));
    }

    fn set_stage(&mut self, label: &Label, stage: Stage) {
        if let Some(named) = self.named.get_mut(label) {
            named.1 = stage;
        }
    }

    /// The oldest epoch of which something may still be begun: a repair of what is decided, or a first try of what is not.
    fn oldest_unsettled(&self) -> Epoch {
        let unsettled = self.named.values().filter(|(_, stage)| *stage == Stage::Decided).map(|(epoch, _)| *epoch);
        unsettled.min().unwrap_or(self.head.epoch.next())
    }

    fn forget_settled(&mut self) {
        let newest = self.head.epoch.0;
        self.named.retain(|_, (epoch, stage)| *stage == Stage::Decided || epoch.0.saturating_add(EPOCHS_REMEMBERED) > newest);
        let oldest = self.oldest_unsettled();
        let running = self.generation;
        for ((_, _, _), tries) in self.begun.iter_mut().filter(|((owner, _, _), _)| *owner == running) {
            tries.retain(|epoch, _| *epoch >= oldest);
        }
    }
}
