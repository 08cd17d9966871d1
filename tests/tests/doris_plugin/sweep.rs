//! Abort: whatever has the label, also when nothing has.

use std::time::Duration;

use doris_emulator::{Fault, FaultName, TransactionState};
use serde_json::json;
use weir_engine::{AbortAnswer, Code};
use weir_protocol::{Generation, Head};

use crate::rig::{Rig, lines, orders};

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_of_an_abort_ends_in_nothing_left() {
    let thrift_undone = Fault { param: "not-done".into(), ..Fault::new(FaultName::AbortThriftError) };
    for fault in [
        Fault::new(FaultName::AbortDropBefore),
        Fault::new(FaultName::AbortDropAfter),
        Fault::new(FaultName::AbortThriftError),
        thrift_undone,
        Fault::new(FaultName::AbortLockTimeout).times(3),
        Fault::new(FaultName::AbortNotMaster).times(2),
        Fault::new(FaultName::AbortDoubleSend),
        Fault::new(FaultName::AbortDelay).delay(Duration::from_millis(300)),
        Fault::new(FaultName::StateDrop),
        Fault::new(FaultName::Outage).times(3),
    ] {
        for dialect in ["2.1", "4.0", "cloud"] {
            let mut rig = Rig::new().await;
            rig.doris.change_settings(&json!({ "dialect": dialect })).unwrap();
            let transaction = rig.transaction(1);
            drop(rig.prepare(rig.writer(json!({})).await, &[lines(&orders(0..10))]).await.unwrap());
            rig.doris.arm(&fault).unwrap();
            assert_eq!(rig.abort(&transaction).await.unwrap(), AbortAnswer::Done, "{} of {dialect}", fault.name);
            assert_eq!(rig.doris_transaction(&transaction).unwrap().state, TransactionState::Aborted, "{} of {dialect}", fault.name);
            // A repeat, in the next generation.
            assert_eq!(rig.abort(&transaction).await.unwrap(), AbortAnswer::Done, "{} of {dialect}", fault.name);
            assert_eq!(rig.rows(), [""; 0]);
            rig.assert_clean();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_label_that_was_never_used_is_aborted_without_an_error() {
    for dialect in ["2.1", "4.0", "cloud"] {
        let mut rig = Rig::new().await;
        rig.doris.change_settings(&json!({ "dialect": dialect })).unwrap();
        let transaction = rig.transaction(2);
        assert_eq!(rig.abort(&transaction).await.unwrap(), AbortAnswer::Done);
        assert!(rig.doris_transaction(&transaction).is_none());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abort_of_what_is_committed_says_so() {
    for (dialect, publish_delay_ms) in [("2.1", 0), ("4.0", 0), ("4.0", 60_000), ("cloud", 0)] {
        let mut rig = Rig::new().await;
        rig.doris.change_settings(&json!({ "dialect": dialect, "publish_delay_ms": publish_delay_ms })).unwrap();
        // A copy of the ledger from before the decision, put in its place afterwards.
        let older = rig.ledger.backup();
        let transaction = rig.transaction(1);
        let (_, prepared) = rig.prepare(rig.writer(json!({})).await, &[lines(&orders(0..10))]).await.unwrap();
        let permit = rig.permit(&prepared).await;
        rig.commit(permit).await.unwrap();
        rig.restore(older, Generation(1), Head::GENESIS);
        let answer = rig.abort(&transaction).await.unwrap();
        assert!(matches!(answer, AbortAnswer::Committed { .. }), "{answer:?} of {dialect}");
        rig.doris.advance_clock(Duration::from_secs(120)).unwrap();
        assert_eq!(rig.rows(), orders(0..10));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abort_that_cannot_get_through_is_unavailable() {
    let mut rig = Rig::new().await;
    rig.limits.call = Duration::from_secs(2);
    let transaction = rig.transaction(1);
    rig.doris.arm(&Fault::new(FaultName::Outage).times(1_000_000)).unwrap();
    let error = rig.abort(&transaction).await.unwrap_err();
    assert_eq!(error.code(), Code::PluginUnavailable, "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn doris_that_cannot_abort_by_label_is_refused() {
    let mut rig = Rig::new().await;
    rig.doris.change_settings(&json!({ "dialect": "2.0" })).unwrap();
    let transaction = rig.transaction(1);
    let error = rig.abort(&transaction).await.unwrap_err();
    assert_eq!(error.code(), Code::PluginRefused, "{error}");
}
