//! Each invariant broken on purpose, and seen by the monitor. Every row begins with what a correct run does, which the monitor accepts.

use super::*;
use crate::invariants::{EPOCHS_REMEMBERED, Event, Monitor, Violation};

/// A monitor and the facts it watches, fed as a host would.
struct Run {
    monitor: Monitor,
    facts: PipelineFacts,
}

impl Run {
    /// Generation 1 of a pipeline with two sinks.
    fn new() -> Self {
        let mut monitor = Monitor::default();
        monitor.observe(&Event::GenerationRaised(Generation(1))).unwrap();
        Self { monitor, facts: no_facts(&["a", "b"]) }
    }

    fn ok(&mut self, event: &Event<'_>) {
        if let Err(violation) = self.monitor.observe(event) {
            panic!("{event:?}: {violation}");
        }
    }

    /// The invariant that an event breaks.
    fn breaks(&mut self, event: &Event<'_>) -> String {
        match self.monitor.clone().observe(event) {
            Err(Violation { invariant, .. }) => invariant.to_owned(),
            Ok(()) => panic!("{event:?} breaks nothing"),
        }
    }

    fn begin(&mut self, name: &str, epoch: u64) -> Transaction {
        let generation = self.facts.generation;
        let transaction = transaction(name, generation.0, epoch, 1);
        self.ok(&Event::Begin { transaction: &transaction, generation, attempt: Attempt::FIRST });
        transaction
    }

    /// Begins and prepares the next epoch.
    fn prepare(&mut self) -> Decision {
        let epoch = self.facts.head.epoch.next().0;
        self.begin("a", epoch);
        self.begin("b", epoch);
        decide(&mut self.facts.clone())
    }

    fn decide(&mut self) -> Decision {
        let decision = self.prepare();
        self.ok(&Event::DecisionSent(&decision));
        self.ok(&Event::DecisionMade(&decision));
        decide(&mut self.facts)
    }

    fn commit(&mut self, decision: &Decision) {
        for handle in &decision.handles {
            self.ok(&Event::Commit(&handle.transaction.label));
            self.ok(&Event::Confirmed(&handle.transaction.label));
        }
        confirm(&mut self.facts, decision);
    }

    /// Another host takes over.
    fn take_over(&mut self) {
        let old = self.facts.generation;
        self.ok(&Event::DebtOwed(old));
        self.ok(&Event::GenerationRaised(old.next()));
        let debt = SweepDebt { generation: old, base: self.facts.head.epoch, manifest: self.facts.manifest.clone(), attempts: vec![] };
        self.facts.debts.push(debt);
        self.facts.generation = old.next();
    }
}

fn label(decision: &Decision) -> &Label {
    &decision.handles[0].transaction.label
}

#[test]
fn a_correct_run_breaks_nothing() {
    let mut run = Run::new();
    for _ in 0..3 {
        let decision = run.decide();
        run.commit(&decision);
    }
    run.monitor.finish().unwrap();
    // The next epoch is cut off, another host takes over and sweeps.
    let undecided = run.begin("a", 4);
    run.take_over();
    run.ok(&Event::Abort(&undecided.label));
    run.ok(&Event::Aborted(&undecided.label));
    run.ok(&Event::DebtPaid(Generation(1)));
    let decision = run.decide();
    run.commit(&decision);
    run.monitor.finish().unwrap();
}

#[test]
fn eo_1_a_commit_or_a_confirmation_without_a_decision() {
    let mut run = Run::new();
    let draft = run.prepare();
    assert_eq!(run.breaks(&Event::Commit(label(&draft))), "EO-1");
    run.ok(&Event::DecisionSent(&draft));
    assert_eq!(run.breaks(&Event::Commit(label(&draft))), "EO-1", "sent is not made");
    assert_eq!(run.breaks(&Event::Confirmed(label(&draft))), "EO-1");
    run.ok(&Event::DecisionRefused(&draft));
    assert_eq!(run.breaks(&Event::Commit(label(&draft))), "EO-1");
}

