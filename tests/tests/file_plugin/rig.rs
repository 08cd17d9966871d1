//! A folder, the plugin in the engine, and a ledger that gives the rights to commit and to abort.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::OnceCell;
use weir_engine::{
    AbortAnswer, Batch, CommitFailure, Committer, Engine, EngineOptions, Folder, Format, Framing, Grants, Input, Limits, OpenRequest,
    OpenWriter, Plugin, PluginError, Prepared, Profile, Rejection, Writer,
};
use weir_ledger::{Decided, Ledger, MemoryLedger};
use weir_protocol::{
    Attempt, Decision, Delivery, Durable, Epoch, Generation, Hash, Head, Labels, Lane, LedgerId, Manifest, PipelineId, Position,
    PreparedHandle, SinkId, SinkManifest, SplitId, Transaction, Verdict,
};

/// Everything that a test of the plugin needs.
pub(crate) struct Rig {
    pub(crate) ledger: MemoryLedger,
    pub(crate) grants: Grants,
    pub(crate) limits: Limits,
    pub(crate) plugin: Plugin,
    config: Value,
    head: Head,
    generation: Generation,
    folder: TempDir,
}

impl Rig {
    /// An empty folder, granted as `/out`, and a sink with some keys in its config besides folder and prefix.
    pub(crate) async fn new(keys: Value) -> Self {
        let mut config = json!({ "directory": "/out", "prefix": "orders" });
        for (key, value) in keys.as_object().unwrap() {
            config[key] = value.clone();
        }
        let folder = TempDir::with_prefix("weir-file-").unwrap();
        let ledger = MemoryLedger::new(LedgerId::from_random(*b"testfile"));
        let generation = ledger.raise_generation(&pipeline(), Generation(0), &manifest()).await.unwrap().get().generation;
        let limits = Limits { call: Duration::from_secs(30), ..Limits::default() };
        let grants = granted(folder.path(), true);
        Self { ledger, grants, limits, plugin: plugin().await, config, head: Head::GENESIS, generation, folder }
    }

