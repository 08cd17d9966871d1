//! Random histories of two hosts, answered by the memory and the SQLite ledger alike: the one is the model of the other.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, reason = "a test may")]

mod support;

use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::Config;
use weir_ledger::{Decided, Ledger, LedgerError, MemoryLedger, SqliteLedger};
use weir_protocol::{Confirmation, Decision, Epoch, Generation, Head, Replacement, Verdict};

use support::*;

#[derive(Clone, Debug)]
enum Step {
    /// Raises the generation after the newest, or after one that is not.
    Raise {
        stale: bool,
    },
    /// Decides on the head, or on an older base, confirming some.
    Decide {
        stale_base: bool,
        stale_generation: bool,
        attempt: u32,
        confirm: Vec<Index>,
    },
    /// Sends an earlier decision again.
    Again(Index),
    Confirm {
        stale_generation: bool,
        epoch_off: bool,
        confirm: Vec<Index>,
    },
    Replace {
        lost: Index,
        attempt: u32,
        stale_generation: bool,
    },
    Attempt {
        ahead: u64,
        attempt: u32,
    },
    Discharge(Index),
    End,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let rarely = || proptest::bool::weighted(0.1);
    let some = || proptest::collection::vec(any::<Index>(), 0..3);
    let step = prop_oneof![
        2 => rarely().prop_map(|stale| Step::Raise { stale }),
        8 => (rarely(), rarely(), 1..4_u32, some())
            .prop_map(|(stale_base, stale_generation, attempt, confirm)| Step::Decide { stale_base, stale_generation, attempt, confirm }),
        2 => any::<Index>().prop_map(Step::Again),
        3 => (rarely(), rarely(), some())
            .prop_map(|(stale_generation, epoch_off, confirm)| Step::Confirm { stale_generation, epoch_off, confirm }),
        3 => (any::<Index>(), 2..5_u32, rarely())
            .prop_map(|(lost, attempt, stale_generation)| Step::Replace { lost, attempt, stale_generation }),
        2 => (0..3_u64, 2..5_u32).prop_map(|(ahead, attempt)| Step::Attempt { ahead, attempt }),
        2 => any::<Index>().prop_map(Step::Discharge),
        1 => Just(Step::End),
    ];
    proptest::collection::vec(step, 1..60)
}

/// An answer, as far as a caller can tell it from another one.
fn told<T>(answer: Result<T, LedgerError>, tell: impl FnOnce(T) -> String) -> String {
    match answer {
        Ok(value) => tell(value),
        Err(error) => format!("{}: {error}", error.code()),
    }
}

/// What the test knows, to make up calls that are right and calls that are wrong.
struct History {
    generation: u64,
    decisions: Vec<Decision>,
    /// Labels that were ever named, with their epochs and first records.
    named: Vec<(Confirmation, u64)>,
}

