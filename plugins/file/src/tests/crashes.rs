//! A process that ends, or a step that fails, at every place there is; with and without a loss of power; with and without a reader.

use super::memory::{Memory, Plan};
use super::*;
use crate::error::Kind;
use crate::folder::Cause;
use crate::settle::Verdict;

const BATCHES: [&str; 3] = ["{\"order\":1}\n", "{\"order\":2}\n{\"order\":3}\n", "{\"order\":4}\n"];

/// What a loss of power may leave: nothing of what was not synced, all of it, or some, differently by number.
fn power_losses() -> impl Iterator<Item = Box<dyn Fn(&Memory)>> {
    let some = (1..24_u64).map(|seed| {
        let lose: Box<dyn Fn(&Memory)> = Box::new(move |memory| {
            let mut state = seed;
            memory.lose_power(|most| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) as usize % (most + 1)
            });
        });
        lose
    });
    let none: Box<dyn Fn(&Memory)> = Box::new(|memory| memory.lose_power(|_| 0));
    let all: Box<dyn Fn(&Memory)> = Box::new(|memory| memory.lose_power(|most| most));
    // The process ends, and the machine does not.
    let only_the_process: Box<dyn Fn(&Memory)> = Box::new(|_| ());
    [none, all, only_the_process].into_iter().chain(some)
}

/// Runs a call in processes that end before step 0, 1, 2 … until one gets through; gives each its own copy of the folder.
fn crash_everywhere(start: &Memory, call: impl Fn(Memory) -> bool, check: impl Fn(&Memory, u32)) -> u32 {
    for step in 0.. {
        let folder = start.copy();
        if call(folder.process(Plan::Crash(step))) {
            return step;
        }
        for lose_power in power_losses() {
            let after = folder.copy();
            lose_power(&after);
            check(&after, step);
        }
    }
    unreachable!("some number of steps is enough")
}

fn prepared(config: &str) -> (Memory, Vec<u8>) {
    let folder = Memory::new();
    let prepared = prepare(&mut open(config, Role::Writer, folder.clone()), "l", &BATCHES).unwrap();
    (folder, prepared.handle)
}

#[test]
fn a_writer_that_ends_at_any_step_leaves_nothing_visible_and_nothing_that_abort_does_not_remove() {
    for config in [PLAIN, ROLLING] {
        let steps = crash_everywhere(
            &Memory::new(),
            |folder| prepare(&mut open(config, Role::Writer, folder), "l", &BATCHES).is_ok(),
            |after, step| {
                assert_eq!(visible(after), [], "step {step}");
                let mut next = open(config, Role::Writer, after.clone());
                next.abort("l").unwrap();
                next.abort("l").unwrap();
                assert_eq!(hidden(after), [""; 0], "step {step}");
                let prepared = prepare(&mut next, "m", &BATCHES).unwrap();
                open(config, Role::Committer, after.clone()).commit("m", &prepared.handle).unwrap();
                assert_eq!(contents(&visible(after)).concat(), BATCHES.concat(), "step {step}");
            },
        );
        assert!(steps > 12, "{steps} steps");
    }
}

#[test]
fn what_precommit_promised_survives_a_loss_of_power() {
    for config in [PLAIN, ROLLING] {
        let (folder, handle) = prepared(config);
        for lose_power in power_losses() {
            let after = folder.copy();
            lose_power(&after);
            assert_eq!(visible(&after), []);
            assert_eq!(open(config, Role::Committer, after.clone()).commit("l", &handle).unwrap(), Verdict::Committed);
            assert_eq!(contents(&visible(&after)).concat(), BATCHES.concat());
        }
    }
}

#[test]
fn a_committer_that_ends_at_any_step_is_finished_by_the_next_whatever_readers_took() {
    for config in [PLAIN, ROLLING] {
        let (folder, handle) = prepared(config);
        let steps = crash_everywhere(
            &folder,
            |folder| open(config, Role::Committer, folder).commit("l", &handle).is_ok(),
            |after, step| {
                for reader in [false, true] {
                    let after = after.copy();
                    let mut read = if reader { after.take_visible() } else { Vec::new() };
                    let mut committer = open(config, Role::Committer, after.clone());
                    committer.commit("l", &handle).unwrap();
                    assert_eq!(hidden(&after), [""; 0], "step {step}");
                    read.extend(visible(&after).into_iter().map(|(_, content)| content));
                    read.sort();
                    assert_eq!(read.concat(), BATCHES.concat(), "step {step}, reader {reader}");
                    assert_eq!(committer.commit("l", &handle).unwrap(), Verdict::AlreadyCommitted);
                }
            },
        );
        assert!(steps >= 6, "{steps} steps");
    }
}

