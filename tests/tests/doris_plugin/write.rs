//! Begin, invoke and precommit.

use doris_emulator::{Fault, FaultName, TransactionState};
use serde_json::json;
use std::time::{Duration, Instant};
use weir_engine::{Code, Fault as AtFault};
use weir_protocol::Verdict;

use crate::rig::{DB, PATIENCE, Rig, TABLE, bare, csv, json_lines, lines, orders};

#[tokio::test(flavor = "multi_thread")]
async fn an_epoch_is_invisible_until_it_is_committed() {
    let mut rig = Rig::new().await;
    let mut writer = rig.writer(json!({})).await;
    let mut shown = Vec::new();
    for epoch in 0..3 {
        let records = orders(epoch * 100..(epoch + 1) * 100);
        let transaction = rig.transaction(1);
        let (next, prepared) = rig.prepare(writer, &[lines(&records[..60]), lines(&records[60..])]).await.unwrap();
        writer = next;
        assert_eq!(prepared.records, Some(100));
        assert_eq!(rig.doris_transaction(&transaction).unwrap().state, TransactionState::Precommitted);
        assert_eq!(rig.rows(), shown);
        let permit = rig.permit(&prepared).await;
        assert_eq!(rig.commit(permit).await.unwrap(), Verdict::Committed);
        shown.extend(records);
        assert_eq!(rig.rows(), shown);
    }
    rig.assert_clean();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_body_goes_out_while_records_arrive() {
    let rig = Rig::new().await;
    let mut open = rig.writer(json!({})).await.begin(&rig.transaction(1)).await.unwrap();
    let mut sent = 0;
    for batch in 0..5 {
        let records = orders(batch * 1_000..(batch + 1) * 1_000);
        sent += records.iter().map(|record| record.len() as u64 + 1).sum::<u64>();
        open.invoke(&lines(&records)).await.unwrap();
        rig.doris.wait_for("body_bytes", sent, PATIENCE).unwrap();
    }
    let (_, prepared) = open.precommit().await.unwrap();
    assert_eq!(prepared.records, Some(5_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_does_not_grow_with_the_epoch() {
    const BATCHES: u64 = 384;
    let mut rig = Rig::with(|options| options.discard = true).await;
    // Far less than the epoch, so that the plugin would trap if it kept it.
    rig.limits.memory_bytes = 16 << 20;
    let record = format!(r#"{{"id":1,"note":"{}"}}"#, "x".repeat(1_000));
    let batch = lines(&vec![record.clone(); (1 << 20) / (record.len() + 1)]);
    let mut open = rig.writer(json!({})).await.begin(&rig.transaction(1)).await.unwrap();
    let mut after_warm_up = 0;
    for sent in 0..BATCHES {
        open.invoke(&batch).await.unwrap();
        if sent == 64 {
            after_warm_up = resident_bytes();
        }
    }
    let grown = resident_bytes().saturating_sub(after_warm_up);
    let (_, prepared) = open.precommit().await.unwrap();
    assert_eq!(prepared.records, Some(BATCHES * u64::from(batch.count)));
    assert!(grown < 64 << 20, "{} MiB more for {} MiB of records", grown >> 20, BATCHES - 64);
}

/// Memory of this process, which holds engine and emulator.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

#[tokio::test(flavor = "multi_thread")]
async fn csv_fields_go_to_the_columns_of_the_header() {
    let mut rig = Rig::new().await;
    let writer = rig.try_writer(csv(&["note", "id"]), json!({})).await.unwrap();
    let rows = ["plain,1".to_owned(), r#""with, comma and ""quotes""",2"#.to_owned(), "\\N,3".to_owned()];
    let (_, prepared) = rig.prepare(writer, &[lines(&rows), bare(&["\"two\nlines\",4"])]).await.unwrap();
    let permit = rig.permit(&prepared).await;
    rig.commit(permit).await.unwrap();
    let shown = rig.rows();
    assert_eq!(shown[..3], rows);
    assert_eq!(shown[3], "\"two\nlines\",4");
    rig.assert_clean();
}

#[tokio::test(flavor = "multi_thread")]
async fn bare_json_becomes_lines_and_what_cannot_be_a_row_is_rejected() {
    let mut rig = Rig::new().await;
    let mut open = rig.writer(json!({})).await.begin(&rig.transaction(1)).await.unwrap();
    let rejections = open.invoke(&bare(&["{\"id\":\n1}", "", "{\"id\":2}"])).await.unwrap();
    assert_eq!(rejections.iter().map(|rejection| rejection.index).collect::<Vec<_>>(), [1]);
    let (_, prepared) = open.precommit().await.unwrap();
    assert_eq!(prepared.records, Some(2));
    let permit = rig.permit(&prepared).await;
    rig.commit(permit).await.unwrap();
    assert_eq!(rig.rows(), ["{\"id\": 1}", "{\"id\":2}"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_do_not_fit_are_bad_data_in_doriss_words() {
    let mut rig = Rig::new().await;
    let transaction = rig.transaction(1);
    let records = [r#"{"id":1}"#.to_owned(), r#"{"id":"seventeen"}"#.to_owned()];
    let error = rig.prepare(rig.writer(json!({})).await, &[lines(&records)]).await.err().unwrap();
    assert_eq!((error.code(), error.target_code()), (Code::PluginBadData, Some("Fail")), "{error}");
    assert!(error.message().contains("too many filtered rows") && error.message().contains("seventeen"), "{error}");
    rig.abort(&transaction).await.unwrap();
    assert_eq!(rig.rows(), [""; 0]);
    rig.assert_clean();
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_get_lost_on_the_way_are_noticed() {
    let rig = Rig::new().await;
    rig.doris.arm(&Fault { param: "1".into(), ..Fault::new(FaultName::LoadLoseRows) }).unwrap();
    let error = rig.prepare(rig.writer(json!({})).await, &[lines(&orders(0..10))]).await.err().unwrap();
    assert_eq!(error.code(), Code::PluginBadData, "{error}");
    assert!(error.message().contains("10 records were sent and Doris counts 9 rows"), "{error}");

    // The same for a blank line, which nobody looks for on the way.
    let rig = Rig::new().await;
    let error = rig.prepare(rig.writer(json!({})).await, &[lines(&[r#"{"id":1}"#.to_owned(), String::new()])]).await.err().unwrap();
    assert_eq!(error.code(), Code::PluginBadData, "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_label_that_doris_knows_is_a_conflict() {
    for finish in [true, false] {
        let rig = Rig::new().await;
        let open = rig.writer(json!({})).await.begin(&rig.transaction(1)).await.unwrap();
        // Prepared, or still under way: either way the label is taken.
        let open = if finish {
            drop(open.precommit().await.unwrap());
            None
        } else {
            Some(open)
        };
        let error = rig.prepare(rig.writer(json!({})).await, &[lines(&orders(0..10))]).await.err().unwrap();
        assert_eq!(error.code(), Code::PluginConflict, "{error}");
        drop(open);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_before_the_body_keeps_doriss_words() {
    for (words, code) in [
        (
            "[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = current running txns on db 10006 is 1000, larger than limit 1000",
            Code::PluginUnavailable,
        ),
        ("[NOT_IMPLEMENTED_ERROR]stream load 2pc is unsupported for mow table", Code::PluginRefused),
        ("[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = unknown database, database=x", Code::PluginRefused),
    ] {
        let rig = Rig::new().await;
        rig.doris.arm(&Fault { param: words.into(), ..Fault::new(FaultName::LoadFailAtBegin) }).unwrap();
        let error = rig.writer(json!({})).await.begin(&rig.transaction(1)).await.err().unwrap();
        assert_eq!(error.code(), code, "{error}");
        assert!(error.message().contains(words), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_that_breaks_off_leaves_nothing() {
    for fault in [
        Fault::new(FaultName::LoadDropAfterBegin),
        Fault { param: "leave-prepare".into(), ..Fault::new(FaultName::LoadDropAfterBegin) },
        Fault { param: "1000".into(), ..Fault::new(FaultName::LoadDropMidBody) },
        Fault::new(FaultName::LoadDropAfterBody),
        Fault { param: "leave-prepare".into(), ..Fault::new(FaultName::LoadDropAfterBody) },
        Fault::new(FaultName::LoadDropAfterPrecommit),
        Fault::new(FaultName::LoadFailAfterPrecommit),
        Fault { param: "[E-235]too many versions".into(), ..Fault::new(FaultName::LoadFail) },
    ] {
        let mut rig = Rig::new().await;
        rig.doris.arm(&fault).unwrap();
        let transaction = rig.transaction(1);
        let error = rig.prepare(rig.writer(json!({})).await, &[lines(&orders(0..200)), lines(&orders(200..400))]).await.err().unwrap();
        assert_eq!(error.code(), Code::PluginUnavailable, "{}: {error}", fault.name);
        rig.abort(&transaction).await.unwrap();
        assert_eq!(rig.rows(), [""; 0], "{}", fault.name);
        rig.assert_clean();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_writer_that_goes_away_never_looks_finished() {
    let rig = Rig::new().await;
    let transaction = rig.transaction(1);
    let mut open = rig.writer(json!({})).await.begin(&transaction).await.unwrap();
    open.invoke(&lines(&orders(0..100))).await.unwrap();
    rig.doris.wait_for("loads_begun", 1, PATIENCE).unwrap();
    open.close().await.unwrap();
    rig.doris.wait_for("bodies_broken", 1, PATIENCE).unwrap();
    rig.doris.wait_for("loads_failed", 1, PATIENCE).unwrap();
    assert_eq!(rig.doris_transaction(&transaction).unwrap().state, TransactionState::Aborted);
    rig.assert_clean();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_that_does_not_read_ends_the_call_before_the_host_does() {
    let mut rig = Rig::new().await;
    rig.limits.call = Duration::from_secs(2);
    rig.doris.arm(&Fault::new(FaultName::LoadStallBody).delay(PATIENCE)).unwrap();
    let big = vec![format!(r#"{{"id":1,"note":"{}"}}"#, "x".repeat(1_000)); 1_000];
    let mut open = rig.writer(json!({})).await.begin(&rig.transaction(1)).await.unwrap();
    let batch = lines(&big);
    let since = Instant::now();
    let error = loop {
        if let Err(error) = open.invoke(&batch).await {
            break error;
        }
        assert!(since.elapsed() < PATIENCE, "nothing ever blocks");
    };
    assert_eq!((error.code(), error.fault()), (Code::PluginUnavailable, AtFault::Target), "{error}");
    open.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_that_begins_after_its_sender_is_gone_is_swept_later() {
    let mut rig = Rig::new().await;
    rig.doris.arm(&Fault::new(FaultName::LoadHold)).unwrap();
    rig.limits.call = Duration::from_secs(2);
    let transaction = rig.transaction(1);
    let error = rig.prepare(rig.writer(json!({})).await, &[lines(&orders(0..10))]).await.err().unwrap();
    assert_eq!(error.code(), Code::PluginUnavailable, "{error}");
    // The first pass finds nothing, since nothing has begun.
    rig.abort(&transaction).await.unwrap();
    rig.doris.release(None).unwrap();
    rig.doris.wait_for("loads_precommitted", 1, PATIENCE).unwrap();
    assert_eq!(rig.doris_transaction(&transaction).unwrap().state, TransactionState::Precommitted);
    // The pass after the settle time does.
    rig.abort(&transaction).await.unwrap();
    assert_eq!(rig.doris_transaction(&transaction).unwrap().state, TransactionState::Aborted);
    rig.assert_clean();
}

#[tokio::test(flavor = "multi_thread")]
async fn loads_of_small_epochs_reuse_one_writer() {
    let mut rig = Rig::new().await;
    let mut writer = rig.writer(json!({})).await;
    for epoch in 0..30 {
        let (next, prepared) = rig.prepare(writer, &[lines(&orders(epoch..epoch + 1))]).await.unwrap();
        writer = next;
        let permit = rig.permit(&prepared).await;
        assert_eq!(rig.commit(permit).await.unwrap(), Verdict::Committed);
    }
    assert_eq!(rig.rows(), orders(0..30));
    let counts = rig.doris.table_counts(DB, TABLE).unwrap();
    assert_eq!((counts.rows, counts.loads), (30, 30));
    writer.close().await.unwrap();
    rig.assert_clean();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_epoch_without_rows_can_be_prepared_and_committed() {
    let mut rig = Rig::new().await;
    let writer = rig.try_writer(json_lines(), json!({})).await.unwrap();
    let (_, prepared) = rig.prepare(writer, &[]).await.unwrap();
    assert_eq!(prepared.records, Some(0));
    let permit = rig.permit(&prepared).await;
    assert_eq!(rig.commit(permit).await.unwrap(), Verdict::Committed);
}