#[test]
fn eo_1_a_replacement_of_what_is_not_decided_and_a_confirmation_of_what_was_replaced() {
    let mut run = Run::new();
    let decision = run.decide();
    let repair = transaction("a", 1, 1, 2);
    run.ok(&Event::AttemptRecorded(&repair));
    run.ok(&Event::Begin { transaction: &repair, generation: Generation(1), attempt: Attempt(2) });
    let other = transaction("a", 1, 9, 1).label;
    assert_eq!(run.breaks(&Event::Replaced { lost: &other, replacement: &repair.label }), "EO-1");
    run.ok(&Event::Replaced { lost: label(&decision), replacement: &repair.label });
    assert_eq!(run.breaks(&Event::Replaced { lost: label(&decision), replacement: &repair.label }), "EO-1");
    run.ok(&Event::Commit(label(&decision)));
    assert_eq!(run.breaks(&Event::Confirmed(label(&decision))), "EO-1", "what was lost cannot be visible");
    assert_eq!(run.breaks(&Event::Abort(label(&decision))), "EO-2");
    run.ok(&Event::Commit(&repair.label));
    run.ok(&Event::Confirmed(&repair.label));
    assert_eq!(run.breaks(&Event::Replaced { lost: &repair.label, replacement: &other }), "EO-1", "what is visible is not lost");
}

#[test]
fn eo_2_an_abort_of_what_is_decided_or_may_be() {
    let mut run = Run::new();
    let draft = run.prepare();
    run.ok(&Event::DecisionSent(&draft));
    run.ok(&Event::DecisionSent(&draft));
    assert_eq!(run.breaks(&Event::Abort(label(&draft))), "EO-2", "its outcome is unknown");
    run.ok(&Event::DecisionMade(&draft));
    assert_eq!(run.breaks(&Event::Abort(label(&draft))), "EO-2", "it is decided");
    for handle in &draft.handles {
        run.ok(&Event::Confirmed(&handle.transaction.label));
    }
    assert_eq!(run.breaks(&Event::Abort(label(&draft))), "EO-2", "it is visible");
    let mut refused = Run::new();
    let draft = refused.prepare();
    refused.ok(&Event::DecisionSent(&draft));
    refused.ok(&Event::DecisionRefused(&draft));
    refused.ok(&Event::Abort(label(&draft)));
}

#[test]
fn eo_2_a_decision_that_names_what_was_aborted_or_never_begun() {
    let mut run = Run::new();
    let draft = run.prepare();
    let mut aborting = Run { monitor: run.monitor.clone(), facts: run.facts.clone() };
    aborting.ok(&Event::Abort(label(&draft)));
    assert_eq!(aborting.breaks(&Event::DecisionSent(&draft)), "EO-2", "the abort may have reached the target");
    aborting.ok(&Event::Aborted(label(&draft)));
    assert_eq!(aborting.breaks(&Event::DecisionSent(&draft)), "EO-2");
    let never = decide(&mut PipelineFacts { generation: Generation(1), ..no_facts(&["a"]) });
    assert_eq!(Run::new().breaks(&Event::DecisionSent(&never)), "EO-2");
    let made = run.decide_after(&draft);
    let repair = transaction("a", 1, 1, 2);
    assert_eq!(run.breaks(&Event::Replaced { lost: label(&made), replacement: &repair.label }), "EO-2", "the stand-in was never begun");
}

impl Run {
    fn decide_after(&mut self, draft: &Decision) -> Decision {
        self.ok(&Event::DecisionSent(draft));
        self.ok(&Event::DecisionMade(draft));
        decide(&mut self.facts)
    }
}

#[test]
fn eo_3_records_without_their_position() {
    let mut run = Run::new();
    let mut draft = run.prepare();
    draft.positions = [(split("s"), position(9))].into();
    assert_eq!(run.breaks(&Event::DecisionSent(&draft)), "EO-3");
    draft.positions.clear();
    assert_eq!(run.breaks(&Event::DecisionMade(&draft)), "EO-3");
}

