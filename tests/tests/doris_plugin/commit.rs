//! Commit: in any process, any number of times, through any fault.

use std::time::Duration;

use doris_emulator::{Fault, FaultName, TransactionState};
use serde_json::json;
use weir_engine::{Code, InstanceState};
use weir_protocol::{CommitPermit, Transaction, Verdict};

use crate::rig::{Rig, lines, orders};

/// A decided epoch of ten rows.
async fn decided(rig: &mut Rig) -> (Transaction, CommitPermit) {
    let transaction = rig.transaction(1);
    let (writer, prepared) = rig.prepare(rig.writer(json!({})).await, &[lines(&orders(0..10))]).await.unwrap();
    writer.close().await.unwrap();
    (transaction, rig.permit(&prepared).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_of_a_commit_ends_in_rows_that_are_visible_once() {
    let thrift_undone = Fault { param: "not-done".into(), ..Fault::new(FaultName::CommitThriftError) };
    for (fault, verdict) in [
        (Fault::new(FaultName::CommitDropBefore), Verdict::Committed),
        (Fault::new(FaultName::CommitDropAfter), Verdict::AlreadyCommitted),
        (Fault::new(FaultName::CommitThriftError), Verdict::AlreadyCommitted),
        (thrift_undone, Verdict::Committed),
        (Fault::new(FaultName::CommitLockTimeout).times(3), Verdict::Committed),
        (Fault::new(FaultName::CommitNotMaster).times(2), Verdict::Committed),
        (Fault::new(FaultName::CommitDoubleSend), Verdict::AlreadyCommitted),
        (Fault::new(FaultName::CommitDelay).delay(Duration::from_millis(300)), Verdict::Committed),
        (Fault::new(FaultName::FeDrop), Verdict::Committed),
        (Fault::new(FaultName::FeUnavailable), Verdict::Committed),
        (Fault::new(FaultName::FeRedirectDead).times(2), Verdict::Committed),
        (Fault::new(FaultName::Outage).times(3), Verdict::Committed),
    ] {
        for dialect in ["2.1", "4.0", "cloud"] {
            let mut rig = Rig::new().await;
            // So that a second commit can find it committed and not visible yet.
            rig.doris.change_settings(&json!({ "dialect": dialect, "publish_delay_ms": 50 })).unwrap();
            let (transaction, permit) = decided(&mut rig).await;
            rig.doris.arm(&fault).unwrap();
            let answer = rig.commit(permit).await.map_err(|(_, error)| error);
            assert_eq!(answer.unwrap(), verdict, "{} of {dialect}", fault.name);
            rig.doris.advance_clock(Duration::from_secs(1)).unwrap();
            assert_eq!(rig.rows(), orders(0..10), "{} of {dialect}", fault.name);
            assert_eq!(rig.doris_transaction(&transaction).unwrap().state, TransactionState::Visible);
            rig.assert_clean();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_is_repeated_from_two_processes_at_once() {
    let mut rig = Rig::new().await;
    let (_, prepared) = rig.prepare(rig.writer(json!({})).await, &[lines(&orders(0..10))]).await.unwrap();
    let decision = rig.decide(&prepared).await;
    let permit = || decision.permits().pop().unwrap();
    let (first, second) = tokio::join!(rig.commit(permit()), rig.commit(permit()));
    let mut verdicts = [first.unwrap(), second.unwrap()];
    verdicts.sort_by_key(|verdict| *verdict as u8);
    assert_eq!(verdicts, [Verdict::Committed, Verdict::AlreadyCommitted]);
    assert_eq!(rig.commit(permit()).await.unwrap(), Verdict::AlreadyCommitted);
    assert_eq!(rig.rows(), orders(0..10));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_cannot_get_through_is_unavailable_and_works_later() {
    let mut rig = Rig::new().await;
    let (_, permit) = decided(&mut rig).await;
    rig.limits.call = Duration::from_secs(2);
    rig.doris.arm(&Fault::new(FaultName::Outage).times(1_000_000)).unwrap();
    let (permit, error) = rig.commit(permit).await.unwrap_err();
    assert_eq!((error.code(), error.instance()), (Code::PluginUnavailable, InstanceState::Usable), "{error}");
    rig.doris.clear_faults().unwrap();
    assert_eq!(rig.commit(permit).await.unwrap(), Verdict::Committed);
    assert_eq!(rig.rows(), orders(0..10));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_doris_gave_up_is_lost() {
    for dialect in ["2.1", "4.0", "cloud"] {
        let mut rig = Rig::new().await;
        rig.doris.change_settings(&json!({ "dialect": dialect })).unwrap();
        let (transaction, permit) = decided(&mut rig).await;
        rig.doris.advance_clock(Duration::from_secs(3_700)).unwrap();
        assert_eq!(rig.commit(permit).await.unwrap(), Verdict::Lost, "{dialect}");
        assert_eq!(rig.doris_transaction(&transaction).unwrap().state, TransactionState::Aborted);
        assert_eq!(rig.rows(), [""; 0]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_doris_has_forgotten_is_unknown() {
    let twelve_hours = Duration::from_secs(13 * 3_600);
    // Committed and forgotten, or aborted and forgotten: nobody can tell.
    for committed in [true, false] {
        let mut rig = Rig::new().await;
        let (_, prepared) = rig.prepare(rig.writer(json!({})).await, &[lines(&orders(0..10))]).await.unwrap();
        let decision = rig.decide(&prepared).await;
        let permit = || decision.permits().pop().unwrap();
        if committed {
            assert_eq!(rig.commit(permit()).await.unwrap(), Verdict::Committed);
        } else {
            rig.doris.advance_clock(Duration::from_secs(3_700)).unwrap();
            assert_eq!(rig.commit(permit()).await.unwrap(), Verdict::Lost);
        }
        rig.doris.advance_clock(twelve_hours).unwrap();
        assert_eq!(rig.commit(permit()).await.unwrap(), Verdict::Unknown, "committed: {committed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_survives_restarts_of_doris() {
    let mut rig = Rig::new().await;
    let (_, permit) = decided(&mut rig).await;
    rig.doris.restart_fe().unwrap();
    rig.doris.restart_be(0).unwrap();
    assert_eq!(rig.commit(permit).await.unwrap(), Verdict::Committed);
    assert_eq!(rig.rows(), orders(0..10));
}
