//! One suite, every implementation: what a ledger promises, as tests that each runs on.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, reason = "a test may")]

mod support;

use std::sync::Arc;

use tempfile::TempDir;
use weir_ledger::{Decided, Holder, LeaseAnswer, Ledger, LedgerError, MemoryLedger, SqliteLedger};
use weir_protocol::{Confirmation, Epoch, Generation, Head, LedgerId, PipelineState, ProtocolError, Verdict};

use support::*;

/// A ledger that any number of hosts open.
enum Case {
    Memory(MemoryLedger),
    Sqlite(TempDir),
}

impl Case {
    fn memory() -> Self {
        Case::Memory(MemoryLedger::new(LedgerId::from_random([7; 8])))
    }

    fn sqlite() -> Self {
        Case::Sqlite(TempDir::new().unwrap())
    }

    /// Opens it as another process would.
    async fn open(&self) -> Arc<dyn Ledger> {
        match self {
            Case::Memory(ledger) => Arc::new(ledger.clone()),
            Case::Sqlite(folder) => Arc::new(SqliteLedger::open(&folder.path().join("weir.db"), true).await.unwrap().0),
        }
    }

    async fn start(&self) -> Host {
        Host::start(self.open().await).await
    }
}

macro_rules! suite {
    ($($(#[$doc:meta])* async fn $name:ident($case:ident: Case) $body:block)*) => {
        $($(#[$doc])* async fn $name($case: Case) $body)*
        mod memory { $(#[tokio::test] async fn $name() { super::$name(super::Case::memory()).await })* }
        mod sqlite { $(#[tokio::test] async fn $name() { super::$name(super::Case::sqlite()).await })* }
    };
}

fn is_fenced<T: std::fmt::Debug>(answer: Result<T, LedgerError>, ours: u64, found: u64) {
    match answer {
        Err(LedgerError::Fenced { ours: a, found: b }) => assert_eq!((a, b), (Generation(ours), Generation(found))),
        other => panic!("expected to be fenced, got {other:?}"),
    }
}

fn is_protocol_error<T: std::fmt::Debug>(answer: Result<T, LedgerError>, words: &str) {
    match answer {
        Err(LedgerError::Protocol(error)) => assert!(error.to_string().contains(words), "{error}"),
        other => panic!("expected {words:?}, got {other:?}"),
    }
}

fn holder(id: &str) -> Holder {
    Holder { id: id.to_owned(), ..Holder::this_process().unwrap() }
}

suite! {
    async fn a_decision_is_found_again_with_its_positions_and_its_permits(case: Case) {
        let mut host = case.start().await;
        let decided = host.decide(&[]).await;
        drop(host);
        let other = case.open().await;
        let facts = other.raise_generation(&pipeline(), Generation(1), &manifest()).await.unwrap();
        let (state, permits) = facts.recover().unwrap();
        assert_eq!(state.head(), decided.head().unwrap());
        assert_eq!(state.positions(), &decided.positions);
        let permits: Vec<_> = permits.values().flatten().map(|permit| (permit.transaction().clone(), permit.handle().to_vec())).collect();
        assert_eq!(permits, [(decided.handles[0].transaction.clone(), decided.handles[0].handle.clone())]);
    }

    async fn what_a_host_wrote_is_what_it_holds(case: Case) {
        let mut host = case.start().await;
        host.run(3).await;
        assert_eq!(PipelineState::from_facts(&host.facts().await).unwrap(), host.state);
    }

    async fn an_unknown_pipeline_has_no_facts_and_decides_nothing(case: Case) {
        let ledger = case.open().await;
        assert_eq!(ledger.peek(&pipeline()).await.unwrap(), None);
        assert_eq!(ledger.pipelines().await.unwrap(), []);
        is_fenced(ledger.confirm(&pipeline(), Generation(1), &[]).await, 1, 0);
        is_fenced(ledger.raise_generation(&pipeline(), Generation(3), &manifest()).await, 3, 0);
        let mut decision = Host::start(Case::memory().open().await).await.draft();
        decision.pipeline = "other".parse().unwrap();
        let answer = ledger.decide(&decision, &[]).await.unwrap();
        assert!(matches!(answer, Decided::Refused { generation: Generation(0), head: Head::GENESIS }), "{answer:?}");
    }

    async fn the_same_decision_sent_again_is_made_once(case: Case) {
        let mut host = case.start().await;
        let first = host.decide(&[]).await;
        made(host.ledger.decide(&first, &[]).await);
        let confirmed = confirmations(&first);
        let second = host.decide(&confirmed).await;
        for decision in [&first, &second, &first] {
            assert_eq!(made(host.ledger.decide(decision, &confirmed).await).get(), decision);
        }
        let facts = host.facts().await;
        assert_eq!(facts.decisions, [first, second]);
        assert_eq!(facts.confirmations, confirmed);
    }

    async fn another_decision_on_the_same_base_is_refused(case: Case) {
        let mut host = case.start().await;
        let base = host.draft();
        let decided = host.decide(&[]).await;
        let mut rival = base;
        rival.handles.clear();
        let answer = host.ledger.decide(&rival, &[]).await.unwrap();
        let Decided::Refused { generation, head } = answer else { panic!("{answer:?}") };
        assert_eq!((generation, head), (Generation(1), decided.head().unwrap()));
        let mut wrong_hash = host.draft();
        wrong_hash.base_hash = rival.head().unwrap().hash;
        assert!(matches!(host.ledger.decide(&wrong_hash, &[]).await.unwrap(), Decided::Refused { .. }));
        assert_eq!(host.facts().await.decisions, [decided]);
    }

    async fn an_older_generation_writes_nothing(case: Case) {
        let mut old = case.start().await;
        let decided = old.decide(&[]).await;
        let draft = old.draft();
        let new = case.start().await;
        let before = new.facts().await;
        assert!(matches!(
            old.ledger.decide(&draft, &confirmations(&decided)).await.unwrap(),
            Decided::Refused { generation: Generation(2), .. }
        ));
        let ledger = &old.ledger;
        is_fenced(ledger.confirm(&pipeline(), Generation(1), &confirmations(&decided)).await, 1, 2);
        is_fenced(ledger.replace(&pipeline(), Generation(1), &old.replacement(&decided, 2)).await, 1, 2);
        is_fenced(ledger.record_attempt(&pipeline(), Generation(1), &old.attempt(Epoch(2), 2)).await, 1, 2);
        is_fenced(ledger.discharge(&pipeline(), Generation(1), Generation(1)).await, 1, 2);
        is_fenced(ledger.step_down(&pipeline(), Generation(1)).await, 1, 2);
        is_fenced(ledger.raise_generation(&pipeline(), Generation(1), &manifest()).await, 1, 2);
        assert_eq!(new.facts().await, before);
    }

    async fn a_decision_made_and_then_built_upon_by_another_generation_is_still_found_made(case: Case) {
        let mut old = case.start().await;
        let decided = old.decide(&[]).await;
        let mut new = case.start().await;
        new.run(3).await;
        let before = new.facts().await;
        made(old.ledger.decide(&decided, &[]).await);
        assert_eq!(new.facts().await, before);
    }

    async fn a_decision_too_old_to_tell_is_neither_made_nor_refused(case: Case) {
        let mut host = case.start().await;
        let old = host.decide(&[]).await;
        host.run(200).await;
        case.start().await;
        is_fenced(host.ledger.decide(&old, &[]).await, 1, 2);
    }

    async fn a_generation_that_ended_owes_a_sweep_from_its_head_until_it_is_paid(case: Case) {
        let mut first = case.start().await;
        first.run(2).await;
        case.start().await;
        let third = case.start().await;
        let facts = third.facts().await;
        let debts: Vec<_> = facts.debts.iter().map(|debt| (debt.generation.0, debt.base.0, &debt.manifest)).collect();
        assert_eq!(debts, [(1, 2, &manifest()), (2, 2, &manifest())]);
        third.ledger.discharge(&pipeline(), Generation(3), Generation(1)).await.unwrap();
        third.ledger.discharge(&pipeline(), Generation(3), Generation(1)).await.unwrap();
        is_protocol_error(third.ledger.discharge(&pipeline(), Generation(3), Generation(3)).await, "EO-2");
        assert_eq!(third.facts().await.debts, facts.debts[1..]);
    }

    async fn a_generation_that_stepped_down_owes_nothing_and_goes_no_further(case: Case) {
        let mut first = case.start().await;
        let decided = first.decide(&[]).await;
        assert!(first.facts().await.undecided_may_exist);
        first.ledger.step_down(&pipeline(), Generation(1)).await.unwrap();
        first.ledger.step_down(&pipeline(), Generation(1)).await.unwrap();
        assert!(!first.facts().await.undecided_may_exist);
        is_protocol_error(first.ledger.decide(&first.draft(), &[]).await, "stepped down");
        is_protocol_error(first.ledger.record_attempt(&pipeline(), Generation(1), &first.attempt(Epoch(2), 2)).await, "stepped down");
        is_protocol_error(first.ledger.replace(&pipeline(), Generation(1), &first.replacement(&decided, 2)).await, "stepped down");
        made(first.ledger.decide(&decided, &[]).await);
        first.confirm(&decided).await;
        let second = case.start().await;
        let facts = second.facts().await;
        assert_eq!((facts.debts.len(), facts.undecided_may_exist), (0, true));
    }

    async fn a_try_is_owed_until_a_decision_or_a_replacement_names_it(case: Case) {
        let mut host = case.start().await;
        let decided = host.decide(&[]).await;
        let tries = [host.attempt(Epoch(1), 2), host.attempt(Epoch(1), 3), host.attempt(Epoch(2), 2), host.attempt(Epoch(2), 3)];
        for attempt in tries.iter().chain(&tries) {
            host.ledger.record_attempt(&pipeline(), Generation(1), attempt).await.unwrap();
        }
        // Of epoch 1 the second repair succeeded, of epoch 2 the second try.
        host.ledger.replace(&pipeline(), Generation(1), &host.replacement(&decided, 3)).await.unwrap();
        made(host.ledger.decide(&host.draft_with(3), &[]).await);
        is_protocol_error(host.ledger.record_attempt(&pipeline(), Generation(1), &tries[3]).await, "EO-5");
        let next = case.start().await;
        let owed = next.facts().await.debts[0].attempts.clone();
        assert_eq!(owed, [tries[0].clone(), tries[2].clone()]);
        next.ledger.discharge(&pipeline(), Generation(2), Generation(1)).await.unwrap();
        assert_eq!(next.facts().await.debts, []);
    }

    async fn confirmations_come_with_a_decision_or_alone_and_a_repeat_changes_nothing(case: Case) {
        let mut host = case.start().await;
        let first = host.decide(&[]).await;
        let second = host.decide(&confirmations(&first)).await;
        assert_eq!(labels(&host.facts().await), [second.handles[0].transaction.label.to_string()]);
        host.confirm(&second).await;
        let facts = host.facts().await;
        assert!(labels(&facts).is_empty());
        let again: Vec<_> = confirmations(&second).into_iter().map(|c| Confirmation { verdict: Verdict::AlreadyCommitted, ..c }).collect();
        host.ledger.confirm(&pipeline(), Generation(1), &again).await.unwrap();
        host.ledger.confirm(&pipeline(), Generation(1), &confirmations(&first)).await.unwrap();
        assert_eq!(host.facts().await, facts);
    }

    async fn what_no_decision_names_is_not_confirmed_and_its_decision_is_not_written(case: Case) {
        let mut host = case.start().await;
        let first = host.decide(&[]).await;
        let mut unnamed = confirmations(&first);
        unnamed[0].label = host.transaction(Epoch(1), 9).label;
        let mut other_epoch = confirmations(&first);
        other_epoch[0].epoch = Epoch(2);
        let mut lost = confirmations(&first);
        lost[0].verdict = Verdict::Lost;
        let before = host.facts().await;
        for wrong in [unnamed, other_epoch, lost] {
            is_protocol_error(host.ledger.confirm(&pipeline(), Generation(1), &wrong).await, "EO-1");
            is_protocol_error(host.ledger.decide(&host.draft(), &wrong).await, "EO-1");
        }
        assert_eq!(host.facts().await, before);
    }

    async fn a_replacement_stands_in_for_what_was_lost(case: Case) {
        let mut host = case.start().await;
        let decided = host.decide(&[]).await;
        let replacement = host.replacement(&decided, 2);
        for _ in 0..2 {
            let durable = host.ledger.replace(&pipeline(), Generation(1), &replacement).await.unwrap();
            assert_eq!(durable.get(), &replacement);
        }
        assert_eq!(labels(&host.facts().await), [replacement.handle.transaction.label.to_string()]);
        is_protocol_error(host.ledger.replace(&pipeline(), Generation(1), &host.replacement(&decided, 3)).await, "EO-1");
        is_protocol_error(host.ledger.confirm(&pipeline(), Generation(1), &confirmations(&decided)).await, "EO-1");
        // The replacement gets lost too.
        let mut second = host.replacement(&decided, 3);
        second.lost = replacement.handle.transaction.label.clone();
        host.ledger.replace(&pipeline(), Generation(1), &second).await.unwrap();
        host.ledger.confirm(&pipeline(), Generation(1), &[confirmation(&second.handle)]).await.unwrap();
        let next = case.start().await;
        assert!(labels(&next.facts().await).is_empty());
        assert_eq!(next.facts().await.replacements, [replacement, second]);
    }

    async fn what_is_confirmed_is_not_replaced(case: Case) {
        let mut host = case.start().await;
        let decided = host.decide(&[]).await;
        let replacement = host.replacement(&decided, 2);
        host.confirm(&decided).await;
        is_protocol_error(host.ledger.replace(&pipeline(), Generation(1), &replacement).await, "EO-1");
        assert_eq!(host.facts().await.replacements, []);
    }

    async fn a_label_is_named_once(case: Case) {
        let mut host = case.start().await;
        let first = host.decide(&[]).await;
        let mut again = host.draft();
        again.handles[0].transaction.label = first.handles[0].transaction.label.clone();
        is_protocol_error(host.ledger.decide(&again, &[]).await, "EO-5");
        let mut twice = host.draft();
        twice.handles.push(twice.handles[0].clone());
        is_protocol_error(host.ledger.decide(&twice, &[]).await, "EO-5");
        let mut own = host.replacement(&first, 1);
        own.handle.transaction.label = first.handles[0].transaction.label.clone();
        is_protocol_error(host.ledger.replace(&pipeline(), Generation(1), &own).await, "EO-5");
        let facts = host.facts().await;
        assert_eq!((facts.decisions.as_slice(), facts.replacements.len()), ([first].as_slice(), 0));
    }

    async fn what_could_not_be_read_back_is_not_written(case: Case) {
        let host = case.start().await;
        let mut gap = host.draft();
        gap.epoch = Epoch(2);
        is_protocol_error(host.ledger.decide(&gap, &[]).await, "out of turn");
        let mut no_snapshot = host.draft();
        no_snapshot.snapshot = false;
        is_protocol_error(host.ledger.decide(&no_snapshot, &[]).await, "snapshot");
        let mut wrong_epoch = host.draft();
        wrong_epoch.handles[0].transaction.epoch = Epoch(5);
        is_protocol_error(host.ledger.decide(&wrong_epoch, &[]).await, "out of turn");
        let mut large = host.draft();
        large.handles[0].handle = vec![0; weir_protocol::MAX_HANDLE_BYTES + 1];
        is_protocol_error(host.ledger.decide(&large, &[]).await, "handle");
        assert_eq!(host.facts().await.head, Head::GENESIS);
    }

    async fn a_decision_over_its_limit_is_an_error_that_names_its_size(case: Case) {
        let host = case.start().await;
        let mut large = host.draft();
        let model = large.handles[0].clone();
        for attempt in 2..400 {
            let handle = vec![b'x'; weir_protocol::MAX_HANDLE_BYTES];
            large.handles.push(weir_protocol::PreparedHandle { transaction: host.transaction(Epoch(1), attempt), handle, ..model.clone() });
        }
        let error = host.ledger.decide(&large, &[]).await.unwrap_err();
        assert!(matches!(error, LedgerError::Protocol(ProtocolError::DecisionTooLarge { .. })), "{error}");
        large.handles.truncate(150);
        assert!(large.to_bytes().unwrap().len() > 12 << 20);
        made(host.ledger.decide(&large, &[]).await);
        assert_eq!(host.facts().await.decisions, [large]);
    }

    async fn old_decisions_are_pruned_and_positions_are_still_known(case: Case) {
        let mut host = case.start().await;
        let decisions = host.run(300).await;
        let facts = host.facts().await;
        assert!(facts.decisions.len() <= 64, "{}", facts.decisions.len());
        assert!(facts.decisions[0].snapshot);
        let next = case.start().await;
        assert_eq!(next.state.positions(), host.state.positions());
        assert_eq!(next.state.head(), decisions[299].head().unwrap());
        assert_eq!(labels(&next.facts().await), [decisions[299].handles[0].transaction.label.to_string()]);
    }

    async fn a_decision_with_an_unconfirmed_handle_is_kept_however_old_it_is(case: Case) {
        let mut host = case.start().await;
        let mut decisions = Vec::new();
        for epoch in 1..=250 {
            let confirmed = decisions.last().filter(|_| epoch != 4).map(confirmations).unwrap_or_default();
            decisions.push(host.decide(&confirmed).await);
        }
        let late = decisions[2].clone();
        let facts = host.facts().await;
        assert_eq!(facts.decisions[0], late);
        assert_eq!(labels(&facts)[0], late.handles[0].transaction.label.to_string());
        host.confirm(&late).await;
        assert_ne!(host.facts().await.decisions[0], late);
        // It is forgotten by then: its confirmation is old news, and not an error.
        let confirmed = confirmations(&decisions[249]);
        decisions.push(host.decide(&confirmed).await);
        host.ledger.confirm(&pipeline(), Generation(1), &confirmations(&late)).await.unwrap();
    }

    async fn two_pipelines_of_one_ledger_do_not_touch(case: Case) {
        let mut host = case.start().await;
        host.run(2).await;
        let other: weir_protocol::PipelineId = "refunds".parse().unwrap();
        let facts = host.ledger.raise_generation(&other, Generation(0), &manifest()).await.unwrap();
        assert_eq!((facts.get().head, facts.get().decisions.len()), (Head::GENESIS, 0));
        let known: Vec<_> = host.ledger.pipelines().await.unwrap().into_iter().map(|one| (one.pipeline.to_string(), one.generation.0, one.head.epoch.0)).collect();
        assert_eq!(known, [("orders".to_owned(), 1, 2), ("refunds".to_owned(), 1, 0)]);
        host.run(1).await;
        assert_eq!(host.ledger.peek(&other).await.unwrap().as_ref(), Some(facts.get()));
    }

    async fn of_two_hosts_that_extend_one_base_at_once_one_succeeds(case: Case) {
        let mut host = case.start().await;
        let other = case.open().await;
        for _ in 0..30 {
            let one = host.draft();
            let mut two = one.clone();
            two.handles[0].handle.push(b'!');
            let (a, b) = tokio::join!(host.ledger.decide(&one, &[]), other.decide(&two, &[]));
            let winner = match (a.unwrap(), b.unwrap()) {
                (Decided::Made(decision), Decided::Refused { head, .. }) | (Decided::Refused { head, .. }, Decided::Made(decision)) => {
                    assert_eq!(decision.get().head().unwrap(), head);
                    decision
                }
                both => panic!("{both:?}"),
            };
            host.state.apply_decision(&winner).unwrap();
            host.confirm(winner.get()).await;
        }
        assert_eq!(PipelineState::from_facts(&host.facts().await).unwrap(), host.state);
    }

    async fn of_two_hosts_that_raise_at_once_one_succeeds(case: Case) {
        let (one, two) = (case.open().await, case.open().await);
        for seen in 0..20 {
            let (seen, manifest) = (Generation(seen), manifest());
            let name = pipeline();
            let (a, b) = tokio::join!(one.raise_generation(&name, seen, &manifest), two.raise_generation(&name, seen, &manifest));
            let (winner, loser) = if a.is_ok() { (a, b) } else { (b, a) };
            assert_eq!(winner.unwrap().get().generation, seen.next());
            is_fenced(loser, seen.0, seen.0 + 1);
        }
    }

    async fn a_second_host_is_refused_and_told_who_holds_the_lease(case: Case) {
        let (one, two) = (case.open().await, case.open().await);
        let (first, second) = (holder("first"), holder("second"));
        assert_eq!(one.take_lease(&first, None).await.unwrap(), LeaseAnswer::Taken);
        assert_eq!(one.take_lease(&first, None).await.unwrap(), LeaseAnswer::Taken);
        let LeaseAnswer::Held { holder, .. } = two.take_lease(&second, None).await.unwrap() else { panic!("it has two holders") };
        assert_eq!(holder, first);
        assert!(holder.to_string().contains(&std::process::id().to_string()));
        let error = two.heartbeat(&second).await.unwrap_err();
        assert!(error.to_string().contains(&first.to_string()), "{error}");
        two.release_lease(&second).await.unwrap();
        assert!(matches!(two.take_lease(&second, None).await.unwrap(), LeaseAnswer::Held { .. }));
        one.release_lease(&first).await.unwrap();
        assert_eq!(two.take_lease(&second, None).await.unwrap(), LeaseAnswer::Taken);
        assert!(matches!(one.heartbeat(&first).await, Err(LedgerError::LeaseLost { .. })));
    }

    async fn a_holder_whose_counter_stands_still_is_replaced_and_one_that_beats_is_not(case: Case) {
        let (one, two) = (case.open().await, case.open().await);
        let (first, second) = (holder("first"), holder("second"));
        one.take_lease(&first, None).await.unwrap();
        let seen = two.take_lease(&second, None).await.unwrap();
        one.heartbeat(&first).await.unwrap();
        let moved = two.take_lease(&second, Some(&seen)).await.unwrap();
        let (LeaseAnswer::Held { counter: before, .. }, LeaseAnswer::Held { counter: after, .. }) = (&seen, &moved) else { panic!("{moved:?}") };
        assert!(after > before);
        assert_eq!(two.take_lease(&second, Some(&moved)).await.unwrap(), LeaseAnswer::Taken);
        assert!(matches!(one.heartbeat(&first).await, Err(LedgerError::LeaseLost { holder }) if holder == second.to_string()));
        two.heartbeat(&second).await.unwrap();
        // What the first had been told of another holder says nothing about this one.
        assert!(matches!(one.take_lease(&first, Some(&moved)).await.unwrap(), LeaseAnswer::Held { .. }));
    }

    async fn a_killed_holder_is_replaced_at_once(case: Case) {
        let ledger = case.open().await;
        let mut child = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        let start = stat.rsplit_once(") ").unwrap().1.split(' ').nth(19).unwrap().parse().unwrap();
        let killed = Holder { pid: child.id(), process_start_ticks: start, ..holder("killed") };
        ledger.take_lease(&killed, None).await.unwrap();
        let next = holder("next");
        assert!(matches!(ledger.take_lease(&next, None).await.unwrap(), LeaseAnswer::Held { .. }));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(ledger.take_lease(&next, None).await.unwrap(), LeaseAnswer::Taken);
    }
}

mod lost_answers {
    use super::*;
    use weir_ledger::memory::LostAnswer;

    fn is_unknown(answer: Result<Decided, LedgerError>) {
        assert!(matches!(answer, Err(LedgerError::Unavailable { .. })), "{answer:?}");
    }

    #[tokio::test]
    async fn a_decision_of_unknown_outcome_is_made_once_when_it_is_sent_again() {
        for how in [LostAnswer::Made, LostAnswer::NotMade] {
            let ledger = MemoryLedger::new(LedgerId::from_random([1; 8]));
            let host = Host::start(Arc::new(ledger.clone())).await;
            let decision = host.draft();
            ledger.lose_next_answer(how);
            is_unknown(ledger.decide(&decision, &[]).await);
            made(ledger.decide(&decision, &[]).await);
            assert_eq!(host.facts().await.decisions, [decision]);
        }
    }

    #[tokio::test]
    async fn a_decision_of_unknown_outcome_is_told_apart_after_another_generation_came() {
        for how in [LostAnswer::Made, LostAnswer::NotMade] {
            let ledger = MemoryLedger::new(LedgerId::from_random([1; 8]));
            let host = Host::start(Arc::new(ledger.clone())).await;
            let decision = host.draft();
            ledger.lose_next_answer(how);
            is_unknown(ledger.decide(&decision, &[]).await);
            Host::start(Arc::new(ledger.clone())).await;
            match (how, ledger.decide(&decision, &[]).await.unwrap()) {
                (LostAnswer::Made, Decided::Made(made)) => assert_eq!(made.get(), &decision),
                (LostAnswer::NotMade, Decided::Refused { generation, head }) => {
                    assert_eq!((generation, head), (Generation(2), Head::GENESIS));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[tokio::test]
    async fn a_backup_goes_its_own_way_under_the_same_id() {
        let ledger = MemoryLedger::new(LedgerId::from_random([1; 8]));
        let mut host = Host::start(Arc::new(ledger.clone())).await;
        host.run(2).await;
        let backup = ledger.backup();
        host.run(3).await;
        assert_eq!(backup.id(), ledger.id());
        assert_eq!(backup.peek(&pipeline()).await.unwrap().unwrap().head.epoch, Epoch(2));
        // A host that runs on when the backup is put in the ledger's place cannot extend it.
        assert!(matches!(backup.decide(&host.draft(), &[]).await.unwrap(), Decided::Refused { .. }));
    }
}