#[test]
fn eo_4_a_decision_beside_the_chain_or_of_an_older_generation() {
    let mut run = Run::new();
    let first = run.decide();
    let draft = run.prepare();
    let mut other_base = draft.clone();
    other_base.base_hash = Hash::of(b"another");
    assert_eq!(run.breaks(&Event::DecisionMade(&other_base)), "EO-4");
    assert_eq!(run.breaks(&Event::DecisionMade(&first)), "EO-4", "it is decided a second time");
    let mut gap = draft.clone();
    gap.epoch = Epoch(3);
    assert_eq!(run.breaks(&Event::DecisionMade(&gap)), "EO-4");
    run.take_over();
    assert_eq!(run.breaks(&Event::DecisionMade(&draft)), "EO-4", "the generation is over");
    assert_eq!(run.breaks(&Event::GenerationRaised(Generation(2))), "EO-4");
}

#[test]
fn eo_5_a_label_used_again() {
    let mut run = Run::new();
    let generation = Generation(1);
    let again = |transaction| Event::Begin { transaction, generation, attempt: Attempt::FIRST };
    let first = run.begin("a", 1);
    assert_eq!(run.breaks(&again(&first)), "EO-5", "it is open");
    run.ok(&Event::Abort(&first.label));
    run.ok(&Event::Aborted(&first.label));
    assert_eq!(run.breaks(&again(&first)), "EO-5", "it was aborted");
    let mut run = Run::new();
    let decision = run.decide();
    let first = &decision.handles[0].transaction;
    assert_eq!(run.breaks(&again(first)), "EO-5", "it is decided");
    run.commit(&decision);
    assert_eq!(run.breaks(&again(first)), "EO-5", "it is visible");
    for _ in 0..EPOCHS_REMEMBERED + 1 {
        let decision = run.decide();
        run.commit(&decision);
    }
    assert_eq!(run.breaks(&again(first)), "EO-5", "its epoch is long over");
}

#[test]
fn eo_5_holds_for_tries_out_of_order() {
    let mut run = Run::new();
    run.decide();
    run.begin("a", 2);
    let generation = Generation(1);
    // A repair of the epoch before begins after the next epoch's first try, with a label of its own.
    let repair = transaction("a", 1, 1, 3);
    run.ok(&Event::AttemptRecorded(&repair));
    run.ok(&Event::Begin { transaction: &repair, generation, attempt: Attempt(3) });
    let earlier = transaction("a", 1, 1, 2);
    run.ok(&Event::AttemptRecorded(&earlier));
    assert_eq!(run.breaks(&Event::Begin { transaction: &earlier, generation, attempt: Attempt(2) }), "EO-5");
}

#[test]
fn eo_6_records_skipped_repeated_or_not_given_to_every_sink() {
    type Break = fn(&mut Decision);
    let table: &[(&str, Break)] = &[
        ("a record is skipped between slices", |decision| decision.handles[0].slices = vec![slice(10, 12), slice(13, 20)]),
        ("a record is repeated within an epoch", |decision| decision.handles[0].slices = vec![slice(10, 12), slice(11, 20)]),
        ("a record is skipped between epochs", |decision| {
            decision.handles.iter_mut().for_each(|handle| handle.slices = vec![slice(11, 20)]);
        }),
        ("a record is repeated between epochs", |decision| {
            decision.handles.iter_mut().for_each(|handle| handle.slices = vec![slice(9, 20)]);
        }),
        ("one sink gets more", |decision| {
            decision.positions = [(split("s"), position(21))].into();
            decision.handles[0].slices = vec![slice(10, 21)];
            decision.handles[1].slices.push(slice(20, 21));
            decision.handles[1].slices[0].records -= 1;
        }),
        ("one sink gets nothing", |decision| drop(decision.handles.pop())),
        ("one lane's records are in two transactions", |decision| decision.handles.push(decision.handles[0].clone())),
    ];
    for (situation, break_it) in table {
        let mut run = Run::new();
        run.decide();
        let mut draft = run.prepare();
        break_it(&mut draft);
        assert_eq!(run.breaks(&Event::DecisionSent(&draft)), "EO-6", "{situation}");
        assert_eq!(run.breaks(&Event::DecisionMade(&draft)), "EO-6", "{situation}");
    }
}

