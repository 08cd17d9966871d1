//! The file plugin as a component in the engine, in a real folder: what is visible when, and what each fault becomes.
//!
//! The plugin's own tests crash it at every step and fail every step; these show that the same holds through wasi:filesystem.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed unwrap is a failed test")]

mod rig;

use std::fs;

use rig::{Rig, bare, granted, lines};
use serde_json::json;
use weir_engine::{AbortAnswer, Code, CommitFailure, CommitProblem, Format, Grants, InstanceState, Limits, PluginError};
use weir_protocol::Verdict;

/// The error of a commit that failed.
fn failed(failure: CommitFailure) -> PluginError {
    match failure.problem {
        CommitProblem::Failed(error) => error,
        CommitProblem::Unknown => panic!("the file sink never answers unknown"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_says_what_it_is_and_what_it_needs() {
    let rig = Rig::new(json!({})).await;
    let description = rig.plugin.description();
    assert_eq!((description.name.as_str(), description.written_format()), ("file", "file-1"));
    assert_eq!(description.config_schema["required"], json!(["directory", "prefix"]));
    assert!(description.documentation.contains("Exactly once"));
    let missing = rig.plugin.missing_grants(&Grants::default());
    assert!(missing.iter().any(|missing| missing.interface == "wasi:filesystem/types" && missing.declared));
    assert_eq!(rig.plugin.missing_grants(&rig.grants), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_epoch_is_invisible_until_its_commit_and_then_one_file() {
    let mut rig = Rig::new(json!({})).await;
    let writer = rig.writer().await;
    assert_eq!(writer.profile().target, "file:/out");
    assert_eq!(writer.profile().max_batch_bytes, Some(1 << 20));
    let label = rig.transaction().label.to_string();
    let prepared = rig.prepare(writer, &[lines("{\"id\":1}\n{\"id\":2}\n"), lines("{\"id\":3}\n")]).await;
    assert_eq!(prepared.records, Some(3));
    assert_eq!((rig.visible(), rig.hidden()), (vec![], vec![format!(".{label}.0.open")]));

    let decision = rig.decide(&prepared).await;
    assert_eq!(rig.commit(&decision).await.unwrap(), Verdict::Committed);
    let expected = [(format!("orders-{label}.jsonl"), b"{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n".to_vec())];
    assert_eq!(rig.visible(), expected);
    assert_eq!(rig.commit(&decision).await.unwrap(), Verdict::AlreadyCommitted);
    assert_eq!((rig.visible(), rig.hidden()), (expected.to_vec(), vec![]));

    // A reader takes the file away, and it does not come back.
    fs::remove_file(rig.path().join(&expected[0].0)).unwrap();
    assert_eq!(rig.commit(&decision).await.unwrap(), Verdict::AlreadyCommitted);
    assert_eq!(rig.names(), [".weir-folder"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_epoch_much_larger_than_the_plugins_memory_is_written_whole() {
    let mut rig = Rig::new(json!({})).await;
    rig.limits = Limits { memory_bytes: 8 << 20, ..rig.limits };
    // Sizes below, at and above what the plugin buffers and what it writes at once.
    let batch = |size: usize, fill: char| format!("{}\n", String::from(fill).repeat(size - 1));
    let texts: Vec<String> =
        (0..48).map(|index| batch([5, 100_000, 1 << 20, (1 << 20) + 1, 5 << 19][index % 5], (b'a' + (index % 26) as u8).into())).collect();
    let batches: Vec<_> = texts.iter().map(|text| lines(text)).collect();
    let prepared = rig.prepare(rig.writer().await, &batches).await;
    assert_eq!(prepared.records, Some(48));
    let decision = rig.decide(&prepared).await;
    rig.commit(&decision).await.unwrap();
    let expected = texts.concat();
    assert!(expected.len() > 4 * rig.limits.memory_bytes);
    assert!(rig.texts() == [expected], "the file differs");
}

#[tokio::test(flavor = "multi_thread")]
async fn rolled_csv_files_are_numbered_and_each_has_the_header() {
    let mut rig = Rig::new(json!({ "roll_bytes": 20, "directory": "/out/in/side" })).await;
    fs::create_dir_all(rig.path().join("in/side")).unwrap();
    let label = rig.transaction().label.to_string();
    let writer = rig.try_writer(Format::Csv, &["id", "a,b"]).await.unwrap();
    let prepared = rig.prepare(writer, &[lines("1,one\n"), lines("2,two\n"), lines("3,three\n")]).await;
    let decision = rig.decide(&prepared).await;
    rig.commit(&decision).await.unwrap();
    let read = |number: u32| fs::read_to_string(rig.path().join(format!("in/side/orders-{label}.{number:05}.csv"))).unwrap();
    assert_eq!([read(0), read(1)], ["id,\"a,b\"\n1,one\n2,two\n", "id,\"a,b\"\n3,three\n"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn bare_records_become_lines_and_those_that_cannot_are_rejected() {
    let mut rig = Rig::new(json!({})).await;
    let mut open = rig.write(rig.writer().await, &[bare(&["{}", ""])]).await;
    let rejections = open.invoke(&bare(&["1", "two\nlines", "3"])).await.unwrap();
    assert_eq!(rejections.iter().map(|rejection| rejection.index).collect::<Vec<_>>(), [1]);
    assert!(rejections[0].reason.contains("line feed"), "{}", rejections[0].reason);
    let (_writer, prepared) = open.precommit().await.unwrap();
    assert_eq!(prepared.records, Some(4));
    let decision = rig.decide(&prepared).await;
    rig.commit(&decision).await.unwrap();
    assert_eq!(rig.texts(), ["{}\n\n1\n3\n"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_committers_at_once_publish_every_rolled_file_once() {
    let mut rig = Rig::new(json!({ "roll_bytes": 1 })).await;
    let batches: Vec<_> = (100..300).map(|id| lines(&format!("{id}\n"))).collect();
    let prepared = rig.prepare(rig.writer().await, &batches).await;
    assert!(prepared.handle.len() < 256);
    let decision = rig.decide(&prepared).await;
    let (first, second) = tokio::join!(rig.commit(&decision), rig.commit(&decision));
    assert!([first.unwrap(), second.unwrap()].contains(&Verdict::Committed));
    assert_eq!(rig.texts(), (100..300).map(|id| format!("{id}\n")).collect::<Vec<_>>());
    assert_eq!(rig.hidden(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_decision_names_is_removed_by_another_process() {
    for prepared in [false, true] {
        let mut rig = Rig::new(json!({ "roll_bytes": 1 })).await;
        let transaction = rig.transaction();
        let open = rig.write(rig.writer().await, &[lines("1\n"), lines("2\n")]).await;
        // The instance ends without a word to the target.
        match prepared {
            true => open.precommit().await.unwrap().0.close().await.unwrap(),
            false => open.close().await.unwrap(),
        }
        assert_eq!(rig.hidden().len(), 2);
        assert_eq!(rig.abort(&transaction).await.unwrap(), AbortAnswer::Done);
        assert_eq!(rig.names(), [".weir-folder"]);
    }
    let mut rig = Rig::new(json!({})).await;
    let never_begun = rig.transaction();
    assert_eq!(rig.abort(&never_begun).await.unwrap(), AbortAnswer::Done);
    assert_eq!(rig.names(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_older_than_the_folder_is_a_conflict_in_begin_and_in_abort() {
    let mut rig = Rig::new(json!({})).await;
    let prepared = rig.prepare(rig.writer().await, &[lines("1\n")]).await;
    let decision = rig.decide(&prepared).await;
    rig.commit(&decision).await.unwrap();
    rig.forget_decisions().await;
    let transaction = rig.transaction();
    let Err(error) = rig.writer().await.begin(&transaction).await else { panic!("begin took a label that is committed") };
    assert_eq!(error.code(), Code::PluginConflict);
    assert!(matches!(rig.abort(&transaction).await.unwrap(), AbortAnswer::Committed { .. }));
    assert_eq!(rig.texts(), ["1\n"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_mount_is_refused_until_it_is_back() {
    let mut rig = Rig::new(json!({})).await;
    let prepared = rig.prepare(rig.writer().await, &[lines("1\n")]).await;
    let decision = rig.decide(&prepared).await;
    let (mounted, underneath) = (rig.grants.clone(), tempfile::tempdir().unwrap());
    rig.grants = granted(underneath.path(), true);
    let error = failed(*rig.commit(&decision).await.unwrap_err());
    assert_eq!((error.code(), error.instance()), (Code::PluginRefused, InstanceState::Usable));
    assert!(error.message().contains(".weir-folder is missing"), "{}", error.message());
    assert!(fs::read_dir(underneath.path()).unwrap().next().is_none(), "nothing is written into the wrong folder");
    rig.grants = mounted;
    assert_eq!(rig.commit(&decision).await.unwrap(), Verdict::Committed);
    assert_eq!(rig.texts(), ["1\n"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_file_of_the_final_name_is_not_overwritten() {
    let mut rig = Rig::new(json!({})).await;
    let foreign = rig.path().join(format!("orders-{}.jsonl", rig.transaction().label));
    let prepared = rig.prepare(rig.writer().await, &[lines("1\n")]).await;
    let decision = rig.decide(&prepared).await;
    fs::write(&foreign, "somebody's").unwrap();
    let error = failed(*rig.commit(&decision).await.unwrap_err());
    assert_eq!(error.code(), Code::PluginRefused);
    assert_eq!(rig.texts(), ["somebody's"]);
    fs::remove_file(foreign).unwrap();
    assert_eq!(rig.commit(&decision).await.unwrap(), Verdict::Committed);
    assert_eq!(rig.texts(), ["1\n"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_probe_answers_for_the_folder_and_writes_nothing() {
    let mut rig = Rig::new(json!({})).await;
    assert_eq!(rig.probe().await.unwrap().target, "file:/out");
    assert_eq!(rig.names(), [""; 0]);
    rig.prepare(rig.writer().await, &[lines("1\n")]).await;
    let before = rig.names();
    rig.probe().await.unwrap();
    assert_eq!(rig.names(), before);

    rig.grants = granted(rig.path(), false);
    let error = rig.probe().await.unwrap_err();
    assert_eq!((error.code(), error.target_code()), (Code::PluginRefused, Some("read-only")));
    assert!(error.message().contains("/out cannot be written"), "{}", error.message());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_is_missing_or_not_granted_is_refused_with_words() {
    for (directory, words) in
        [("/out/missing", "it is not there"), ("/elsewhere", "no granted folder holds /elsewhere"), ("/out/file", "a file stands")]
    {
        let rig = Rig::new(json!({ "directory": directory })).await;
        fs::write(rig.path().join("file"), "").unwrap();
        for outcome in [rig.try_writer(Format::Json, &[]).await.map(drop), rig.probe().await.map(drop)] {
            let error = outcome.unwrap_err();
            assert_eq!(error.code(), Code::PluginRefused);
            assert!(error.message().contains(words), "{}", error.message());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_grant_is_refused_at_the_first_write() {
    let mut rig = Rig::new(json!({})).await;
    rig.grants = granted(rig.path(), false);
    let writer = rig.writer().await;
    let Err(error) = writer.begin(&rig.transaction()).await else { panic!("a read-only folder was written to") };
    assert_eq!((error.code(), error.target_code()), (Code::PluginRefused, Some("not-permitted")));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_config_leads_out_of_the_folder_also_if_nobody_checks_the_schema() {
    for keys in
        [json!({ "prefix": "../orders" }), json!({ "directory": "/out/../etc" }), json!({ "extension": "a/b" }), json!({ "colour": "red" })]
    {
        let rig = Rig::new(keys.clone()).await;
        let error = rig.try_writer(Format::Json, &[]).await.map(drop).unwrap_err();
        assert_eq!(error.code(), Code::PluginRefused, "{keys}");
    }
}
