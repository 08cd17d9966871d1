//! Whole histories: epochs that are written, decided, committed and read, with processes that end anywhere and power that goes.

use proptest::prelude::*;

use super::memory::{Memory, Plan};
use super::*;

/// What befalls one epoch.
#[derive(Debug, Clone)]
struct Epoch {
    batches: Vec<u8>,
    /// The writer ends before this step, if it gets there.
    writer_ends: u32,
    /// Committers that end before these steps, one after the other, before one that does not.
    committers_end: Vec<u32>,
    /// Whether the power goes with each process that ends, and what is kept then.
    power: Vec<Option<u64>>,
    reader_comes: bool,
}

fn epoch() -> impl Strategy<Value = Epoch> {
    let batches = proptest::collection::vec(1..4_u8, 1..4);
    let power = proptest::collection::vec(proptest::option::of(any::<u64>()), 8);
    (batches, 0..40_u32, proptest::collection::vec(0..14_u32, 0..3), power, any::<bool>()).prop_map(
        |(batches, writer_ends, committers_end, power, reader_comes)| Epoch { batches, writer_ends, committers_end, power, reader_comes },
    )
}

fn lose(folder: &Memory, seed: Option<u64>) {
    let Some(mut state) = seed else { return };
    folder.lose_power(|most| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % (most + 1)
    });
}

/// Plays the host for one epoch; returns the records that it decided, if it did.
fn run(folder: &Memory, config: &str, number: usize, epoch: &Epoch, read: &mut Vec<String>) -> Option<Vec<String>> {
    let label = format!("g1-e{number}-a0");
    let record = |batch: usize, index: u8| format!("{{\"epoch\":{number},\"batch\":{batch},\"record\":{index}}}");
    let records: Vec<Vec<String>> =
        epoch.batches.iter().enumerate().map(|(batch, &count)| (0..count).map(|index| record(batch, index)).collect()).collect();
    let texts: Vec<String> = records.iter().map(|batch| batch.join("\n") + "\n").collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let mut power = epoch.power.iter().copied();

    let mut writer = open(config, Role::Writer, folder.process(Plan::Crash(epoch.writer_ends)));
    let Ok(prepared) = prepare(&mut writer, &label, &texts) else {
        lose(folder, power.next().flatten());
        assert!(!visible(folder).iter().any(|(name, _)| name.contains(&label)), "undecided records are visible");
        open(config, Role::Writer, folder.clone()).abort(&label).unwrap();
        return None;
    };
    for &step in &epoch.committers_end {
        let outcome = open(config, Role::Committer, folder.process(Plan::Crash(step))).commit(&label, &prepared.handle);
        lose(folder, power.next().flatten());
        if epoch.reader_comes {
            read.extend(folder.take_visible());
        }
        if outcome.is_ok() {
            // The host's confirmation may be lost with it, so it asks again all the same.
            continue;
        }
    }
    open(config, Role::Committer, folder.clone()).commit(&label, &prepared.handle).unwrap();
    lose(folder, power.next().flatten());
    Some(records.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn every_decided_record_is_read_once_and_no_other(epochs in proptest::collection::vec(epoch(), 1..6), rolling in any::<bool>()) {
        let folder = Memory::new();
        let config = if rolling { ROLLING } else { PLAIN };
        let mut decided = Vec::new();
        let mut read = Vec::new();
        for (number, epoch) in epochs.iter().enumerate() {
            decided.extend(run(&folder, config, number, epoch, &mut read).unwrap_or_default());
        }
        read.extend(folder.take_visible());
        let mut found: Vec<String> = read.iter().flat_map(|file| file.lines().map(str::to_owned)).collect();
        found.sort();
        decided.sort();
        prop_assert_eq!(found, decided);
        prop_assert_eq!(hidden(&folder), [""; 0]);
    }
}
