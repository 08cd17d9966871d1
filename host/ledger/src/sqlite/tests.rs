//! What only the inside shows: answers that get lost at the commit, and what each connection syncs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may")]

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use sqlx::{ConnectOptions, Connection, query_scalar};
use tempfile::TempDir;
use weir_protocol::{Delivery, LedgerId, Position, Positions, SplitId};

use super::*;
use crate::memory::LostAnswer;

fn pipeline() -> PipelineId {
    "orders".parse().unwrap()
}

async fn ledger() -> (TempDir, Arc<SqliteLedger>) {
    let folder = tempfile::tempdir().unwrap();
    let (ledger, _) = SqliteLedger::open(&folder.path().join("weir.db"), true).await.unwrap();
    raise(&ledger, 0).await;
    (folder, Arc::new(ledger))
}

async fn raise(ledger: &SqliteLedger, seen: u64) {
    let manifest = Manifest { lanes: 1, source: "data".to_owned(), delivery: Delivery::ExactlyOnce, sinks: vec![] };
    ledger.raise_generation(&pipeline(), Generation(seen), &manifest).await.unwrap();
}

/// The next decision of generation 1, which moves one split to `to`.
async fn draft(ledger: &SqliteLedger, to: u8) -> Decision {
    let head = ledger.peek(&pipeline()).await.unwrap().unwrap().head;
    let positions = Positions::from([(SplitId::try_from("a".to_owned()).unwrap(), Position(vec![to]))]);
    Decision {
        pipeline: pipeline(),
        generation: Generation(1),
        epoch: head.epoch.next(),
        base: head.epoch,
        base_hash: head.hash,
        snapshot: true,
        positions,
        handles: vec![],
    }
}

async fn decisions(ledger: &SqliteLedger) -> u64 {
    ledger.peek(&pipeline()).await.unwrap().unwrap().head.epoch.0
}

#[tokio::test]
async fn a_decision_whose_answer_to_commit_was_lost_is_made_once_when_it_is_sent_again() {
    for how in [LostAnswer::Made, LostAnswer::NotMade] {
        let (_folder, ledger) = ledger().await;
        let decision = draft(&ledger, 1).await;
        ledger.lost_answers.lock().unwrap().push_back(how);
        let answer = ledger.decide(&decision, &[]).await;
        assert!(matches!(answer, Err(LedgerError::Unavailable { .. })), "{answer:?}");
        assert_eq!(decisions(&ledger).await, u64::from(how == LostAnswer::Made));
        for _ in 0..2 {
            assert!(matches!(ledger.decide(&decision, &[]).await.unwrap(), Decided::Made(made) if *made.get() == decision));
        }
        assert_eq!(decisions(&ledger).await, 1);
    }
}

#[tokio::test]
async fn a_lost_answer_to_commit_is_told_apart_after_another_generation_came() {
    for how in [LostAnswer::Made, LostAnswer::NotMade] {
        let (_folder, ledger) = ledger().await;
        let decision = draft(&ledger, 1).await;
        ledger.lost_answers.lock().unwrap().push_back(how);
        ledger.decide(&decision, &[]).await.unwrap_err();
        raise(&ledger, 1).await;
        match (how, ledger.decide(&decision, &[]).await.unwrap()) {
            (LostAnswer::Made, Decided::Made(made)) => assert_eq!(*made.get(), decision),
            (LostAnswer::NotMade, Decided::Refused { generation: Generation(2), .. }) => {}
            (how, other) => panic!("{how:?}: {other:?}"),
        }
    }
}

/// A caller can stop waiting at every point of a decision: before it was begun, within it, at the commit. Each is an answer lost for real.
#[tokio::test]
async fn a_decision_that_nobody_waited_for_is_found_made_or_can_still_be_made() {
    let (_folder, ledger) = ledger().await;
    let mut abandoned = 0;
    for point in 0..200_u8 {
        let before = decisions(&ledger).await;
        let decision = draft(&ledger, point).await;
        {
            let mut call = pin!(ledger.decide(&decision, &[]));
            let mut finished = false;
            for _ in 0..point {
                if let Poll::Ready(answer) = call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                    answer.unwrap();
                    finished = true;
                    break;
                }
                // The connection's own thread works meanwhile.
                std::thread::yield_now();
            }
            abandoned += u32::from(!finished);
        }
        assert!(matches!(ledger.decide(&decision, &[]).await.unwrap(), Decided::Made(_)), "point {point}");
        assert_eq!(decisions(&ledger).await, before + 1, "point {point}");
    }
    assert!(abandoned > 50, "{abandoned}");
}

#[tokio::test]
async fn only_a_connection_that_decides_syncs_and_checkpoints() {
    let (_folder, ledger) = ledger().await;
    for (seat, synchronous, checkpoint_pages) in [(&ledger.decides, 2, 1000), (&ledger.beats, 1, 0)] {
        let mut session = seat.connection().await.unwrap();
        let found: i64 = query_scalar("PRAGMA synchronous").fetch_one(session.conn()).await.unwrap();
        let pages: i64 = query_scalar("PRAGMA wal_autocheckpoint").fetch_one(session.conn()).await.unwrap();
        assert_eq!((found, pages), (synchronous, checkpoint_pages));
        session.keep();
    }
    let mut session = ledger.reads.connection().await.unwrap();
    let written = query("DELETE FROM pipeline").execute(session.conn()).await;
    assert!(written.is_err(), "a reading connection cannot write");
}

/// A connection that another program has switched to another journal is refused by the check at its start.
#[tokio::test]
async fn a_ledger_whose_journal_mode_was_changed_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weir.db");
    let mut conn = session::options(&path).create_if_missing(true).connect().await.unwrap();
    query("CREATE TABLE ledger (id TEXT)").execute(&mut conn).await.unwrap();
    query("INSERT INTO ledger VALUES (?)").bind(LedgerId::from_random([1; 8]).to_string()).execute(&mut conn).await.unwrap();
    query("PRAGMA application_id = 0x57656972").execute(&mut conn).await.unwrap();
    query("PRAGMA user_version = 1").execute(&mut conn).await.unwrap();
    conn.close().await.unwrap();
    let error = SqliteLedger::open(&path, true).await.unwrap_err();
    assert!(error.to_string().contains("journal mode is delete"), "{error}");
}

#[test]
fn the_schema_version_is_that_of_the_newest_migration() {
    assert_eq!(open::newest_migration(), Some(open::SCHEMA_VERSION));
}
