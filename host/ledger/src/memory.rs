//! The reference implementation: what a ledger means, without a disk. Simulations and tests use it, several hosts on one of them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use weir_protocol::{
    AttemptRecord, Confirmation, Decision, Durable, Epoch, Generation, Head, Label, Labels, LedgerId, Manifest, PipelineFacts, PipelineId,
    ProtocolError, Replacement, SweepDebt,
};

use crate::check::{self, DECISIONS_KEPT, Sealed};
use crate::durable::vouch;
use crate::lease;
use crate::{Decided, Holder, LeaseAnswer, Ledger, LedgerError, PipelineSummary};

/// A ledger in memory. Cloning it gives another handle to the same facts.
#[derive(Clone, Debug)]
pub struct MemoryLedger {
    id: LedgerId,
    store: Arc<Mutex<Store>>,
}

/// How the answer to a decision gets lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostAnswer {
    /// After the decision was made.
    Made,
    /// Before it was, and it never will be unless it is sent again.
    NotMade,
}

#[derive(Clone, Debug, Default)]
struct Store {
    lease: Option<(Holder, i64)>,
    pipelines: BTreeMap<PipelineId, Pipeline>,
    lost_answers: VecDeque<LostAnswer>,
}

#[derive(Clone, Debug)]
struct Pipeline {
    generation: Generation,
    manifest: Manifest,
    stepped_down: bool,
    head: Head,
    decisions: BTreeMap<Epoch, (Head, Decision)>,
    /// Every transaction that a kept decision or a replacement names.
    handles: BTreeMap<Label, Epoch>,
    confirmations: BTreeMap<Label, Confirmation>,
    replacements: Vec<Replacement>,
    /// Tries other than the first that nothing names, of any generation that runs or owes.
    attempts: BTreeMap<Label, (Generation, AttemptRecord)>,
    /// Without their attempts.
    debts: BTreeMap<Generation, SweepDebt>,
}

impl MemoryLedger {
    /// A new ledger that knows nothing.
    pub fn new(id: LedgerId) -> Self {
        Self { id, store: Arc::default() }
    }

    /// A ledger with the same id and the same facts that goes its own way from now on: a backup, to be put in this one's place.
    pub fn backup(&self) -> Self {
        Self { id: self.id, store: Arc::new(Mutex::new(self.lock().clone())) }
    }

    /// The next decision's answer gets lost. Called again, the one after it, and so on.
    pub fn lose_next_answer(&self, how: LostAnswer) {
        self.lock().lost_answers.push_back(how);
    }

