//! What the tests of this crate share: where the components are, one engine for a test binary, and transactions with their permits.
#![allow(dead_code)] // each test binary uses its own part

use std::path::{Path, PathBuf};

use bytes::Bytes;
use tempfile::TempDir;
use tokio::sync::OnceCell;
use weir_engine::{
    Batch, CommitFailure, CommitProblem, Engine, EngineOptions, Folder, Format, Framing, Grants, Input, OpenRequest, Plugin, PluginError,
};
use weir_protocol::{
    Attempt, CommitPermit, Decision, Durable, Epoch, Generation, Hash, Labels, Lane, LedgerId, Manifest, PipelineFacts, PipelineId,
    Position, PreparedHandle, SinkId, SinkManifest, SplitId, SweepDebt, Transaction,
};

/// A component that `make guests` builds. `WEIR_BUILD` names another folder than `build`.
pub(crate) fn component(path: &str) -> PathBuf {
    let build = std::env::var_os("WEIR_BUILD").map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build"), PathBuf::from);
    let file = build.join(path);
    assert!(file.is_file(), "{} is not there: build it with `make plugins guests test-guests`", file.display());
    file
}

/// One engine for all tests of a binary, with a cache of compiled plugins that the binaries share.
pub(crate) async fn engine() -> Engine {
    static ENGINE: OnceCell<Engine> = OnceCell::const_new();
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compiled");
    ENGINE.get_or_init(|| async { Engine::new(EngineOptions { cache: Some(cache) }).unwrap() }).await.clone()
}

pub(crate) async fn plugin(path: &str) -> Plugin {
    engine().await.load(&component(path)).await.unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn request(config: serde_json::Value) -> OpenRequest {
    OpenRequest {
        pipeline: "orders".parse().unwrap(),
        sink: sink(),
        lane: Lane(0),
        lanes: 1,
        input: Input { format: Format::Lines, columns: Vec::new() },
        config_json: config.to_string(),
    }
}

pub(crate) fn sink() -> SinkId {
    "out".parse().unwrap()
}

/// A folder granted as `/out`.
pub(crate) fn folder() -> (TempDir, Grants) {
    let folder = tempfile::tempdir().unwrap();
    let granted = Folder { guest: "/out".to_owned(), host: folder.path().to_owned(), write: true };
    (folder, Grants { folders: vec![granted], ..Grants::default() })
}

fn labels() -> Labels {
    Labels::new(ledger(), pipeline())
}

fn ledger() -> LedgerId {
    LedgerId::from_random([7; 8])
}

fn pipeline() -> PipelineId {
    "orders".parse().unwrap()
}

/// The transaction of one epoch.
pub(crate) fn transaction(epoch: u64) -> Transaction {
    labels().transaction(&sink(), Generation(1), Epoch(epoch), Lane(0), Attempt::FIRST).unwrap()
}

/// Lines as a source hands them over.
pub(crate) fn lines(first: u64, lines: &[&str]) -> Batch {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let mut end = 0;
    let ends = lines.iter().map(|line| {
        end += u32::try_from(line.len() + 1).unwrap();
        end
    });
    let ends = ends.collect();
    let split = SplitId::try_from("orders.txt".to_owned()).unwrap();
    Batch::new(split, first, u32::try_from(lines.len()).unwrap(), Framing::LineFeed, Bytes::from(text), Some(ends))
}

/// The right to commit, as a ledger gives it once a decision is durable.
pub(crate) fn commit_permit(transaction: &Transaction, format: &str, handle: Vec<u8>) -> CommitPermit {
    let handle = PreparedHandle {
        transaction: transaction.clone(),
        format: format.to_owned(),
        handle,
        held: None,
        slices: Vec::new(),
        rejected: Vec::new(),
    };
    let decision = Decision {
        pipeline: pipeline(),
        generation: Generation(1),
        epoch: transaction.epoch,
        base: Epoch::GENESIS,
        base_hash: Hash::GENESIS,
        snapshot: true,
        positions: [(SplitId::try_from("orders.txt".to_owned()).unwrap(), Position(vec![1]))].into(),
        handles: vec![handle],
    };
    durable(decision).permits().pop().unwrap()
}

/// The plugin's error behind a commit that failed.
pub(crate) fn failed(failure: &CommitFailure) -> &PluginError {
    match &failure.problem {
        CommitProblem::Failed(error) => error,
        CommitProblem::Unknown => panic!("the verdict was unknown"),
    }
}

/// The right to abort the transaction of one epoch, as a sweep debt gives it.
pub(crate) fn abort_permit(epoch: u64) -> weir_protocol::AbortPermit {
    let manifest = Manifest {
        lanes: 1,
        source: "file:orders.txt".to_owned(),
        delivery: weir_protocol::Delivery::ExactlyOnce,
        sinks: vec![SinkManifest {
            sink: sink(),
            plugin: "p".to_owned(),
            version: "1".to_owned(),
            digest: Hash::GENESIS,
            target: "t".to_owned(),
            handle_formats: vec!["f".to_owned()],
            settle_ms: 0,
        }],
    };
    let debt = SweepDebt { generation: Generation(1), base: Epoch(epoch - 1), manifest: manifest.clone(), attempts: Vec::new() };
    let facts = PipelineFacts {
        pipeline: pipeline(),
        ledger: ledger(),
        generation: Generation(2),
        manifest,
        head: weir_protocol::Head::GENESIS,
        decisions: Vec::new(),
        confirmations: Vec::new(),
        replacements: Vec::new(),
        debts: vec![debt.clone()],
        undecided_may_exist: true,
    };
    let permits = durable(facts).sweep(&debt).unwrap();
    permits.into_iter().find(|permit| permit.transaction().epoch == Epoch(epoch)).unwrap()
}

#[allow(clippy::disallowed_methods)] // the tests stand in for a ledger
fn durable<T>(fact: T) -> Durable<T> {
    Durable::attest(fact)
}

/// What is logged by this thread's tests from now on, as text. The subscriber is the process's, so a test that reads it filters for its own.
pub(crate) struct Captured(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl Captured {
    pub(crate) fn start() -> Self {
        use tracing_subscriber::fmt::MakeWriter;
        #[derive(Clone)]
        struct Sink(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);
        impl std::io::Write for Sink {
            fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
                self.0.lock().unwrap().extend_from_slice(bytes);
                Ok(bytes.len())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        impl<'a> MakeWriter<'a> for Sink {
            type Writer = Sink;
            fn make_writer(&'a self) -> Sink {
                self.clone()
            }
        }
        let buffer = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(Sink(buffer.clone())).finish();
        tracing::subscriber::set_global_default(subscriber).expect("one test of a binary captures its log");
        Self(buffer)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}
