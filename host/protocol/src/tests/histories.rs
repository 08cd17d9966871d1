//! Random histories of two hosts on one ledger, either of which may crash, be replaced without knowing it, or lose answers. The monitor accepts all of them,
//! and notices each mistake that the model is told to make.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::*;
use crate::decide::{AfterCommit, after_commit};
use crate::invariants::{Event, Monitor, Violation};

const SINKS: [&str; 2] = ["a", "b"];

#[derive(Clone, Copy, Debug)]
enum Act {
    /// A host starts, also beside one that still runs.
    Start,
    Crash,
    Begin(usize),
    /// One transaction failed: it is aborted and tried again.
    Retry(usize),
    /// A decision whose answer arrives, or is lost after it was made or before.
    Decide(Answer),
    Commit,
    /// The oldest unconfirmed handle turns out lost and is filled again.
    Repair,
    /// A pass over the debts, paying what has settled.
    Sweep,
    /// Undecided transactions are aborted, and the host begins anew.
    Fail,
    StepDown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Arrives,
    LostAfter,
    LostBefore,
}

/// What a host of the model does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    AbortsWhatIsUnknown,
    CommitsBeforeTheDecisionIsMade,
    PaysWhileTheOldHostLives,
    SkipsTheDebt,
    RetriesUnderTheSameLabel,
    DoesNotRecordTries,
    RewindsTooFar,
    ForgetsASink,
    ForgetsThePosition,
    DecidesUnderAnOldGeneration,
    ReplaysOtherRecords,
}

#[derive(Clone, Debug)]
struct Host {
    generation: Generation,
    state: PipelineState,
    /// The open transaction of each sink in the epoch under way, and how often each was tried.
    open: BTreeMap<SinkId, Transaction>,
    tries: BTreeMap<(SinkId, Epoch), u32>,
    unknown: Option<Decision>,
    debts: Vec<SweepDebt>,
}

struct World {
    monitor: Monitor,
    ledger: PipelineFacts,
    attempts: BTreeMap<Generation, Vec<AttemptRecord>>,
    hosts: [Option<Host>; 2],
    mistake: Option<Mistake>,
    decided: u32,
}

type Step = Result<(), Violation>;

impl World {
    fn new(mistake: Option<Mistake>) -> Self {
        let ledger = PipelineFacts { generation: Generation(0), undecided_may_exist: false, ..no_facts(&SINKS) };
        Self { monitor: Monitor::default(), ledger, attempts: BTreeMap::new(), hosts: [None, None], mistake, decided: 0 }
    }