async fn step(ledgers: &[Arc<dyn Ledger>; 2], history: &mut History, step: &Step) -> [String; 2] {
    let ours = |stale: bool| Generation(history.generation.saturating_sub(u64::from(stale)));
    let chosen = |choice: &[Index]| -> Vec<Confirmation> {
        if history.named.is_empty() { vec![] } else { choice.iter().map(|index| index.get(&history.named).0.clone()).collect() }
    };
    let host = |generation| Host {
        ledger: ledgers[0].clone(),
        generation,
        manifest: manifest(),
        state: weir_protocol::PipelineState::from_facts(&empty_facts(ledgers[0].id())).unwrap(),
        pipeline: pipeline(),
    };
    let name = pipeline();
    let mut answers = [String::new(), String::new()];
    let mut news = (None, None);
    for (ledger, answer) in ledgers.iter().zip(&mut answers) {
        *answer = match step {
            Step::Raise { stale } => told(ledger.raise_generation(&name, ours(*stale), &manifest()).await, |facts| format!("{facts:?}")),
            Step::Decide { stale_base, stale_generation, attempt, confirm } => {
                let back = usize::from(*stale_base) + 1;
                let base = history.decisions.len().checked_sub(back).and_then(|at| history.decisions.get(at));
                let head = base.map_or(Head::GENESIS, |base| base.head().unwrap());
                let mut decision = host(ours(*stale_generation)).draft_with(*attempt);
                let epoch = head.epoch.next();
                decision.handles = vec![handle(host(ours(*stale_generation)).transaction(epoch, *attempt), head.epoch.0 * RECORDS)];
                decision.positions = [(split(), position(epoch.0 * RECORDS))].into();
                (decision.epoch, decision.base, decision.base_hash) = (epoch, head.epoch, head.hash);
                decision.snapshot = epoch.0 % 16 == 1;
                told(ledger.decide(&decision, &chosen(confirm)).await, |decided| match decided {
                    Decided::Made(made) => {
                        news.0 = Some(made.into_inner());
                        "made".to_owned()
                    }
                    Decided::Refused { generation, head } => format!("refused {generation} {head:?}"),
                })
            }
            Step::Again(index) if !history.decisions.is_empty() => {
                told(ledger.decide(index.get(&history.decisions), &[]).await, |decided| match decided {
                    Decided::Made(_) => "made".to_owned(),
                    Decided::Refused { generation, head } => format!("refused {generation} {head:?}"),
                })
            }
            Step::Confirm { stale_generation, epoch_off, confirm } => {
                let mut confirmations = chosen(confirm);
                for confirmation in confirmations.iter_mut().filter(|_| *epoch_off) {
                    confirmation.epoch = confirmation.epoch.next();
                }
                told(ledger.confirm(&name, ours(*stale_generation), &confirmations).await, |()| "confirmed".to_owned())
            }
            Step::Replace { lost, attempt, stale_generation } if !history.named.is_empty() => {
                let (lost, first) = lost.get(&history.named).clone();
                let handle = handle(host(ours(*stale_generation)).transaction(lost.epoch, *attempt), first);
                let replacement = Replacement { lost: lost.label, handle };
                told(ledger.replace(&name, ours(*stale_generation), &replacement).await, |durable| {
                    news.1 = Some((durable.into_inner(), first));
                    "replaced".to_owned()
                })
            }
            Step::Attempt { ahead, attempt } => {
                let epoch = Epoch(history.decisions.last().map_or(0, |decision| decision.epoch.0) + ahead);
                let attempt = host(ours(false)).attempt(epoch, *attempt);
                told(ledger.record_attempt(&name, ours(false), &attempt).await, |()| "recorded".to_owned())
            }
            Step::Discharge(index) => {
                let owed_by = Generation(index.index(usize::try_from(history.generation).unwrap() + 1) as u64);
                told(ledger.discharge(&name, ours(false), owed_by).await, |()| "discharged".to_owned())
            }
            Step::End => told(ledger.step_down(&name, ours(false)).await, |()| "stepped down".to_owned()),
            Step::Again(_) | Step::Replace { .. } => String::new(),
        };
    }
    if let (Step::Raise { .. }, [answer, _]) = (step, &answers)
        && answer.starts_with("Durable")
    {
        history.generation += 1;
    }
    if let Some(made) = news.0 {
        let handle = &made.handles[0];
        history.named.push((confirmation(handle), handle.slices[0].first));
        history.decisions.push(made);
    }
    if let Some((replacement, first)) = news.1 {
        let transaction = replacement.handle.transaction;
        history
            .named
            .push((Confirmation { epoch: transaction.epoch, label: transaction.label, verdict: Verdict::AlreadyCommitted }, first));
    }
    answers
}

fn empty_facts(ledger: weir_protocol::LedgerId) -> weir_protocol::PipelineFacts {
    weir_protocol::PipelineFacts {
        pipeline: pipeline(),
        ledger,
        generation: Generation(0),
        manifest: manifest(),
        head: Head::GENESIS,
        decisions: vec![],
        confirmations: vec![],
        replacements: vec![],
        debts: vec![],
        undecided_may_exist: false,
    }
}

#[test]
fn memory_and_sqlite_answer_every_history_alike() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut made = 0;
    let mut number = 0;
    let mut runner = proptest::test_runner::TestRunner::new(Config { cases: 40, failure_persistence: None, ..Config::default() });
    let counts = std::cell::RefCell::new((&mut made, &mut number));
    let result = runner.run(&steps(), |steps| {
        let mut counts = counts.borrow_mut();
        *counts.1 += 1;
        let path = folder.path().join(format!("{}.db", counts.1));
        runtime.block_on(async {
            let sqlite = SqliteLedger::open(&path, true).await.unwrap().0;
            let memory = MemoryLedger::new(sqlite.id());
            let ledgers: [Arc<dyn Ledger>; 2] = [Arc::new(memory), Arc::new(sqlite)];
            let mut history = History { generation: 0, decisions: vec![], named: vec![] };
            for (at, one) in steps.iter().enumerate() {
                let [memory, sqlite] = step(&ledgers, &mut history, one).await;
                prop_assert_eq!(memory, sqlite, "step {} of {:?}", at, steps);
                let facts = (ledgers[0].peek(&pipeline()).await.unwrap(), ledgers[1].peek(&pipeline()).await.unwrap());
                prop_assert_eq!(facts.0, facts.1, "after step {} of {:?}", at, steps);
            }
            *counts.0 += history.decisions.len();
            Ok(())
        })
    });
    result.unwrap();
    assert!(made > 100, "only {made} decisions were made: the histories show nothing");
}
