//! Facts to state: what a start finds, and facts that contradict each other.

use super::*;

#[test]
fn a_new_pipeline_starts_from_nothing() {
    let state = PipelineState::from_facts(&no_facts(&["a"])).unwrap();
    assert_eq!((state.head(), state.positions().len(), state.unconfirmed().count(), state.epoch_to_commit()), (Head::GENESIS, 0, 0, None));
}

#[test]
fn decided_and_unconfirmed_handles_are_to_be_committed_oldest_epoch_first() {
    let mut facts = no_facts(&["a", "b"]);
    let decisions: Vec<_> = (0..3).map(|_| decide(&mut facts)).collect();
    confirm(&mut facts, &decisions[0]);
    facts.confirmations.push(confirmation(&decisions[1].handles[1]));
    let (state, permits) = durable(facts).recover().unwrap();
    assert_eq!(state.epoch_to_commit(), Some(Epoch(2)));
    let left: Vec<_> =
        permits.iter().map(|(epoch, permits)| (epoch.0, permits.iter().map(|one| one.transaction().clone()).collect())).collect();
    let both = vec![transaction("a", 1, 3, 1), transaction("b", 1, 3, 1)];
    let sorted = |mut all: Vec<Transaction>| {
        all.sort_by(|one, other| one.label.cmp(&other.label));
        all
    };
    assert_eq!(left, [(2, vec![transaction("a", 1, 2, 1)]), (3, sorted(both))]);
    let permit = &permits[&Epoch(2)][0];
    assert_eq!((permit.format(), permit.handle()), ("v1", transaction("a", 1, 2, 1).label.as_str().as_bytes()));
}

#[test]
fn applying_what_was_written_is_reading_it_back() {
    let mut facts = no_facts(&["a", "b"]);
    let mut state = PipelineState::from_facts(&facts).unwrap();
    for round in 0..70 {
        let decision = durable(decide(&mut facts));
        state.apply_decision(&decision).unwrap();
        if round == 30 {
            let lost = decision.get().handles[0].transaction.label.clone();
            let handle = prepared(transaction("a", 1, decision.get().epoch.0, 2), decision.get().handles[0].slices.clone());
            let replacement = durable(Replacement { lost, handle });
            assert_eq!(replacement.permit().transaction(), &replacement.get().handle.transaction);
            state.apply_replacement(&replacement).unwrap();
            facts.replacements.push(replacement.into_inner());
        } else if round % 3 == 0 {
            confirm(&mut facts, decision.get());
            for handle in &decision.get().handles {
                state.apply_confirmation(&confirmation(handle)).unwrap();
            }
        }
        assert_eq!(PipelineState::from_facts(&facts).unwrap(), state, "round {round}");
    }
    // What is older than the newest snapshot and confirmed is pruned, and nothing changes.
    let needed =
        |decision: &Decision| decision.epoch >= Epoch(65) || state.unconfirmed().any(|handle| handle.transaction.epoch == decision.epoch);
    facts.decisions.retain(needed);
    let kept: Vec<_> = facts.decisions.iter().map(|decision| decision.epoch).collect();
    facts.confirmations.retain(|confirmation| kept.contains(&confirmation.epoch));
    assert!(facts.decisions.len() < 60);
    assert_eq!(PipelineState::from_facts(&facts).unwrap(), state);
}

#[test]
fn at_most_two_epochs_are_in_flight() {
    let mut facts = no_facts(&["a"]);
    let state = |facts: &PipelineFacts| PipelineState::from_facts(facts).unwrap();
    let may = |facts: &PipelineFacts| [0, 1, 2].map(|undecided| state(facts).may_begin(undecided));
    assert_eq!(may(&facts), [true, true, false]);
    let first = decide(&mut facts);
    assert_eq!(may(&facts), [true, false, false]);
    decide(&mut facts);
    assert_eq!(may(&facts), [false, false, false]);
    confirm(&mut facts, &first);
    assert_eq!(may(&facts), [true, false, false]);
}

#[test]
fn facts_that_contradict_each_other_are_refused() {
    type Break = fn(&mut PipelineFacts);
    let table: &[(&str, Break, &str)] = &[
        ("a decision was edited", |facts| facts.decisions[1].positions.clear(), "EO-4"),
        ("the newest decision was edited", |facts| facts.decisions[2].handles.clear(), "EO-4"),
        ("the newest decision is missing", |facts| drop(facts.decisions.pop()), "EO-4"),
        ("all decisions are missing", |facts| facts.decisions.clear(), "EO-4"),
        ("the head is another", |facts| facts.head.epoch = Epoch(7), "EO-4"),
        ("a decision in the middle is missing", |facts| drop(facts.decisions.remove(1)), "out of turn"),
        ("the snapshot is missing", |facts| drop(facts.decisions.remove(0)), "no snapshot"),
        ("decisions are in the wrong order", |facts| facts.decisions.swap(0, 1), "out of turn"),
        ("a confirmation names nothing", |facts| facts.confirmations[0].label = transaction("a", 9, 1, 1).label, "EO-1"),
        ("a confirmation is of another epoch", |facts| facts.confirmations[0].epoch = Epoch(2), "EO-1"),
        ("a handle is confirmed twice", |facts| facts.confirmations.push(facts.confirmations[0].clone()), "EO-1"),
        ("a replacement stands in for nothing", |facts| facts.replacements[0].lost = transaction("a", 9, 2, 1).label, "EO-1"),
        ("a handle is replaced twice", |facts| facts.replacements.push(facts.replacements[0].clone()), "EO-1"),
        ("a lost handle is confirmed", |facts| facts.confirmations.push(confirmation(&facts.decisions[1].handles[0])), "EO-1"),
    ];
    for (situation, break_it, expected) in table {
        let mut facts = no_facts(&["a"]);
        let first = decide(&mut facts);
        let second = decide(&mut facts);
        decide(&mut facts);
        confirm(&mut facts, &first);
        let handle = prepared(transaction("a", 1, 2, 2), second.handles[0].slices.clone());
        facts.replacements.push(Replacement { lost: second.handles[0].transaction.label.clone(), handle });
        PipelineState::from_facts(&facts).unwrap();
        break_it(&mut facts);
        let found = words(PipelineState::from_facts(&facts));
        assert!(found.contains(expected), "{situation}: {found}");
    }
}

#[test]
fn a_decision_on_another_base_does_not_apply() {
    let mut facts = no_facts(&["a"]);
    let mut state = PipelineState::from_facts(&facts).unwrap();
    let first = durable(decide(&mut facts));
    let mut rival = first.get().clone();
    rival.handles.clear();
    state.apply_decision(&first).unwrap();
    assert!(words(state.apply_decision(&first)).contains("EO-4"));
    let mut next = decide(&mut facts);
    next.base_hash = rival.head().unwrap().hash;
    assert!(words(state.apply_decision(&durable(next))).contains("EO-4"));
}
