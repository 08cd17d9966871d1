//! Two committers and a reader in one folder at once, in every order of their steps.

use std::thread;

use super::memory::{Memory, Turns};
use super::*;
use crate::settle::Verdict;

const FIRST: usize = 0;
const SECOND: usize = 1;
const READER: usize = 2;

/// All ways to arrange so many steps of two committers, and in each a reader at any place.
fn orders(steps: usize) -> Vec<Vec<usize>> {
    fn arrange(first: usize, second: usize, so_far: &mut Vec<usize>, found: &mut Vec<Vec<usize>>) {
        if first == 0 && second == 0 {
            for place in 0..=so_far.len() {
                let mut order = so_far.clone();
                order.insert(place, READER);
                found.push(order);
            }
            return;
        }
        for (actor, left) in [(FIRST, first), (SECOND, second)] {
            if left > 0 {
                so_far.push(actor);
                arrange(first - usize::from(actor == FIRST), second - usize::from(actor == SECOND), so_far, found);
                so_far.pop();
            }
        }
    }
    let mut found = Vec::new();
    arrange(steps, steps, &mut Vec::new(), &mut found);
    found
}

/// What the reader read, during and after, and the verdicts.
fn race(start: &Memory, handle: &[u8], order: Vec<usize>) -> (Vec<String>, [Verdict; 2]) {
    let folder = start.copy();
    let turns = Turns::new(order);
    let commit = |actor: usize| {
        let mut committer = open(PLAIN, Role::Committer, folder.in_turns(&turns, actor));
        let verdict = committer.commit("l", handle);
        turns.end(actor);
        verdict.unwrap()
    };
    let read = || {
        let turn = turns.take(READER);
        let taken = folder.take_visible();
        drop(turn);
        turns.end(READER);
        taken
    };
    let (mut taken, verdicts) = thread::scope(|scope| {
        let (first, second) = (scope.spawn(|| commit(FIRST)), scope.spawn(|| commit(SECOND)));
        let reader = scope.spawn(read);
        (reader.join().unwrap(), [first.join().unwrap(), second.join().unwrap()])
    });
    assert_eq!(hidden(&folder), [""; 0]);
    taken.extend(folder.take_visible());
    taken.sort();
    (taken, verdicts)
}

#[test]
fn two_committers_and_a_reader_in_any_order_show_one_file_once() {
    let start = Memory::new();
    let prepared = prepare(&mut open(PLAIN, Role::Writer, start.clone()), "l", &["1\n"]).unwrap();
    let alone = start.copy();
    open(PLAIN, Role::Committer, alone.clone()).commit("l", &prepared.handle).unwrap();
    let orders = orders(alone.steps() as usize);
    assert!(orders.len() > 10_000, "{} orders", orders.len());
    for order in orders {
        let (read, verdicts) = race(&start, &prepared.handle, order.clone());
        assert_eq!(read, ["1\n"], "{order:?}");
        let committed = verdicts.iter().filter(|&&verdict| verdict == Verdict::Committed).count();
        assert_eq!(committed, 1, "one of the two did the work: {order:?}");
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 500, failure_persistence: None, ..Default::default() })]

    #[test]
    fn two_committers_and_a_reader_show_every_rolled_file_once(order in proptest::collection::vec(0..3_usize, 60)) {
        let start = Memory::new();
        let prepared = prepare(&mut open(ROLLING, Role::Writer, start.clone()), "l", &["1\n", "2\n", "3\n"]).unwrap();
        let (read, _) = race(&start, &prepared.handle, order);
        proptest::prop_assert_eq!(read, ["1\n", "2\n", "3\n"]);
    }

    #[test]
    fn two_writers_that_make_the_marker_at_once_get_the_same(order in proptest::collection::vec(0..2_usize, 24)) {
        let folder = Memory::new();
        let turns = Turns::new(order);
        let begin = |actor: usize| {
            let label = format!("l-{actor}");
            let mut writer = open(PLAIN, Role::Writer, folder.in_turns(&turns, actor));
            let prepared = writer.begin(&label, [actor as u8; 16]).and_then(|()| writer.precommit(&label));
            turns.end(actor);
            (label, prepared.unwrap())
        };
        let both = thread::scope(|scope| {
            let (first, second) = (scope.spawn(|| begin(FIRST)), scope.spawn(|| begin(SECOND)));
            [first.join().unwrap(), second.join().unwrap()]
        });
        folder.lose_power(|_| 0);
        for (label, prepared) in both {
            proptest::prop_assert_eq!(open(PLAIN, Role::Committer, folder.clone()).commit(&label, &prepared.handle).unwrap(), Verdict::Committed);
        }
        proptest::prop_assert_eq!(hidden(&folder), [""; 0]);
    }
}