#[test]
fn eo_6_another_generation_may_run_other_sinks() {
    let mut run = Run::new();
    let decision = run.decide();
    run.commit(&decision);
    run.take_over();
    run.ok(&Event::DebtPaid(Generation(1)));
    run.facts.manifest = manifest(&["a"]);
    let decision = decide(&mut run.facts.clone());
    run.begin("a", 2);
    run.decide_after(&decision);
}

#[test]
fn eo_7_what_nobody_answers_for() {
    let mut run = Run::new();
    let generation = Generation(1);
    run.begin("a", 1);
    assert_eq!(run.monitor.finish().unwrap_err().invariant, "EO-7", "it is neither committed nor aborted nor owed");
    assert_eq!(run.breaks(&Event::GenerationRaised(Generation(2))), "EO-7", "the debt is forgotten");
    let far = transaction("a", 1, 3, 1);
    assert_eq!(
        run.breaks(&Event::Begin { transaction: &far, generation, attempt: Attempt::FIRST }),
        "EO-7",
        "a sweep looks two epochs ahead"
    );
    let retry = transaction("a", 1, 1, 2);
    assert_eq!(run.breaks(&Event::Begin { transaction: &retry, generation, attempt: Attempt(2) }), "EO-7", "it is not recorded");
    run.take_over();
    run.monitor.finish().unwrap();
    assert_eq!(run.breaks(&Event::DebtPaid(generation)), "EO-7", "it was never aborted");
    let zombie = transaction("b", 1, 1, 1);
    run.ok(&Event::Begin { transaction: &zombie, generation, attempt: Attempt::FIRST });
    assert_eq!(run.breaks(&Event::DebtPaid(generation)), "EO-7");
    for name in ["a", "b"] {
        run.ok(&Event::Aborted(&transaction(name, 1, 1, 1).label));
    }
    run.ok(&Event::DebtPaid(generation));
    let late = transaction("b", 1, 2, 1);
    assert_eq!(run.breaks(&Event::Begin { transaction: &late, generation, attempt: Attempt::FIRST }), "EO-7", "the debt is paid");
    run.monitor.finish().unwrap();
}

#[test]
fn eo_8_a_replay_that_reads_something_else() {
    let decided = slice(0, 10);
    let mut run = Run::new();
    run.ok(&Event::Replay { decided: &decided, found: &decided });
    for found in [
        Slice { bytes: 81, ..decided.clone() },
        Slice { records: 11, ..decided.clone() },
        Slice { tail: Hash::of(b"other"), ..decided.clone() },
        Slice { to: position(11), ..decided.clone() },
    ] {
        assert_eq!(run.breaks(&Event::Replay { decided: &decided, found: &found }), "EO-8");
    }
}

#[test]
fn a_monitor_from_facts_knows_what_is_decided_owed_and_due() {
    let mut run = Run::new();
    let first = run.decide();
    run.commit(&first);
    let second = run.decide();
    let repair = transaction("a", 1, 2, 2);
    let replacement = Replacement { lost: label(&second).clone(), handle: prepared(repair.clone(), vec![slice(10, 20)]) };
    run.take_over();
    run.facts.replacements.push(replacement);
    let mut run = Run { monitor: Monitor::from_facts(&run.facts), facts: run.facts };
    run.ok(&Event::Commit(&repair.label));
    run.ok(&Event::Commit(label(&first)));
    assert_eq!(run.breaks(&Event::Confirmed(label(&second))), "EO-1");
    assert_eq!(run.breaks(&Event::Abort(label(&first))), "EO-2");
    let sweep = transaction("a", 1, 3, 1);
    run.ok(&Event::Abort(&sweep.label));
    run.ok(&Event::DebtPaid(Generation(1)));
    let mut skipping = run.prepare();
    for handle in &mut skipping.handles {
        handle.slices = vec![slice(21, 30)];
    }
    assert_eq!(run.breaks(&Event::DecisionSent(&skipping)), "EO-6");
}
