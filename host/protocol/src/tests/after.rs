//! Answers to next steps: one row for each answer.

use super::*;
use crate::decide::{AbortAnswer, AfterAbort, AfterCommit, UNKNOWN_ANSWERS_ALLOWED, after_abort, after_commit};

#[test]
fn what_follows_from_a_verdict() {
    let transaction = transaction("a", 1, 3, 1);
    let confirm = |verdict| AfterCommit::Confirm(Confirmation { epoch: Epoch(3), label: transaction.label.clone(), verdict });
    let last = UNKNOWN_ANSWERS_ALLOWED;
    for (verdict, unknown_before, expected) in [
        (Verdict::Committed, 0, confirm(Verdict::Committed)),
        (Verdict::Committed, last + 9, confirm(Verdict::Committed)),
        (Verdict::AlreadyCommitted, 0, confirm(Verdict::AlreadyCommitted)),
        (Verdict::AlreadyCommitted, last, confirm(Verdict::AlreadyCommitted)),
        (Verdict::Lost, 0, AfterCommit::Repair),
        (Verdict::Lost, last + 1, AfterCommit::Repair),
        (Verdict::Unknown, 0, AfterCommit::AskAgain),
        (Verdict::Unknown, last - 1, AfterCommit::AskAgain),
        (Verdict::Unknown, last, AfterCommit::AskOperator),
        (Verdict::Unknown, u32::MAX, AfterCommit::AskOperator),
    ] {
        assert_eq!(after_commit(&transaction, verdict, unknown_before), expected, "{verdict:?} after {unknown_before}");
    }
}

#[test]
fn what_follows_from_an_abort() {
    for (answer, expected) in [
        (AbortAnswer::Gone, AfterAbort::Clean),
        (AbortAnswer::Failed, AfterAbort::AskAgain),
        (AbortAnswer::FoundCommitted, AfterAbort::LedgerIsOlder),
    ] {
        assert_eq!(after_abort(answer), expected);
    }
}
