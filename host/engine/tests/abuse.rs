//! Plugins that behave badly, one test for each abuse: it ends in a coded error that a person can read, and the host goes on.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::io::Read;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{commit_permit, component, engine, failed, folder, lines, plugin, request, transaction};
use weir_engine::{Code, CommitProblem, Fault, Grants, InstanceState, Limits, PluginError, Rejection, Retry};
use weir_protocol::Verdict;

const UNRULY: &str = "test-guests/unruly.wasm";
/// Long enough for any call that ends by itself, also on a busy machine.
const PATIENT: Duration = Duration::from_secs(60);
/// For calls that do not.
const SHORT: Duration = Duration::from_millis(500);

/// The life of a writer and a commit under that config, until something fails.
async fn life(config: Value, grants: &Grants, call: Duration) -> Result<(Vec<Rejection>, Option<u64>, Verdict), PluginError> {
    let plugin = plugin(UNRULY).await;
    let limits = Limits { call, ..Limits::default() };
    let request = request(config);
    let writer = plugin.open_writer(&request, grants, &limits).await?;
    let mut open = writer.begin(&transaction(1)).await?;
    let rejections = match open.invoke(&lines(0, &["one", "two", "three"])).await {
        Ok(rejections) => rejections,
        Err(error) => {
            open.close().await.unwrap();
            return Err(error);
        }
    };
    let (writer, prepared) = open.precommit().await?;
    writer.close().await.unwrap();
    let mut committer = plugin.open_committer(&request, grants, &limits).await?;
    let verdict =
        committer.commit(commit_permit(&transaction(1), "mirror/1", prepared.handle)).await.map_err(|failure| failed(&failure).clone())?;
    committer.close().await.unwrap();
    Ok((rejections, prepared.records, verdict))
}

/// The error that an abuse ends in. Afterwards a plugin that behaves goes through its life in the same engine.
async fn abused(mut config: Value, call: Duration) -> PluginError {
    let (_folder, grants) = folder();
    config["directory"] = "/out".into();
    let error = life(config, &grants, call).await.expect_err("an abuse");
    let (_folder, grants) = folder();
    let (_, records, verdict) = life(json!({ "directory": "/out" }), &grants, PATIENT).await.expect("the host goes on");
    assert_eq!((records, verdict), (Some(3), Verdict::Committed));
    assert!(error.to_string().len() < 8192, "a message of {} bytes", error.to_string().len());
    error
}

