//! From lanes at the barrier to a decision, and everything that a barrier refuses.

use super::*;

#[test]
fn a_decision_names_every_handle_and_extends_the_head() {
    let mut facts = no_facts(&["a", "b"]);
    let first = decide(&mut facts);
    assert_eq!((first.epoch, first.base, first.base_hash, first.snapshot), (Epoch(1), Epoch::GENESIS, Hash::GENESIS, true));
    let second = decide(&mut facts);
    assert_eq!((second.epoch, second.base, second.base_hash), (Epoch(2), Epoch(1), first.head().unwrap().hash));
    assert_eq!(second.handles.iter().map(|handle| handle.transaction.sink.to_string()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(second.positions, [(split("s"), position(20))].into());
}

#[test]
fn nothing_moved_is_no_decision_and_moved_positions_are_one_without_handles() {
    let mut facts = no_facts(&["a"]);
    assert_eq!(seal(&facts, LaneEpoch::default()).unwrap(), None);
    decide(&mut facts);
    let stay = LaneEpoch { positions: [(split("s"), position(10))].into(), ..LaneEpoch::default() };
    assert_eq!(seal(&facts, stay).unwrap(), None);
    let moved = LaneEpoch { positions: [(split("empty"), position(0))].into(), ..LaneEpoch::default() };
    let decision = seal(&facts, moved).unwrap().unwrap();
    assert_eq!((decision.epoch, decision.handles.len(), decision.positions.len()), (Epoch(2), 0, 1));
}

#[test]
fn a_snapshot_lists_every_position_and_comes_in_time() {
    let mut facts = no_facts(&["a"]);
    let other = LaneEpoch { positions: [(split("other"), position(7))].into(), ..LaneEpoch::default() };
    let first = seal(&facts, other).unwrap().unwrap();
    facts.head = first.head().unwrap();
    facts.decisions.push(first);
    let mut snapshots = vec![1];
    for epoch in 2..=200 {
        let part = lane(&["a"], 1, epoch, (epoch - 2) * 10, (epoch - 1) * 10);
        let decision = seal(&facts, part).unwrap().unwrap();
        if decision.snapshot {
            snapshots.push(epoch);
            assert_eq!(decision.positions, [(split("other"), position(7)), (split("s"), position((epoch - 1) * 10))].into());
        } else {
            assert_eq!(decision.positions.len(), 1);
        }
        facts.head = decision.head().unwrap();
        facts.decisions.push(decision);
    }
    assert_eq!(snapshots, [1, 65, 129, 193]);
}

#[test]
fn what_a_barrier_refuses() {
    type Break = fn(&mut LaneEpoch);
    fn a(part: &mut LaneEpoch) -> &mut PreparedHandle {
        part.prepared.get_mut(&sink("a")).unwrap()
    }
    fn reject(part: &mut LaneEpoch, records: &[u64]) {
        a(part).rejected =
            records.iter().map(|record| RejectedRecord { split: split("s"), record: *record, reason: "bad".to_owned() }).collect();
    }
    let table: &[(&str, Break, &str)] = &[
        ("a sink is missing", |part| drop(part.prepared.remove(&sink("b"))), "prepared nothing"),
        ("a slice is missing", |part| a(part).slices.clear(), "not those that were read"),
        ("a slice is another", |part| a(part).slices[0].records = 9, "not those that were read"),
        ("fewer records are held", |part| a(part).held = Some(9), "holds 9 records, but 10 were sent and 0 rejected"),
        ("more records are held", |part| a(part).held = Some(11), "holds 11 records"),
        ("a rejected one is held all the same", |part| reject(part, &[3]), "10 were sent and 1 rejected"),
        ("one is rejected twice", |part| reject(part, &[3, 3]), "rejected a record twice"),
        ("one is rejected that was not sent", |part| reject(part, &[10]), "or one that it never got"),
        (
            "a sink is unknown",
            |part| drop(part.prepared.insert(sink("c"), prepared(transaction("c", 1, 1, 1), vec![slice(0, 10)]))),
            "not due",
        ),
        ("the epoch is another", |part| a(part).transaction.epoch = Epoch(2), "not due"),
        ("the lane is another", |part| a(part).transaction.lane = Lane(1), "not due"),
        ("the sink is another", |part| a(part).transaction.sink = sink("b"), "not due"),
        ("the handle is too large", |part| a(part).handle = vec![0; MAX_HANDLE_BYTES + 1], "65537 bytes; at most 65536"),
        ("a position is missing", |part| part.positions.clear(), "EO-3"),
        ("a position is another", |part| part.positions = [(split("s"), position(9))].into(), "EO-3"),
    ];
    for (situation, break_it, expected) in table {
        let mut part = lane(&["a", "b"], 1, 1, 0, 10);
        break_it(&mut part);
        let found = words(seal(&no_facts(&["a", "b"]), part));
        assert!(found.contains(expected), "{situation}: {found}");
    }
}

#[test]
fn rejected_records_are_not_held_and_a_target_need_not_count() {
    let mut part = lane(&["a", "b"], 1, 1, 0, 10);
    let rejected = vec![RejectedRecord { split: split("s"), record: 3, reason: "bad".to_owned() }];
    for (name, held) in [("a", Some(9)), ("b", None)] {
        let handle = part.prepared.get_mut(&sink(name)).unwrap();
        (handle.held, handle.rejected) = (held, rejected.clone());
    }
    assert_eq!(seal(&no_facts(&["a", "b"]), part).unwrap().unwrap().handles[0].rejected, rejected);
}

#[test]
fn lanes_are_those_of_the_manifest_and_any_of_them_may_have_read_nothing() {
    let facts = PipelineFacts { manifest: Manifest { lanes: 2, ..manifest(&["a"]) }, ..no_facts(&["a"]) };
    let state = PipelineState::from_facts(&facts).unwrap();
    let draft = |number| {
        let lanes =
            [(Lane(number), LaneEpoch { prepared: Default::default(), read: vec![], positions: [(split("s"), position(1))].into() })]
                .into();
        EpochDraft { pipeline: &facts.pipeline, generation: facts.generation, manifest: &facts.manifest, state: &state, lanes }.seal()
    };
    assert!(draft(1).unwrap().is_some());
    assert!(words(draft(2)).contains("there is no lane 2, the manifest has 2"));
}

#[test]
fn a_decision_reads_back_from_its_canonical_bytes() {
    let mut facts = no_facts(&["a", "b"]);
    let decision = decide(&mut facts);
    let bytes = decision.to_bytes().unwrap();
    let again = Decision::from_bytes(&bytes).unwrap();
    assert_eq!((again.to_bytes().unwrap(), &again), (bytes.clone(), &decision));
    let unknown = String::from_utf8(bytes).unwrap().replacen("\"epoch\"", "\"later\":1,\"epoch\"", 1);
    assert!(words(Decision::from_bytes(unknown.as_bytes())).contains("newer version"));
}

#[test]
fn a_decision_over_its_limit_is_refused() {
    let mut facts = no_facts(&["a"]);
    let mut decision = decide(&mut facts);
    let handle = PreparedHandle { handle: vec![7; MAX_HANDLE_BYTES], ..decision.handles[0].clone() };
    decision.handles = vec![handle; 200];
    assert!(words(decision.to_bytes()).contains("more than the 16777216 allowed"));
}
