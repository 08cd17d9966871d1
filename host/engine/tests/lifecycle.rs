//! The calls of a plugin's life, through plugins in several languages.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::fs;
use std::path::Path;

use serde_json::json;
use support::{abort_permit, commit_permit, failed, folder, lines, plugin, request, transaction};
use weir_engine::{AbortAnswer, Code, Fault, Grants, InstanceState, Limits, Retry};
use weir_protocol::Verdict;

fn visible(folder: &Path) -> Vec<(String, String)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), fs::read_to_string(entry.path()).unwrap()))
        .collect();
    files.sort();
    files
}

async fn counts_exactly_once(component: &str) {
    let plugin = plugin(component).await;
    let (folder, grants) = folder();
    let limits = Limits::default();
    let request = request(json!({ "directory": "/out" }));
    assert!(plugin.missing_grants(&grants).iter().all(|missing| !missing.declared));
    plugin.probe(&request, &grants, &limits).await.unwrap();

    let writer = plugin.open_writer(&request, &grants, &limits).await.unwrap();
    let mut open = writer.begin(&transaction(1)).await.unwrap();
    assert_eq!(open.invoke(&lines(0, &["one", "two"])).await.unwrap(), []);
    assert_eq!(open.invoke(&lines(2, &["three"])).await.unwrap(), []);
    let (writer, prepared) = open.precommit().await.unwrap();
    assert_eq!(prepared.records, Some(3));
    assert_eq!(visible(folder.path()), []);

    // The next epoch is filled while the one before is committed, and the one after is given up.
    let open = writer.begin(&transaction(2)).await.unwrap();
    let mut committer = plugin.open_committer(&request, &grants, &limits).await.unwrap();
    let format = plugin.description().written_format();
    let permit = |handle| commit_permit(&transaction(1), format, handle);
    assert_eq!(committer.commit(permit(prepared.handle.clone())).await.unwrap(), Verdict::Committed);
    assert_eq!(committer.commit(permit(prepared.handle)).await.unwrap(), Verdict::AlreadyCommitted);
    open.close().await.unwrap();
    assert_eq!(committer.abort(&abort_permit(2)).await.unwrap(), AbortAnswer::Done);
    assert!(matches!(committer.abort(&abort_permit(1)).await.unwrap(), AbortAnswer::Committed { .. }));
    committer.close().await.unwrap();

    let files = visible(folder.path());
    assert_eq!(files.iter().map(|(_, text)| text.trim()).collect::<Vec<_>>(), ["3"], "{files:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rust_plugin_counts_exactly_once() {
    counts_exactly_once("guests/count-rust.wasm").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_python_plugin_counts_exactly_once() {
    counts_exactly_once("guests/count-python.wasm").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_javascript_plugin_counts_exactly_once() {
    counts_exactly_once("guests/count-js.wasm").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handle_of_another_format_is_not_handed_over() {
    let plugin = plugin("guests/count-rust.wasm").await;
    let (_folder, grants) = folder();
    let request = request(json!({ "directory": "/out" }));
    let mut committer = plugin.open_committer(&request, &grants, &Limits::default()).await.unwrap();
    let failure = committer.commit(commit_permit(&transaction(1), "other/9", vec![1, 2])).await.unwrap_err();
    assert_eq!(failed(&failure).code(), Code::HandleFormat);
    assert_eq!(failure.permit.handle(), [1, 2], "the permit is given back");
    assert!(committer.usable());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_of_another_sink_is_not_handed_over() {
    let plugin = plugin("guests/count-rust.wasm").await;
    let (_folder, grants) = folder();
    let mut request = request(json!({ "directory": "/out" }));
    request.sink = "other".parse().unwrap();
    let writer = plugin.open_writer(&request, &grants, &Limits::default()).await.unwrap();
    let error = writer.begin(&transaction(1)).await.err().unwrap();
    assert_eq!((error.code(), error.fault()), (Code::WrongInstance, Fault::Host));
    let mut committer = plugin.open_committer(&request, &grants, &Limits::default()).await.unwrap();
    assert_eq!(committer.abort(&abort_permit(1)).await.unwrap_err().code(), Code::WrongInstance);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_grant_there_are_no_files() {
    let plugin = plugin("guests/count-rust.wasm").await;
    let missing = plugin.missing_grants(&Grants::default());
    let missing = missing.iter().find(|missing| missing.declared).expect("the plugin says that it needs a folder");
    assert!(missing.interface.starts_with("wasi:filesystem/"));
    assert!(format!("{:?}", missing.remedy).contains("grant: { folders:"), "{missing:?}");

    let error = plugin.open_writer(&request(json!({ "directory": "/out" })), &Grants::default(), &Limits::default()).await.err().unwrap();
    assert_eq!((error.code(), error.retry()), (Code::PluginRefused, Retry::Never));
    assert_eq!(error.instance(), InstanceState::Usable, "the plugin answered, and did not crash");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_granted_for_reading_is_not_written() {
    let plugin = plugin("guests/count-rust.wasm").await;
    let (folder, mut grants) = folder();
    grants.folders[0].write = false;
    let request = request(json!({ "directory": "/out" }));
    let outcome = async {
        let writer = plugin.open_writer(&request, &grants, &Limits::default()).await?;
        let mut open = writer.begin(&transaction(1)).await?;
        open.invoke(&lines(0, &["one"])).await?;
        open.precommit().await.map(|_| ())
    };
    outcome.await.expect_err("a write into a folder that may only be read");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_is_missing_is_named() {
    let plugin = plugin("guests/count-rust.wasm").await;
    let (folder, grants) = folder();
    let path = folder.path().display().to_string();
    drop(folder);
    let error = plugin.open_writer(&request(json!({ "directory": "/out" })), &grants, &Limits::default()).await.err().unwrap();
    assert_eq!(error.code(), Code::GrantFolder);
    assert!(error.message().contains(&path) && error.message().contains("/out"), "{error}");
}