/// A dead instance, in a code and a message that names what is there to know.
fn assert_dead(error: &PluginError, code: Code, words: &[&str]) {
    assert_eq!((error.code(), error.instance()), (code, InstanceState::Dead), "{error}");
    for word in words {
        assert!(error.message().contains(word), "no `{word}` in: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn trap() {
    for call in ["open", "begin", "invoke", "precommit", "commit"] {
        let error = abused(json!({ "abuse": "trap", "in": call }), PATIENT).await;
        assert_dead(&error, Code::PluginTrap, &["crashed"]);
        assert_eq!((error.call().as_str(), error.fault(), error.retry()), (call, Fault::Plugin, Retry::Later));
        assert!(error.log().iter().any(|line| line.contains("it was asked to trap")), "no panic in the log: {:?}", error.log());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn exit() {
    assert_dead(&abused(json!({ "abuse": "exit" }), PATIENT).await, Code::PluginTrap, &["exit code 0"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn recurse() {
    assert_dead(&abused(json!({ "abuse": "recurse" }), PATIENT).await, Code::PluginTrap, &["stack"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn spin() {
    let error = abused(json!({ "abuse": "spin" }), SHORT).await;
    assert_dead(&error, Code::PluginTimeout, &["0.5 s", "limits"]);
}

#[tokio::test] // one thread: a loop that did not give it back would stop the time-out too
async fn spin_leaves_the_only_thread_to_others() {
    let (_folder, grants) = folder();
    let plugin = plugin(UNRULY).await;
    let limits = Limits { call: SHORT, ..Limits::default() };
    let writer = plugin.open_writer(&request(json!({ "directory": "/out", "abuse": "spin" })), &grants, &limits).await.unwrap();
    let mut open = writer.begin(&transaction(1)).await.unwrap();
    let others = async {
        let mut turns = 0;
        loop {
            tokio::time::sleep(Duration::from_millis(20)).await;
            turns += 1;
            if turns == 5 {
                return turns;
            }
        }
    };
    let (error, turns) = tokio::join!(async { open.invoke(&lines(0, &["one"])).await.unwrap_err() }, others);
    assert_eq!((error.code(), turns), (Code::PluginTimeout, 5));
}

#[tokio::test(flavor = "multi_thread")]
async fn wait_pollable() {
    assert_dead(&abused(json!({ "abuse": "wait-pollable" }), SHORT).await, Code::PluginTimeout, &["0.5 s"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn wait_http() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let (_folder, mut grants) = folder();
    grants.http = vec![address.parse().unwrap()];
    let config = json!({ "directory": "/out", "abuse": "wait-http", "address": address });
    let error = life(config, &grants, SHORT).await.unwrap_err();
    assert_dead(&error, Code::PluginTimeout, &["0.5 s"]);
    // Closing the instance closed its connection: the target sees the end, and does not wait for more.
    let (mut connection, _) = silent.accept().unwrap();
    connection.set_read_timeout(Some(PATIENT)).unwrap();
    let mut heard = Vec::new();
    let _ = connection.read_to_end(&mut heard);
    assert!(heard.starts_with(b"GET / HTTP/1.1\r\n"), "{}", String::from_utf8_lossy(&heard));
}

#[tokio::test(flavor = "multi_thread")]
async fn grow() {
    let error = abused(json!({ "abuse": "grow" }), PATIENT).await;
    assert_dead(&error, Code::PluginMemory, &["may have 256 MiB", "limits: { memory:"]);
    assert_eq!((error.fault(), error.retry()), (Fault::User, Retry::Never));
}

#[tokio::test(flavor = "multi_thread")]
async fn hoard() {
    assert_dead(&abused(json!({ "abuse": "hoard" }), PATIENT).await, Code::PluginTrap, &["crashed"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn flood_log() {
    let (_folder, grants) = folder();
    let log = support::Captured::start();
    let config = json!({ "directory": "/out", "abuse": "flood-log", "bytes": 5_000_000 });
    let (_, records, _) = life(config, &grants, PATIENT).await.expect("a flood is dropped, and harms nothing");
    assert_eq!(records, Some(3));
    let text = log.text();
    assert!(text.contains("log lines dropped"), "nobody says that lines were dropped");
    assert!(text.len() < 5_000_000, "{} bytes were logged", text.len());
    assert!(text.contains("weir::plugin") && text.contains("sink=\"out\"") && text.contains("stream=\"stderr\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn long_log_line() {
    let (_folder, grants) = folder();
    let config = json!({ "directory": "/out", "abuse": "long-log-line", "bytes": 5_000_000 });
    life(config, &grants, PATIENT).await.expect("a line is cut, and harms nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn huge_write() {
    assert_dead(&abused(json!({ "abuse": "huge-write" }), PATIENT).await, Code::PluginTransfer, &["more than 8 MiB in one call"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn call_http_without_a_grant() {
    let target = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = target.local_addr().unwrap().to_string();
    let error = abused(json!({ "abuse": "call-http", "address": address }), PATIENT).await;
    assert_eq!((error.code(), error.fault(), error.retry()), (Code::HttpNotGranted, Fault::User, Retry::Never), "{error}");
    assert!(error.message().contains(&format!("http to {address} is not granted; add `grant: {{ http: [\"{address}\"] }}`")), "{error}");
    assert!(error.message().contains("HttpRequestDenied"), "the plugin is told why: {error}");
    target.set_nonblocking(true).unwrap();
    assert_eq!(target.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "nothing was connected");
}

#[tokio::test(flavor = "multi_thread")]
async fn call_tcp() {
    let target = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = target.local_addr().unwrap().to_string();
    // A grant for HTTP is not one for TCP.
    let (_folder, mut grants) = folder();
    grants.http = vec![address.parse().unwrap()];
    let config = json!({ "directory": "/out", "abuse": "call-tcp", "address": address });
    let error = life(config, &grants, PATIENT).await.unwrap_err();
    assert_eq!(error.code(), Code::PluginRefused, "{error}");
    target.set_nonblocking(true).unwrap();
    assert_eq!(target.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "nothing was connected");
}

#[tokio::test(flavor = "multi_thread")]
async fn escape() {
    let (outside, _) = folder();
    let inside = outside.path().join("granted");
    std::fs::create_dir(&inside).unwrap();
    std::fs::write(outside.path().join("escape-secret"), "secret").unwrap();
    std::os::unix::fs::symlink(outside.path(), inside.join("link")).unwrap();
    let mut grants = Grants::default();
    grants.folders.push(weir_engine::Folder { guest: "/out".to_owned(), host: inside, write: true });
    grants.env.insert("LISTED".to_owned(), "yes".to_owned());
    let error = life(json!({ "directory": "/out", "abuse": "escape" }), &grants, PATIENT).await.unwrap_err();
    assert_eq!(error.code(), Code::PluginRefused, "{error}");
    assert!(error.message().ends_with("environment: [\"LISTED\"]"), "{error}");
    assert_eq!(std::fs::read_to_string(outside.path().join("escape-secret")).unwrap(), "secret");
}

#[tokio::test(flavor = "multi_thread")]
async fn fail() {
    for (kind, code) in [
        ("unavailable", Code::PluginUnavailable),
        ("refused", Code::PluginRefused),
        ("bad-data", Code::PluginBadData),
        ("conflict", Code::PluginConflict),
        ("broken", Code::PluginBroken),
    ] {
        let error = abused(json!({ "abuse": "fail", "kind": kind }), PATIENT).await;
        assert_eq!((error.code(), error.instance(), error.target_code()), (code, InstanceState::Usable, Some("TEST")), "{error}");
        assert_eq!(error.message(), "it was asked to fail");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn huge_error() {
    // More than one call may hand over.
    assert_dead(&abused(json!({ "abuse": "huge-error" }), PATIENT).await, Code::PluginTransfer, &["more than 8 MiB"]);
    // Less, but more than anybody reads.
    let error = abused(json!({ "abuse": "huge-error", "bytes": 1_000_000 }), PATIENT).await;
    assert_eq!((error.code(), error.instance()), (Code::PluginRefused, InstanceState::Usable));
    assert!(error.message().ends_with("[cut]") && error.message().len() <= 4096);
}

#[tokio::test(flavor = "multi_thread")]
async fn huge_target() {
    assert_dead(&abused(json!({ "abuse": "huge-target", "bytes": 100_000 }), PATIENT).await, Code::PluginProfile, &["1024 bytes"]);
    assert_dead(&abused(json!({ "abuse": "huge-target" }), PATIENT).await, Code::PluginTransfer, &["8 MiB"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn reject_last_is_allowed() {
    let (_folder, grants) = folder();
    let (rejections, records, _) = life(json!({ "directory": "/out", "abuse": "reject-last" }), &grants, PATIENT).await.unwrap();
    assert_eq!(rejections, [Rejection { index: 2, reason: "it was asked to reject".to_owned() }]);
    assert_eq!(records, Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn reject_twice() {
    assert_dead(&abused(json!({ "abuse": "reject-twice" }), PATIENT).await, Code::PluginRejection, &["record 0", "twice"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn reject_out_of_range() {
    assert_dead(&abused(json!({ "abuse": "reject-out-of-range" }), PATIENT).await, Code::PluginRejection, &["record 3 of a batch of 3"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn huge_reasons() {
    assert_dead(&abused(json!({ "abuse": "huge-reasons" }), PATIENT).await, Code::PluginTransfer, &["8 MiB"]);
    let (_folder, grants) = folder();
    let config = json!({ "directory": "/out", "abuse": "huge-reasons", "bytes": 1_000_000 });
    let (rejections, ..) = life(config, &grants, PATIENT).await.unwrap();
    assert!(rejections.len() == 3 && rejections.iter().all(|rejection| rejection.reason.len() <= 1024));
}

#[tokio::test(flavor = "multi_thread")]
async fn huge_handle() {
    let error = abused(json!({ "abuse": "huge-handle" }), PATIENT).await;
    assert_dead(&error, Code::PluginHandleSize, &["at most 64 KiB"]);
    assert_eq!(error.call().as_str(), "precommit");
    let error = abused(json!({ "abuse": "huge-handle", "bytes": 65_537 }), PATIENT).await;
    assert_dead(&error, Code::PluginHandleSize, &["65537 bytes"]);
    let (_folder, grants) = folder();
    life(json!({ "directory": "/out", "abuse": "huge-handle", "bytes": 65_536 }), &grants, PATIENT)
        .await
        .expect("the largest that is allowed");
}

#[tokio::test(flavor = "multi_thread")]
async fn verdict_unknown_gives_the_permit_back() {
    let (_folder, grants) = folder();
    let plugin = plugin(UNRULY).await;
    let request = request(json!({ "directory": "/out", "abuse": "verdict", "verdict": "unknown" }));
    let mut committer = plugin.open_committer(&request, &grants, &Limits::default()).await.unwrap();
    let failure = committer.commit(commit_permit(&transaction(1), "mirror/1", b"3".to_vec())).await.unwrap_err();
    assert!(matches!(failure.problem, CommitProblem::Unknown) && committer.usable());
    assert_eq!(failure.permit.handle(), b"3");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_instance_is_not_called_again() {
    let (folder, grants) = folder();
    let plugin = plugin(UNRULY).await;
    let request = request(json!({ "directory": "/out", "abuse": "trap", "in": "commit", "times": 1 }));
    let mut committer = plugin.open_committer(&request, &grants, &Limits::default()).await.unwrap();
    let permit = commit_permit(&transaction(1), "mirror/1", b"3".to_vec());
    let failure = committer.commit(permit).await.unwrap_err();
    assert_dead(failed(&failure), Code::PluginTrap, &[]);
    assert!(!committer.usable());
    let failure = committer.commit(failure.permit).await.unwrap_err();
    assert_dead(failed(&failure), Code::PluginDead, &[]);
    let events = std::fs::read_to_string(folder.path().join("events-0.jsonl")).unwrap();
    assert_eq!(events.lines().filter(|line| line.contains("\"call\":\"commit\"")).count(), 1, "{events}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_given_up_ends_the_instance() {
    let (_folder, grants) = folder();
    let plugin = plugin(UNRULY).await;
    let request = request(json!({ "directory": "/out", "abuse": "wait-pollable", "in": "commit" }));
    let mut committer = plugin.open_committer(&request, &grants, &Limits::default()).await.unwrap();
    let commit = committer.commit(commit_permit(&transaction(1), "mirror/1", b"3".to_vec()));
    assert!(tokio::time::timeout(SHORT, commit).await.is_err());
    assert!(!committer.usable());
    committer.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn describe_trap() {
    describe_fails("describe-trap.wasm", Code::PluginTrap, "crashed").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn describe_spin() {
    let started = Instant::now();
    describe_fails("describe-spin.wasm", Code::PluginTimeout, "did not return").await;
    assert!(started.elapsed() < 3 * weir_engine::limits::DESCRIBE_LIMIT);
}

#[tokio::test(flavor = "multi_thread")]
async fn describe_huge() {
    describe_fails("describe-huge.wasm", Code::PluginTransfer, "8 MiB").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn describe_garbage() {
    describe_fails("describe-garbage.wasm", Code::PluginDescription, "name").await;
}

async fn describe_fails(file: &str, code: Code, words: &str) {
    let error = engine().await.load(&component(&format!("test-guests/{file}"))).await.err().unwrap();
    assert_eq!(error.code(), code, "{error}");
    assert!(error.to_string().contains(words), "{error}");
}