#[test]
fn what_commit_answered_survives_a_loss_of_power_also_when_another_committer_did_the_work() {
    for config in [PLAIN, ROLLING] {
        let (folder, handle) = prepared(config);
        // The first may end anywhere, before its renaming is durable too; the second answers that nothing was left to do.
        for step in 0.. {
            let folder = folder.copy();
            let first = open(config, Role::Committer, folder.process(Plan::Crash(step))).commit("l", &handle);
            open(config, Role::Committer, folder.clone()).commit("l", &handle).unwrap();
            for lose_power in power_losses() {
                let after = folder.copy();
                lose_power(&after);
                assert_eq!(contents(&visible(&after)).concat(), BATCHES.concat(), "step {step}");
                assert_eq!(hidden(&after), [""; 0]);
            }
            if first.is_ok() {
                break;
            }
        }
    }
}

#[test]
fn an_abort_that_ends_at_any_step_is_finished_by_the_next() {
    let (folder, _) = prepared(ROLLING);
    let steps = crash_everywhere(
        &folder,
        |folder| open(ROLLING, Role::Committer, folder).abort("l").is_ok(),
        |after, step| {
            open(ROLLING, Role::Committer, after.clone()).abort("l").unwrap();
            let later = after.copy();
            later.lose_power(|_| 0);
            for folder in [after, &later] {
                assert_eq!(visible(folder), [], "step {step}");
                assert_eq!(hidden(folder), [""; 0], "step {step}");
            }
        },
    );
    assert_eq!(steps, 2 + BATCHES.len() as u32, "one look, one removal a file, one sync");
}

/// Runs a call with a fault at every step in turn, done and not done, until it no longer meets one.
fn fail_everywhere(cause: Cause, call: impl Fn(&Memory) -> Option<Kind>, start: &Memory, check: impl Fn(&Memory, u32)) {
    for done in [false, true] {
        for step in 0.. {
            let folder = start.copy();
            let process = folder.process(Plan::Fail { step, cause, done });
            let kind = call(&process);
            if process.steps() <= step {
                assert_eq!(kind, None);
                break;
            }
            let expected = if cause == Cause::Denied { Kind::Refused } else { Kind::Unavailable };
            assert_eq!(kind, Some(expected), "step {step} failed and was not reported");
            check(&folder, step);
        }
    }
}

#[test]
fn an_error_at_any_step_of_writing_is_reported_and_can_be_aborted() {
    for cause in [Cause::Full, Cause::Failed, Cause::Denied] {
        fail_everywhere(
            cause,
            |process| prepare(&mut open(ROLLING, Role::Writer, process.clone()), "l", &BATCHES).err().map(|error| error.kind()),
            &Memory::new(),
            |folder, step| {
                assert_eq!(visible(folder), [], "step {step}");
                open(ROLLING, Role::Writer, folder.clone()).abort("l").unwrap();
                assert_eq!(hidden(folder), [""; 0], "step {step}");
            },
        );
    }
}

#[test]
fn an_error_at_any_step_of_commit_is_reported_and_the_next_attempt_finishes() {
    let (folder, handle) = prepared(ROLLING);
    for cause in [Cause::Full, Cause::Failed, Cause::Denied] {
        fail_everywhere(
            cause,
            |process| open(ROLLING, Role::Committer, process.clone()).commit("l", &handle).err().map(|error| error.kind()),
            &folder,
            |folder, step| {
                let mut read = folder.take_visible();
                open(ROLLING, Role::Committer, folder.clone()).commit("l", &handle).unwrap();
                read.extend(folder.take_visible());
                read.sort();
                assert_eq!(read.concat(), BATCHES.concat(), "step {step}");
                assert_eq!(hidden(folder), [""; 0]);
            },
        );
    }
}

#[test]
fn an_error_at_any_step_of_abort_is_reported_and_the_next_attempt_finishes() {
    let (folder, _) = prepared(ROLLING);
    for cause in [Cause::Failed, Cause::Denied] {
        fail_everywhere(
            cause,
            |process| open(ROLLING, Role::Committer, process.clone()).abort("l").err().map(|error| error.kind()),
            &folder,
            |folder, _| {
                open(ROLLING, Role::Committer, folder.clone()).abort("l").unwrap();
                assert_eq!((visible(folder), hidden(folder)), (Vec::new(), Vec::new()));
            },
        );
    }
}

#[test]
fn a_full_disk_at_any_byte_is_an_error_that_waits_for_space() {
    let total = BATCHES.concat().len();
    for fits in 0..total {
        let folder = Memory::new();
        open(PLAIN, Role::Writer, folder.clone()).begin("makes-the-marker", [1; 16]).unwrap();
        folder.limit_space(Some(fits));
        let mut writer = open(PLAIN, Role::Writer, folder.clone());
        let error = prepare(&mut writer, "l", &BATCHES).unwrap_err();
        assert_eq!((error.kind(), error.code()), (Kind::Unavailable, "insufficient-space"));
        assert!(error.to_string().contains("no space left"), "{error}");
        writer.abort("l").unwrap();
        folder.limit_space(None);
        prepare(&mut writer, "m", &BATCHES).unwrap();
    }
}