    /// The folder on this side.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    fn request(&self, format: Format, columns: &[&str]) -> OpenRequest {
        let input = Input { format, columns: columns.iter().map(|name| (*name).to_owned()).collect() };
        OpenRequest { pipeline: pipeline(), sink: sink(), lane: Lane(0), lanes: 1, input, config_json: self.config.to_string() }
    }

    pub(crate) async fn try_writer(&self, format: Format, columns: &[&str]) -> Result<Writer, PluginError> {
        self.plugin.open_writer(&self.request(format, columns), &self.grants, &self.limits).await
    }

    /// A writer of JSON lines.
    pub(crate) async fn writer(&self) -> Writer {
        self.try_writer(Format::Json, &[]).await.unwrap()
    }

    pub(crate) async fn probe(&self) -> Result<Profile, PluginError> {
        self.plugin.probe(&self.request(Format::Json, &[]), &self.grants, &self.limits).await
    }

    /// A new committer, as in another process.
    pub(crate) async fn committer(&self) -> Committer {
        self.plugin.open_committer(&self.request(Format::Json, &[]), &self.grants, &self.limits).await.unwrap()
    }

    /// The next epoch's transaction.
    pub(crate) fn transaction(&self) -> Transaction {
        let labels = Labels::new(self.ledger.id(), pipeline());
        labels.transaction(&sink(), self.generation, Epoch(self.head.epoch.0 + 1), Lane(0), Attempt::FIRST).unwrap()
    }

    /// Writes the next epoch.
    pub(crate) async fn write(&self, writer: Writer, batches: &[Batch]) -> OpenWriter {
        let mut open = writer.begin(&self.transaction()).await.unwrap();
        for batch in batches {
            assert_eq!(open.invoke(batch).await.unwrap(), Vec::<Rejection>::new());
        }
        open
    }

    /// Writes and prepares the next epoch.
    pub(crate) async fn prepare(&self, writer: Writer, batches: &[Batch]) -> Prepared {
        let (writer, prepared) = self.write(writer, batches).await.precommit().await.unwrap();
        writer.close().await.unwrap();
        prepared
    }

    /// Decides the next epoch, so that it may be committed.
    pub(crate) async fn decide(&mut self, prepared: &Prepared) -> Durable<Decision> {
        let transaction = self.transaction();
        let handle = PreparedHandle {
            transaction: transaction.clone(),
            format: self.plugin.description().written_format().to_owned(),
            handle: prepared.handle.clone(),
            held: prepared.records,
            slices: vec![],
            rejected: vec![],
        };
        let decision = Decision {
            pipeline: pipeline(),
            generation: self.generation,
            epoch: transaction.epoch,
            base: self.head.epoch,
            base_hash: self.head.hash,
            snapshot: true,
            positions: [(split(), Position(transaction.epoch.0.to_le_bytes().to_vec()))].into(),
            handles: vec![handle],
        };
        match self.ledger.decide(&decision, &[]).await.unwrap() {
            Decided::Made(durable) => {
                self.head = decision.head().unwrap();
                durable
            }
            Decided::Refused { .. } => panic!("the ledger refuses the decision"),
        }
    }

    /// Commits a decision's one handle in a process of its own.
    pub(crate) async fn commit(&self, decision: &Durable<Decision>) -> Result<Verdict, Box<CommitFailure>> {
        let mut committer = self.committer().await;
        let answer = committer.commit(decision.permits().pop().unwrap()).await;
        committer.close().await.unwrap();
        answer
    }

    /// Sweeps what this generation may have left, as the next generation does, and answers for that transaction.
    pub(crate) async fn abort(&mut self, transaction: &Transaction) -> Result<AbortAnswer, PluginError> {
        let facts = self.ledger.raise_generation(&pipeline(), self.generation, &manifest()).await.unwrap();
        self.generation = facts.get().generation;
        let permits = facts.get().debts.iter().flat_map(|debt| facts.sweep(debt).unwrap());
        let permit = permits.into_iter().find(|permit| permit.transaction() == transaction).expect("no debt has this transaction");
        let mut committer = self.committer().await;
        let answer = committer.abort(&permit).await;
        committer.close().await.unwrap();
        answer
    }

    /// Puts a ledger that has never decided anything in this one's place: what an older copy is.
    pub(crate) async fn forget_decisions(&mut self) {
        self.ledger = MemoryLedger::new(self.ledger.id());
        self.generation = self.ledger.raise_generation(&pipeline(), Generation(0), &manifest()).await.unwrap().get().generation;
        self.head = Head::GENESIS;
    }

    /// What a reader sees: names and contents of the files that are not hidden.
    pub(crate) fn visible(&self) -> Vec<(String, Vec<u8>)> {
        let names = self.names().into_iter().filter(|name| !name.starts_with('.'));
        names.map(|name| (name.clone(), fs::read(self.path().join(name)).unwrap())).collect()
    }

    /// The same as text, without the names.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.visible().into_iter().map(|(_, bytes)| String::from_utf8(bytes).unwrap()).collect()
    }

    /// The names of hidden files but for the marker.
    pub(crate) fn hidden(&self) -> Vec<String> {
        self.names().into_iter().filter(|name| name.starts_with('.') && name != ".weir-folder").collect()
    }

    /// All names, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(self.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// A folder as `/out`.
pub(crate) fn granted(host: &Path, write: bool) -> Grants {
    let folder = Folder { guest: "/out".to_owned(), host: PathBuf::from(host), write };
    Grants { folders: vec![folder], ..Grants::default() }
}

/// Lines as a batch.
pub(crate) fn lines(text: &str) -> Batch {
    Batch::new(split(), 0, text.lines().count() as u32, Framing::LineFeed, text.to_owned().into(), None)
}

/// Records without line feeds as a batch.
pub(crate) fn bare(records: &[&str]) -> Batch {
    let mut end = 0;
    let ends: Arc<[u32]> = records
        .iter()
        .map(|record| {
            end += record.len() as u32;
            end
        })
        .collect();
    Batch::new(split(), 0, records.len() as u32, Framing::Bare, records.concat().into(), Some(ends))
}

/// The plugin, compiled once.
async fn plugin() -> Plugin {
    static PLUGIN: OnceCell<(Engine, Plugin)> = OnceCell::const_new();
    let load = async || {
        let engine = Engine::new(EngineOptions::default()).unwrap();
        let plugin = engine.load(&weir_tests::paths::plugins().join("file.wasm")).await.unwrap();
        (engine, plugin)
    };
    PLUGIN.get_or_init(load).await.1.clone()
}

fn manifest() -> Manifest {
    let sinks = vec![SinkManifest {
        sink: sink(),
        plugin: "file".into(),
        version: "0".into(),
        digest: Hash::of(b""),
        target: "file:/out".into(),
        handle_formats: vec!["file-1".into()],
        settle_ms: 0,
    }];
    Manifest { lanes: 1, source: "test".into(), delivery: Delivery::ExactlyOnce, sinks }
}

fn pipeline() -> PipelineId {
    "orders".parse().unwrap()
}

fn sink() -> SinkId {
    "archive".parse().unwrap()
}

fn split() -> SplitId {
    SplitId::try_from("orders.jsonl".to_owned()).unwrap()
}