    fn lock(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store {
    /// The pipeline, if that generation is its newest.
    fn fenced(&mut self, pipeline: &PipelineId, ours: Generation) -> Result<&mut Pipeline, LedgerError> {
        match self.pipelines.get_mut(pipeline) {
            Some(known) if known.generation == ours => Ok(known),
            Some(known) => Err(LedgerError::Fenced { ours, found: known.generation }),
            None => Err(LedgerError::Fenced { ours, found: Generation(0) }),
        }
    }

    /// The same, if it has not stepped down.
    fn running(&mut self, pipeline: &PipelineId, ours: Generation) -> Result<&mut Pipeline, LedgerError> {
        let known = self.fenced(pipeline, ours)?;
        if known.stepped_down {
            return Err(ProtocolError::SteppedDown { generation: ours }.into());
        }
        Ok(known)
    }

    fn holder(&self) -> String {
        self.lease.as_ref().map_or_else(|| "nobody".to_owned(), |(holder, _)| holder.to_string())
    }
}

impl Pipeline {
    fn new(manifest: Manifest) -> Self {
        Self {
            generation: Generation(0),
            manifest,
            stepped_down: true,
            head: Head::GENESIS,
            decisions: BTreeMap::new(),
            handles: BTreeMap::new(),
            confirmations: BTreeMap::new(),
            replacements: Vec::new(),
            attempts: BTreeMap::new(),
            debts: BTreeMap::new(),
        }
    }

    fn facts(&self, pipeline: &PipelineId, ledger: LedgerId) -> PipelineFacts {
        let needed: BTreeMap<_, _> = self.decisions.iter().filter(|(epoch, _)| self.is_needed(**epoch)).collect();
        let mut confirmations: Vec<_> = self.confirmations.values().filter(|c| needed.contains_key(&c.epoch)).cloned().collect();
        confirmations.sort_by(|a, b| (a.epoch, &a.label).cmp(&(b.epoch, &b.label)));
        PipelineFacts {
            pipeline: pipeline.clone(),
            ledger,
            generation: self.generation,
            manifest: self.manifest.clone(),
            head: self.head,
            decisions: needed.values().map(|(_, decision)| decision.clone()).collect(),
            confirmations,
            replacements: self.replacements.iter().filter(|r| needed.contains_key(&r.handle.transaction.epoch)).cloned().collect(),
            debts: self.debts.values().map(|debt| SweepDebt { attempts: self.attempts_of(debt.generation), ..debt.clone() }).collect(),
            undecided_may_exist: !self.stepped_down,
        }
    }

    fn attempts_of(&self, generation: Generation) -> Vec<AttemptRecord> {
        let mut attempts: Vec<_> =
            self.attempts.values().filter(|(owner, _)| *owner == generation).map(|(_, attempt)| attempt.clone()).collect();
        attempts.sort();
        attempts
    }

    /// Positions are read from the newest snapshot on, and unconfirmed handles are to be committed.
    fn is_needed(&self, epoch: Epoch) -> bool {
        let snapshot = self.decisions.values().rev().find(|(_, decision)| decision.snapshot).map(|(head, _)| head.epoch);
        snapshot.is_none_or(|snapshot| epoch >= snapshot) || self.has_unconfirmed(epoch)
    }

    fn has_unconfirmed(&self, epoch: Epoch) -> bool {
        self.handles.iter().any(|(label, of)| *of == epoch && !self.confirmations.contains_key(label) && !self.is_replaced(label))
    }

    fn is_replaced(&self, label: &Label) -> bool {
        self.replacements.iter().any(|replacement| replacement.lost == *label)
    }

    /// Which of the confirmations are news. Fails if one speaks of something that is not decided.
    fn new_confirmations(&self, confirmations: &[Confirmation]) -> Result<Vec<Confirmation>, LedgerError> {
        let mut news = Vec::new();
        for confirmation in confirmations {
            check::confirmation(confirmation)?;
            let (label, epoch) = (&confirmation.label, confirmation.epoch);
            let pruned = Epoch::GENESIS < epoch && epoch <= self.head.epoch && !self.decisions.contains_key(&epoch);
            if pruned || self.confirmations.get(label).is_some_and(|known| known.epoch == epoch) {
                continue;
            }
            if self.handles.get(label) != Some(&epoch) || self.is_replaced(label) {
                return Err(check::unnamed(label));
            }
            news.push(confirmation.clone());
        }
        Ok(news)
    }

    fn confirm(&mut self, news: Vec<Confirmation>) {
        for confirmation in news {
            self.confirmations.entry(confirmation.label.clone()).or_insert(confirmation);
        }
    }

    fn extend(&mut self, decision: &Decision, head: Head) {
        for handle in &decision.handles {
            self.attempts.remove(&handle.transaction.label);
            self.handles.insert(handle.transaction.label.clone(), decision.epoch);
        }
        self.decisions.insert(decision.epoch, (head, decision.clone()));
        self.head = head;
    }

    fn prune(&mut self) {
        let gone = |epoch: &Epoch| epoch.0.saturating_add(DECISIONS_KEPT) <= self.head.epoch.0 && !self.is_needed(*epoch);
        let gone: Vec<_> = self.decisions.keys().copied().filter(gone).collect();
        self.decisions.retain(|epoch, _| !gone.contains(epoch));
        self.handles.retain(|_, epoch| !gone.contains(epoch));
        self.confirmations.retain(|_, confirmation| !gone.contains(&confirmation.epoch));
        self.replacements.retain(|replacement| !gone.contains(&replacement.handle.transaction.epoch));
    }
}

#[async_trait]
impl Ledger for MemoryLedger {
    fn id(&self) -> LedgerId {
        self.id
    }

    async fn take_lease(&self, holder: &Holder, stale: Option<&LeaseAnswer>) -> Result<LeaseAnswer, LedgerError> {
        let mut store = self.lock();
        let current = store.lease.as_ref().map(|(holder, counter)| (holder, *counter));
        let answer = lease::answer(current, holder, stale);
        if answer == LeaseAnswer::Taken {
            let counter = store.lease.as_ref().map_or(0, |(_, counter)| counter + 1);
            store.lease = Some((holder.clone(), counter));
        }
        Ok(answer)
    }

    async fn heartbeat(&self, holder: &Holder) -> Result<(), LedgerError> {
        let mut store = self.lock();
        let other = store.holder();
        match &mut store.lease {
            Some((current, counter)) if current.id == holder.id => {
                *counter += 1;
                Ok(())
            }
            _ => Err(LedgerError::LeaseLost { holder: other }),
        }
    }

    async fn release_lease(&self, holder: &Holder) -> Result<(), LedgerError> {
        let mut store = self.lock();
        store.lease = store.lease.take().filter(|(current, _)| current.id != holder.id);
        Ok(())
    }

    async fn peek(&self, pipeline: &PipelineId) -> Result<Option<PipelineFacts>, LedgerError> {
        Ok(self.lock().pipelines.get(pipeline).map(|known| known.facts(pipeline, self.id)))
    }

    async fn pipelines(&self) -> Result<Vec<PipelineSummary>, LedgerError> {
        let summary = |(pipeline, known): (&PipelineId, &Pipeline)| PipelineSummary {
            pipeline: pipeline.clone(),
            generation: known.generation,
            head: known.head,
        };
        Ok(self.lock().pipelines.iter().map(summary).collect())
    }

    async fn raise_generation(
        &self,
        pipeline: &PipelineId,
        seen: Generation,
        manifest: &Manifest,
    ) -> Result<Durable<PipelineFacts>, LedgerError> {
        let mut store = self.lock();
        let found = store.pipelines.get(pipeline).map_or(Generation(0), |known| known.generation);
        if found != seen {
            return Err(LedgerError::Fenced { ours: seen, found });
        }
        let known = store.pipelines.entry(pipeline.clone()).or_insert_with(|| Pipeline::new(manifest.clone()));
        if known.stepped_down {
            known.attempts.retain(|_, (owner, _)| *owner != seen);
        } else {
            let debt = SweepDebt { generation: seen, base: known.head.epoch, manifest: known.manifest.clone(), attempts: Vec::new() };
            known.debts.insert(seen, debt);
        }
        known.generation = seen.next();
        known.manifest = manifest.clone();
        known.stepped_down = false;
        Ok(vouch(known.facts(pipeline, self.id)))
    }

    async fn decide(&self, decision: &Decision, confirmations: &[Confirmation]) -> Result<Decided, LedgerError> {
        let Sealed { head, .. } = check::decision(decision)?;
        let mut store = self.lock();
        let lost = store.lost_answers.pop_front();
        let unavailable = || LedgerError::Unavailable { message: "the answer was lost".to_owned() };
        if lost == Some(LostAnswer::NotMade) {
            return Err(unavailable());
        }
        let Some(known) = store.pipelines.get_mut(&decision.pipeline) else {
            return Ok(Decided::Refused { generation: Generation(0), head: Head::GENESIS });
        };
        let current = known.generation == decision.generation;
        let found = known.decisions.get(&decision.epoch).is_some_and(|(made, _)| *made == head);
        if found {
            if current {
                known.confirm(known.new_confirmations(confirmations)?);
            }
        } else if current && known.stepped_down {
            return Err(ProtocolError::SteppedDown { generation: decision.generation }.into());
        } else if current && known.head == (Head { epoch: decision.base, hash: decision.base_hash }) {
            if let Some(taken) = decision.handles.iter().find(|handle| known.handles.contains_key(&handle.transaction.label)) {
                return Err(check::used_twice(&taken.transaction.label));
            }
            let news = known.new_confirmations(confirmations)?;
            known.extend(decision, head);
            known.confirm(news);
            known.prune();
        } else if decision.epoch <= known.head.epoch && !known.decisions.contains_key(&decision.epoch) {
            // It was made or refused so long ago that this can no longer be told.
            return Err(LedgerError::Fenced { ours: decision.generation, found: known.generation });
        } else {
            return Ok(Decided::Refused { generation: known.generation, head: known.head });
        }
        match lost {
            Some(LostAnswer::Made) => Err(unavailable()),
            Some(LostAnswer::NotMade) | None => Ok(Decided::Made(vouch(decision.clone()))),
        }
    }

    async fn confirm(&self, pipeline: &PipelineId, generation: Generation, confirmations: &[Confirmation]) -> Result<(), LedgerError> {
        let mut store = self.lock();
        let known = store.fenced(pipeline, generation)?;
        known.confirm(known.new_confirmations(confirmations)?);
        Ok(())
    }

    async fn replace(
        &self,
        pipeline: &PipelineId,
        generation: Generation,
        replacement: &Replacement,
    ) -> Result<Durable<Replacement>, LedgerError> {
        let mut store = self.lock();
        let known = store.running(pipeline, generation)?;
        let label = &replacement.handle.transaction.label;
        if known.replacements.contains(replacement) {
            return Ok(vouch(replacement.clone()));
        }
        let epoch = known.handles.get(&replacement.lost).copied().ok_or_else(|| check::unnamed(&replacement.lost))?;
        if known.confirmations.contains_key(&replacement.lost) || known.is_replaced(&replacement.lost) {
            return Err(check::unnamed(&replacement.lost));
        }
        check::handle(&replacement.handle, epoch)?;
        if known.handles.contains_key(label) {
            return Err(check::used_twice(label));
        }
        known.attempts.remove(label);
        known.handles.insert(label.clone(), epoch);
        known.replacements.push(replacement.clone());
        Ok(vouch(replacement.clone()))
    }

    async fn record_attempt(&self, pipeline: &PipelineId, generation: Generation, attempt: &AttemptRecord) -> Result<(), LedgerError> {
        let labels = Labels::new(self.id, pipeline.clone());
        let transaction = labels.transaction(&attempt.sink, generation, attempt.epoch, attempt.lane, attempt.attempt)?;
        let mut store = self.lock();
        let known = store.running(pipeline, generation)?;
        if known.handles.contains_key(&transaction.label) {
            return Err(check::used_twice(&transaction.label));
        }
        known.attempts.insert(transaction.label, (generation, attempt.clone()));
        Ok(())
    }

    async fn discharge(&self, pipeline: &PipelineId, generation: Generation, owed_by: Generation) -> Result<(), LedgerError> {
        let mut store = self.lock();
        let known = store.fenced(pipeline, generation)?;
        if owed_by >= generation {
            return Err(ProtocolError::NotOwed { generation: owed_by }.into());
        }
        known.debts.remove(&owed_by);
        known.attempts.retain(|_, (owner, _)| *owner != owed_by);
        Ok(())
    }

    async fn step_down(&self, pipeline: &PipelineId, generation: Generation) -> Result<(), LedgerError> {
        self.lock().fenced(pipeline, generation)?.stepped_down = true;
        Ok(())
    }
}