    fn makes(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    fn act(&mut self, at: usize, act: Act) -> Step {
        match act {
            Act::Start => return self.start(at),
            Act::Crash => {
                self.hosts[at] = None;
                return Ok(());
            }
            _ => {}
        }
        let Some(mut host) = self.hosts[at].take() else { return Ok(()) };
        let lives = match act {
            Act::Begin(which) => self.begin(&mut host, &sink(SINKS[which])),
            Act::Retry(which) => self.retry(&mut host, &sink(SINKS[which])),
            Act::Decide(answer) => self.decide(&mut host, answer),
            Act::Commit => self.commit(&mut host),
            Act::Repair => self.repair(&mut host),
            Act::Sweep => self.sweep(&mut host),
            Act::Fail => self.fail(&host).map(|()| false),
            Act::StepDown => self.step_down(&host),
            Act::Start | Act::Crash => Ok(true),
        }?;
        if lives {
            self.hosts[at] = Some(host);
        } else if matches!(act, Act::Fail) {
            self.start(at)?;
        }
        Ok(())
    }

    /// Does the ledger take a write of this host?
    fn is_current(&self, host: &Host) -> bool {
        host.generation == self.ledger.generation
    }

    fn start(&mut self, at: usize) -> Step {
        let old = self.ledger.generation;
        if self.ledger.undecided_may_exist {
            let named: Vec<_> = self
                .ledger
                .replacements
                .iter()
                .map(|one| &one.handle)
                .chain(self.ledger.decisions.iter().flat_map(|one| &one.handles))
                .collect();
            let is_named = |tried: &AttemptRecord| {
                let label = labels().transaction(&tried.sink, old, tried.epoch, tried.lane, tried.attempt).unwrap().label;
                named.iter().any(|handle| handle.transaction.label == label)
            };
            let attempts = self.attempts.remove(&old).unwrap_or_default().into_iter().filter(|tried| !is_named(tried)).collect();
            let debt = SweepDebt { generation: old, base: self.ledger.head.epoch, manifest: self.ledger.manifest.clone(), attempts };
            if !self.makes(Mistake::SkipsTheDebt) {
                self.ledger.debts.push(debt);
                self.monitor.observe(&Event::DebtOwed(old))?;
            }
        }
        self.ledger.generation = old.next();
        self.ledger.undecided_may_exist = true;
        self.monitor.observe(&Event::GenerationRaised(old.next()))?;
        let (state, _) = durable(self.ledger.clone()).recover().unwrap();
        let (generation, debts) = (self.ledger.generation, self.ledger.debts.clone());
        self.hosts[at] = Some(Host { generation, state, open: BTreeMap::new(), tries: BTreeMap::new(), unknown: None, debts });
        Ok(())
    }

    fn begin(&mut self, host: &mut Host, sink: &SinkId) -> Result<bool, Violation> {
        let epoch = host.state.head().epoch.next();
        if host.unknown.is_some() || host.open.contains_key(sink) || !host.state.may_begin(0) {
            return Ok(true);
        }
        let tries = host.tries.entry((sink.clone(), epoch)).or_insert(0);
        if *tries == 0 {
            *tries = 1;
        }
        let attempt = Attempt(*tries);
        let transaction = labels().transaction(sink, host.generation, epoch, Lane(0), attempt).unwrap();
        self.monitor.observe(&Event::Begin { transaction: &transaction, generation: host.generation, attempt })?;
        host.open.insert(sink.clone(), transaction);
        Ok(true)
    }

    fn retry(&mut self, host: &mut Host, sink: &SinkId) -> Result<bool, Violation> {
        if host.unknown.is_some() || !self.is_current(host) {
            return Ok(true);
        }
        let Some(failed) = host.open.remove(sink) else { return Ok(true) };
        self.abort(&failed)?;
        if !self.makes(Mistake::RetriesUnderTheSameLabel) {
            let next = host.tries.get(&(sink.clone(), failed.epoch)).map_or(1, |tries| tries + 1);
            self.record(host, sink, failed.epoch, next)?;
        }
        self.begin(host, sink)
    }

    /// Writes a try down before its begin.
    fn record(&mut self, host: &mut Host, sink: &SinkId, epoch: Epoch, attempt: u32) -> Step {
        host.tries.insert((sink.clone(), epoch), attempt);
        if self.makes(Mistake::DoesNotRecordTries) {
            return Ok(());
        }
        let tried = AttemptRecord { sink: sink.clone(), lane: Lane(0), epoch, attempt: Attempt(attempt) };
        let transaction = labels().transaction(sink, host.generation, epoch, Lane(0), tried.attempt).unwrap();
        self.attempts.entry(host.generation).or_default().push(tried);
        self.monitor.observe(&Event::AttemptRecorded(&transaction))
    }

    fn abort(&mut self, transaction: &Transaction) -> Step {
        self.monitor.observe(&Event::Abort(&transaction.label))?;
        self.monitor.observe(&Event::Aborted(&transaction.label))
    }

    fn draft(&self, host: &Host) -> Decision {
        let epoch = host.state.head().epoch.next();
        let first =
            host.state.positions().get(&split("s")).map_or(0, |at| String::from_utf8(at.0.clone()).unwrap().parse::<u64>().unwrap());
        let first = if self.makes(Mistake::RewindsTooFar) { first.saturating_sub(1) } else { first };
        let read = vec![slice(first, first + 10)];
        let hold = |(sink, transaction): (&SinkId, &Transaction)| (sink.clone(), prepared(transaction.clone(), read.clone()));
        let part =
            LaneEpoch { positions: [(split("s"), position(first + 10))].into(), prepared: host.open.iter().map(hold).collect(), read };
        let lanes = [(Lane(0), part)].into();
        let (pipeline, manifest) = (&self.ledger.pipeline, &self.ledger.manifest);
        let mut decision =
            EpochDraft { pipeline, generation: host.generation, manifest, state: &host.state, lanes }.seal().unwrap().unwrap();
        assert_eq!(decision.epoch, epoch);
        if self.makes(Mistake::ForgetsASink) && decision.epoch > Epoch(1) {
            decision.handles.pop();
        }
        if self.makes(Mistake::ForgetsThePosition) {
            decision.positions.clear();
        }
        decision
    }

    fn decide(&mut self, host: &mut Host, answer: Answer) -> Result<bool, Violation> {
        let decision = match host.unknown.clone() {
            Some(again) => again,
            None if host.open.len() == SINKS.len() => self.draft(host),
            None => return Ok(true),
        };
        self.monitor.observe(&Event::DecisionSent(&decision))?;
        if self.makes(Mistake::CommitsBeforeTheDecisionIsMade) {
            self.monitor.observe(&Event::Commit(&decision.handles[0].transaction.label))?;
        }
        if answer == Answer::LostBefore {
            host.unknown = Some(decision);
            return self.unknown(host);
        }
        let made_before = self.ledger.decisions.contains(&decision);
        let extends = self.ledger.head == Head { epoch: decision.base, hash: decision.base_hash };
        let fenced = !self.is_current(host) && !self.makes(Mistake::DecidesUnderAnOldGeneration);
        if !made_before && (fenced || !extends) {
            self.monitor.observe(&Event::DecisionRefused(&decision))?;
            return Ok(false);
        }
        if !made_before {
            self.monitor.observe(&Event::DecisionMade(&decision))?;
            self.ledger.head = decision.head().unwrap();
            self.ledger.decisions.push(decision.clone());
            self.decided += 1;
        }
        if answer == Answer::LostAfter {
            host.unknown = Some(decision);
            return self.unknown(host);
        }
        host.state.apply_decision(&durable(decision)).unwrap();
        (host.open, host.unknown) = (BTreeMap::new(), None);
        Ok(true)
    }

    /// The outcome of a decision is unknown. A correct host waits and asks again.
    fn unknown(&mut self, host: &Host) -> Result<bool, Violation> {
        if self.makes(Mistake::AbortsWhatIsUnknown) {
            for transaction in host.open.values() {
                self.abort(transaction)?;
            }
        }
        Ok(true)
    }

    /// Commits the oldest epoch. A host that was replaced commits too, and can confirm nothing.
    fn commit(&mut self, host: &mut Host) -> Result<bool, Violation> {
        let Some(epoch) = host.state.epoch_to_commit() else { return Ok(true) };
        let due: Vec<_> = host.state.unconfirmed().filter(|handle| handle.transaction.epoch == epoch).cloned().collect();
        for handle in due {
            self.monitor.observe(&Event::Commit(&handle.transaction.label))?;
            let AfterCommit::Confirm(confirmation) = after_commit(&handle.transaction, Verdict::Committed, 0) else { unreachable!() };
            if !self.is_current(host) {
                return Ok(false);
            }
            self.monitor.observe(&Event::Confirmed(&confirmation.label))?;
            host.state.apply_confirmation(&confirmation).unwrap();
            self.ledger.confirmations.push(confirmation);
        }
        Ok(true)
    }

    fn repair(&mut self, host: &mut Host) -> Result<bool, Violation> {
        let Some(lost) = host.state.unconfirmed().next().cloned() else { return Ok(true) };
        if !self.is_current(host) {
            return Ok(true);
        }
        let Transaction { sink, epoch, .. } = &lost.transaction;
        let next = host.tries.get(&(sink.clone(), *epoch)).map_or(2, |tries| tries + 1);
        self.record(host, sink, *epoch, next)?;
        let transaction = labels().transaction(sink, host.generation, *epoch, Lane(0), Attempt(next)).unwrap();
        self.monitor.observe(&Event::Begin { transaction: &transaction, generation: host.generation, attempt: Attempt(next) })?;
        for decided in &lost.slices {
            let found = if self.makes(Mistake::ReplaysOtherRecords) { slice(decided.first, decided.first + 9) } else { decided.clone() };
            self.monitor.observe(&Event::Replay { decided, found: &found })?;
        }
        let replacement = Replacement { lost: lost.transaction.label, handle: prepared(transaction, lost.slices) };
        self.monitor.observe(&Event::Replaced { lost: &replacement.lost, replacement: &replacement.handle.transaction.label })?;
        let replacement = durable(replacement);
        host.state.apply_replacement(&replacement).unwrap();
        self.ledger.replacements.push(replacement.into_inner());
        Ok(true)
    }

    fn sweep(&mut self, host: &mut Host) -> Result<bool, Violation> {
        for debt in std::mem::take(&mut host.debts) {
            let then = durable(PipelineFacts { debts: vec![debt.clone()], generation: host.generation, ..self.ledger.clone() });
            for permit in then.sweep(&debt).unwrap() {
                self.abort(permit.transaction())?;
            }
            let lives = self.hosts.iter().flatten().any(|other| other.generation == debt.generation);
            if self.is_current(host) && (!lives || self.makes(Mistake::PaysWhileTheOldHostLives)) {
                self.ledger.debts.retain(|owed| owed.generation != debt.generation);
                self.monitor.observe(&Event::DebtPaid(debt.generation))?;
            } else {
                host.debts.push(debt);
            }
        }
        Ok(true)
    }

    /// A host that lost its place aborts nothing any more; one whose decision may be made does not either.
    fn fail(&mut self, host: &Host) -> Step {
        if self.is_current(host) && host.unknown.is_none() {
            for transaction in host.open.values() {
                self.abort(transaction)?;
            }
        }
        Ok(())
    }

    fn step_down(&mut self, host: &Host) -> Result<bool, Violation> {
        if self.is_current(host) && host.open.is_empty() && host.unknown.is_none() {
            self.ledger.undecided_may_exist = false;
            return Ok(false);
        }
        Ok(true)
    }

    /// Everybody is gone; one more host settles everything.
    fn settle(&mut self) -> Step {
        self.hosts = [None, None];
        self.start(0)?;
        self.act(0, Act::Sweep)?;
        while self.hosts[0].as_ref().is_some_and(|host| host.state.epoch_to_commit().is_some()) {
            self.act(0, Act::Commit)?;
        }
        self.act(0, Act::StepDown)?;
        self.monitor.finish()?;
        let state = PipelineState::from_facts(&self.ledger).unwrap();
        assert_eq!((state.unconfirmed().count(), self.ledger.debts.len()), (0, 0));
        let to = self.ledger.head.epoch.0 * 10;
        assert!(to == 0 || state.positions() == &[(split("s"), position(to))].into(), "every epoch has ten records");
        Ok(())
    }
}

fn acts() -> impl Strategy<Value = Vec<(usize, Act)>> {
    let which = || 0..SINKS.len();
    let answer = prop_oneof![6 => Just(Answer::Arrives), 1 => Just(Answer::LostAfter), 1 => Just(Answer::LostBefore)];
    let act = prop_oneof![
        2 => Just(Act::Start),
        1 => Just(Act::Crash),
        30 => which().prop_map(Act::Begin),
        3 => which().prop_map(Act::Retry),
        20 => answer.prop_map(Act::Decide),
        20 => Just(Act::Commit),
        3 => Just(Act::Repair),
        4 => Just(Act::Sweep),
        1 => Just(Act::Fail),
        1 => Just(Act::StepDown),
    ];
    // The first host does more, so that the other is a stranger rather than a twin.
    proptest::collection::vec((prop_oneof![3 => Just(0_usize), 1 => Just(1)], act), 1..200)
}

/// Plays a history to its end.
fn play(acts: &[(usize, Act)], mistake: Option<Mistake>) -> Result<u32, Violation> {
    let mut world = World::new(mistake);
    world.start(0)?;
    for (at, act) in acts {
        world.act(*at, *act)?;
    }
    world.settle()?;
    Ok(world.decided)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn the_monitor_accepts_every_history_of_two_correct_hosts(acts in acts()) {
        prop_assert!(play(&acts, None).is_ok(), "{:?}", play(&acts, None));
    }
}

/// Shows too that the histories are long enough to find something.
#[test]
fn every_mistake_is_found_as_the_invariant_that_it_breaks() {
    let table: &[(Mistake, &[&str])] = &[
        (Mistake::AbortsWhatIsUnknown, &["EO-2"]),
        (Mistake::CommitsBeforeTheDecisionIsMade, &["EO-1"]),
        (Mistake::PaysWhileTheOldHostLives, &["EO-7"]),
        (Mistake::SkipsTheDebt, &["EO-7"]),
        (Mistake::RetriesUnderTheSameLabel, &["EO-5"]),
        (Mistake::DoesNotRecordTries, &["EO-7"]),
        (Mistake::RewindsTooFar, &["EO-6"]),
        // What it forgets was begun too, and a sweep after the decision does not look back at it.
        (Mistake::ForgetsASink, &["EO-6", "EO-7"]),
        (Mistake::ForgetsThePosition, &["EO-3"]),
        (Mistake::DecidesUnderAnOldGeneration, &["EO-4"]),
        (Mistake::ReplaysOtherRecords, &["EO-8"]),
    ];
    let mut runner = TestRunner::deterministic();
    let histories: Vec<_> = (0..600).map(|_| acts().new_tree(&mut runner).unwrap().current()).collect();
    let decided: u32 = histories.iter().map(|acts| play(acts, None).unwrap()).sum();
    assert!(decided > 1000, "{decided} decisions in all histories");
    for (mistake, invariants) in table {
        let found: Vec<_> =
            histories.iter().filter_map(|acts| play(acts, Some(*mistake)).err()).map(|violation| violation.invariant).collect();
        assert!(found.contains(&invariants[0]), "{mistake:?} is not found");
        assert!(found.iter().all(|found| invariants.contains(found)), "{mistake:?}: {found:?}");
    }
}
