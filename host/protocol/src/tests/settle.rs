//! What is owed, and what a start under another config would leave unsettled.

use super::*;
use crate::decide::{Obligation, Owed, Unsettled, unsettled};

/// Generation 3: one handle of each sink unconfirmed, generation 1 in debt, generation 2 stepped down.
fn owing() -> PipelineFacts {
    let mut facts = PipelineFacts { generation: Generation(3), ..no_facts(&["a", "b"]) };
    decide(&mut facts);
    facts.debts.push(SweepDebt { generation: Generation(1), base: Epoch(0), manifest: manifest(&["a", "old"]), attempts: vec![] });
    facts
}

fn commit(name: &str) -> Owed {
    Owed::Commit { sink: sink(name), label: transaction(name, 3, 1, 1).label }
}

fn sweep(name: &str, generation: u64) -> Owed {
    Owed::Sweep { sink: sink(name), generation: Generation(generation) }
}

/// What is unsettled under a manifest, in an order that does not depend on labels.
fn found(facts: &PipelineFacts, wanted: &Manifest) -> Vec<(Owed, Unsettled)> {
    let mut all: Vec<_> = unsettled(facts, wanted).unwrap().into_iter().map(|Obligation { owed, problem }| (owed, problem)).collect();
    all.sort_by_key(|(owed, _)| match owed {
        Owed::Commit { sink, .. } => (0, sink.clone()),
        Owed::Sweep { sink, generation } => (generation.0, sink.clone()),
    });
    all
}

fn moved(name: &str) -> Unsettled {
    Unsettled::TargetMoved { from: format!("file:///{name}"), to: "file:///elsewhere".to_owned() }
}

#[test]
fn the_same_manifest_and_more_settles_everything() {
    let wanted = Manifest { lanes: 4, ..manifest(&["a", "b", "old", "new"]) };
    assert_eq!(found(&owing(), &wanted), []);
}

#[test]
fn each_kind_of_obligation_is_named() {
    let mut gone = manifest(&["b", "old"]);
    assert_eq!(
        found(&owing(), &gone),
        [(commit("a"), Unsettled::SinkGone), (sweep("a", 1), Unsettled::SinkGone), (sweep("a", 3), Unsettled::SinkGone)]
    );
    gone = manifest(&["a", "b"]);
    assert_eq!(found(&owing(), &gone), [(sweep("old", 1), Unsettled::SinkGone)]);

    let mut elsewhere = manifest(&["a", "b", "old"]);
    elsewhere.sinks[0].target = "file:///elsewhere".to_owned();
    assert_eq!(found(&owing(), &elsewhere), [(commit("a"), moved("a")), (sweep("a", 1), moved("a")), (sweep("a", 3), moved("a"))]);

    let mut format = manifest(&["a", "b", "old"]);
    format.sinks[1].handle_formats = vec!["v2".to_owned()];
    assert_eq!(found(&owing(), &format), [(commit("b"), Unsettled::FormatUnknown { format: "v1".to_owned() })]);
    format.sinks[1].handle_formats.push("v1".to_owned());
    assert_eq!(found(&owing(), &format), []);

    let source = Manifest { source: "other/*".to_owned(), ..manifest(&["a", "b", "old"]) };
    let problem = Unsettled::SourceMoved { from: "data/*".to_owned(), to: "other/*".to_owned() };
    assert_eq!(found(&owing(), &source), [(commit("a"), problem.clone()), (commit("b"), problem)]);
}

#[test]
fn what_is_settled_holds_nothing_back() {
    let mut facts = owing();
    let decision = facts.decisions[0].clone();
    confirm(&mut facts, &decision);
    facts.debts.clear();
    assert_eq!(found(&facts, &manifest(&["new"])).len(), 2, "the running generation may have left something");
    facts.undecided_may_exist = false;
    assert_eq!(found(&facts, &manifest(&["new"])), []);
}

#[test]
fn a_replacement_is_owed_instead_of_what_was_lost() {
    let mut facts = owing();
    let lost = facts.decisions[0].handles[0].clone();
    let handle = prepared(transaction("a", 3, 1, 2), lost.slices);
    let label = handle.transaction.label.clone();
    facts.replacements.push(Replacement { lost: lost.transaction.label, handle });
    let wanted = manifest(&["b", "old"]);
    assert_eq!(found(&facts, &wanted)[0], (Owed::Commit { sink: sink("a"), label }, Unsettled::SinkGone));
}

#[test]
fn a_sweep_covers_two_epochs_of_every_lane_and_every_recorded_try() {
    let mut facts = owing();
    facts.debts[0].manifest.lanes = 2;
    let recorded = |epoch, attempt| AttemptRecord { sink: sink("a"), lane: Lane(1), epoch: Epoch(epoch), attempt: Attempt(attempt) };
    facts.debts[0].base = Epoch(5);
    // A repair of a decided epoch, and a second try of an undecided one.
    facts.debts[0].attempts = vec![recorded(4, 2), recorded(6, 2)];
    let facts = durable(facts);
    let debt = facts.get().debts[0].clone();
    let swept: Vec<_> = facts.sweep(&debt).unwrap().iter().map(|permit| permit.transaction().clone()).collect();
    let mut expected = Vec::new();
    for name in ["a", "old"] {
        for epoch in [6, 7] {
            for lane in [0, 1] {
                expected.push(labels().transaction(&sink(name), Generation(1), Epoch(epoch), Lane(lane), Attempt(1)).unwrap());
            }
        }
    }
    expected.extend([4, 6].map(|epoch| labels().transaction(&sink("a"), Generation(1), Epoch(epoch), Lane(1), Attempt(2)).unwrap()));
    assert_eq!(swept, expected);
}

#[test]
fn only_what_is_owed_is_swept() {
    let facts = durable(owing());
    let debt = &facts.get().debts[0];
    for (situation, wrong) in [
        ("another generation", SweepDebt { generation: Generation(2), ..debt.clone() }),
        ("another base", SweepDebt { base: Epoch(1), ..debt.clone() }),
        ("another manifest", SweepDebt { manifest: manifest(&["a"]), ..debt.clone() }),
    ] {
        assert!(words(facts.sweep(&wrong)).contains("owes no sweep"), "{situation}");
    }
    let own = SweepDebt { generation: Generation(3), ..debt.clone() };
    let running = durable(PipelineFacts { debts: vec![own.clone()], ..facts.get().clone() });
    assert!(words(running.sweep(&own)).contains("owes no sweep"), "the running generation's transactions are not leftovers");
}

#[test]
fn a_debt_settles_when_its_slowest_sink_has() {
    let mut debt = owing().debts[0].clone();
    assert_eq!(debt.settle_ms(), 0);
    (debt.manifest.sinks[0].settle_ms, debt.manifest.sinks[1].settle_ms) = (10, 30);
    assert_eq!(debt.settle_ms(), 30);
}
