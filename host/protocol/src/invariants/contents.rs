//! What decisions say about records: positions that fit the handles (EO-3), and every record once to every sink (EO-6).

use std::collections::{BTreeMap, BTreeSet};

use super::{Violation, broken};
use crate::facts::Decision;
use crate::ids::{SinkId, SplitId};

/// The records of one split in one decision: from the first to before the second.
type Range = (u64, u64);

/// What the decisions so far have given to each sink.
#[derive(Clone, Debug, Default)]
pub(super) struct Contents {
    /// The number of the next record of a split that a sink has not been given under a decision.
    next_record: BTreeMap<(SinkId, SplitId), u64>,
    /// The sinks that this generation gives records to. Empty before its first decision with records.
    sinks: BTreeSet<SinkId>,
}

impl Contents {
    /// Another generation may run other sinks.
    pub(super) fn new_generation(&mut self) {
        self.sinks.clear();
    }

    pub(super) fn check(&self, decision: &Decision) -> Result<(), Violation> {
        check_positions(decision)?;
        let given = records_given(decision)?;
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
        match self.sinks.iter().find(|sink| !given.is_empty() && !given.contains_key(sink)) {
            Some(sink) => broken("EO-6", format!("sink {sink} was given none of the records of epoch {}", decision.epoch)),
            None => Ok(()),
        }
    }

    /// Takes note of a decision that was made.
    pub(super) fn count(&mut self, decision: &Decision) {
        for handle in &decision.handles {
            let sink = &handle.transaction.sink;
            self.sinks.insert(sink.clone());
            for slice in &handle.slices {
                self.next_record.insert((sink.clone(), slice.split.clone()), slice.first.saturating_add(slice.records));
            }
        }
    }
}

/// Every split that a handle has records of goes on where its last slice ends (EO-3).
fn check_positions(decision: &Decision) -> Result<(), Violation> {
    for handle in &decision.handles {
        let ends: BTreeMap<_, _> = handle.slices.iter().map(|slice| (&slice.split, &slice.to)).collect();
        for (split, to) in ends {
            if decision.positions.get(split) != Some(to) {
                return broken("EO-3", format!("epoch {} has records of split {split} without their position", decision.epoch));
            }
        }
    }
    Ok(())
}

/// The records that each sink is given, each once and without a gap (EO-6).
fn records_given(decision: &Decision) -> Result<BTreeMap<&SinkId, BTreeMap<&SplitId, Range>>, Violation> {
    let mut given: BTreeMap<_, BTreeMap<_, Range>> = BTreeMap::new();
    for handle in &decision.handles {
        let sink = &handle.transaction.sink;
        for slice in &handle.slices {
            let range = given.entry(sink).or_default().entry(&slice.split).or_insert((slice.first, slice.first));
            if slice.first != range.1 {
                let problem = format!("sink {sink} skips or repeats records of split {} at {}", slice.split, range.1);
                broken("EO-6", problem)?;
            }
            range.1 = slice.first.saturating_add(slice.records);
        }
    }
    Ok(given)
}
