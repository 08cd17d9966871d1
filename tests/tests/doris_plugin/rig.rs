//! An emulated Doris, the plugin in the engine, and a ledger that gives the rights to commit and to abort.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use doris_emulator::{
    Client, ColumnType, Emulator, Options, TableSpec, Transaction as DorisTransaction, TransactionQuery, TransactionState,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::OnceCell;
use weir_engine::{
    AbortAnswer, Batch, CommitProblem, Committer, Engine, EngineOptions, Format, Framing, Grants, Input, Limits, OpenRequest, Plugin,
    PluginError, Prepared, Profile, Rejection, Writer,
};
use weir_ledger::{Decided, Ledger, MemoryLedger};
use weir_protocol::{
    Attempt, CommitPermit, Decision, Delivery, Durable, Epoch, Generation, Head, Labels, Lane, LedgerId, Manifest, PipelineId, Position,
    PreparedHandle, SinkId, SinkManifest, SplitId, Transaction, Verdict,
};

/// Longest wait for something that must happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// An address where nobody listens; the emulator's dead redirects lead here. Granted, so that it is found dead.
pub(crate) const NOBODY: &str = "127.0.0.1:1";
pub(crate) const DB: &str = "shop";
pub(crate) const TABLE: &str = "orders";

/// Everything that a test of the plugin needs.
pub(crate) struct Rig {
    pub(crate) emulator: Emulator,
    pub(crate) doris: Client,
    pub(crate) ledger: MemoryLedger,
    pub(crate) grants: Grants,
    pub(crate) limits: Limits,
    plugin: Plugin,
    head: Head,
    generation: Generation,
    _folder: TempDir,
}

impl Rig {
    /// One front end, one back end, and the table `shop.orders` with an id and a note.
    pub(crate) async fn new() -> Self {
        Self::with(|_| ()).await
    }

    /// The same with other options of the emulator.
    pub(crate) async fn with(change: impl FnOnce(&mut Options)) -> Self {
        let folder = TempDir::with_prefix("weir-doris-").unwrap();
        let mut options = Options::new(folder.path());
        change(&mut options);
        let emulator = Emulator::start(options).unwrap();
        let doris = emulator.client();
        doris.create_table(&TableSpec::any(DB, TABLE).column("id", ColumnType::Bigint).nullable("note", ColumnType::String)).unwrap();
        let addresses = emulator.addresses();
        let reachable = addresses.fe.iter().chain(&addresses.follower_fe).chain(&addresses.be);
        let reachable = reachable.map(ToString::to_string).chain([NOBODY.to_owned()]);
        let grants = Grants { http: reachable.map(|address| address.parse().unwrap()).collect(), ..Grants::default() };
        let limits = Limits { call: Duration::from_secs(20), ..Limits::default() };
        let ledger = MemoryLedger::new(LedgerId::from_random(*b"testdori"));
        let generation = raise(&ledger, Generation(0)).await;
        Self { emulator, doris, ledger, grants, limits, plugin: plugin().await, head: Head::GENESIS, generation, _folder: folder }
    }

    /// The sink's config, with some keys replaced.
    pub(crate) fn config(&self, change: Value) -> Value {
        let fe: Vec<String> = self.emulator.addresses().fe.iter().map(|address| format!("http://{address}")).collect();
        let mut config = json!({ "fe": fe, "database": DB, "table": TABLE, "user": "root" });
        for (key, value) in change.as_object().unwrap() {
            config[key] = value.clone();
        }
        config
    }

    fn request(&self, input: Input, change: Value) -> OpenRequest {
        let config_json = self.config(change).to_string();
        OpenRequest { pipeline: pipeline(), sink: sink(), lane: Lane(0), lanes: 1, input, config_json }
    }

    /// A writer of JSON lines.
    pub(crate) async fn writer(&self, change: Value) -> Writer {
        self.try_writer(json_lines(), change).await.unwrap()
    }

    pub(crate) async fn try_writer(&self, input: Input, change: Value) -> Result<Writer, PluginError> {
        self.plugin.open_writer(&self.request(input, change), &self.grants, &self.limits).await
    }

    pub(crate) async fn probe(&self, input: Input, change: Value) -> Result<Profile, PluginError> {
        self.plugin.probe(&self.request(input, change), &self.grants, &self.limits).await
    }

    /// A new committer, as in another process.
    pub(crate) async fn committer(&self) -> Committer {
        self.plugin.open_committer(&self.request(json_lines(), json!({})), &self.grants, &self.limits).await.unwrap()
    }

    /// The transaction of the epoch that is that far ahead of the last decision.
    pub(crate) fn transaction(&self, ahead: u64) -> Transaction {
        let labels = Labels::new(self.ledger.id(), pipeline());
        labels.transaction(&sink(), self.generation, Epoch(self.head.epoch.0 + ahead), Lane(0), Attempt::FIRST).unwrap()
    }

    /// Writes and prepares the next epoch.
    pub(crate) async fn prepare(&self, writer: Writer, batches: &[Batch]) -> Result<(Writer, Prepared), PluginError> {
        let mut open = writer.begin(&self.transaction(1)).await?;
        for batch in batches {
            match open.invoke(batch).await {
                Ok(rejections) => assert_eq!(rejections, Vec::<Rejection>::new()),
                Err(error) => {
                    open.close().await.unwrap();
                    return Err(error);
                }
            }
        }
        open.precommit().await
    }

    /// Decides the next epoch, so that it may be committed.
    pub(crate) async fn decide(&mut self, prepared: &Prepared) -> Durable<Decision> {
        let transaction = self.transaction(1);
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

    /// The right to commit the next epoch.
    pub(crate) async fn permit(&mut self, prepared: &Prepared) -> CommitPermit {
        self.decide(prepared).await.permits().pop().unwrap()
    }

    /// Commits as another process would. An error gives the permit back.
    pub(crate) async fn commit(&self, permit: CommitPermit) -> Result<Verdict, (CommitPermit, PluginError)> {
        let mut committer = self.committer().await;
        let answer = committer.commit(permit).await;
        committer.close().await.unwrap();
        answer.or_else(|failure| match failure.problem {
            CommitProblem::Unknown => Ok(Verdict::Unknown),
            CommitProblem::Failed(error) => Err((failure.permit, error)),
        })
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

    /// Puts an older copy of the ledger in this one's place.
    pub(crate) fn restore(&mut self, older: MemoryLedger, generation: Generation, head: Head) {
        (self.ledger, self.generation, self.head) = (older, generation, head);
    }

    /// The visible rows.
    pub(crate) fn rows(&self) -> Vec<String> {
        self.doris.rows(DB, TABLE).unwrap()
    }

    /// What Doris has of a transaction.
    pub(crate) fn doris_transaction(&self, transaction: &Transaction) -> Option<DorisTransaction> {
        let query = TransactionQuery { label_prefix: Some(transaction.label.to_string()), ..TransactionQuery::default() };
        self.doris.transactions(&query).unwrap().pop()
    }

    /// Nothing was left behind, and no front end was ever sent a body.
    pub(crate) fn assert_clean(&self) {
        let counts = self.doris.counts(&Default::default()).unwrap();
        assert_eq!((counts[&TransactionState::Prepare], counts[&TransactionState::Precommitted]), (0, 0));
        assert_eq!(self.doris.traffic().unwrap().fe_bodies, 0);
    }
}

/// The plugin, compiled once.
async fn plugin() -> Plugin {
    static PLUGIN: OnceCell<(Engine, Plugin)> = OnceCell::const_new();
    let load = async || {
        let _ = tracing_subscriber::fmt().with_test_writer().try_init();
        let engine = Engine::new(EngineOptions::default()).unwrap();
        let plugin = engine.load(&weir_tests::paths::plugins().join("doris.wasm")).await.unwrap();
        (engine, plugin)
    };
    PLUGIN.get_or_init(load).await.1.clone()
}

async fn raise(ledger: &MemoryLedger, seen: Generation) -> Generation {
    ledger.raise_generation(&pipeline(), seen, &manifest()).await.unwrap().get().generation
}

fn manifest() -> Manifest {
    let sinks = vec![SinkManifest {
        sink: sink(),
        plugin: "doris".into(),
        version: "0".into(),
        digest: weir_protocol::Hash::of(b""),
        target: "doris".into(),
        handle_formats: vec!["doris-txn-1".into()],
        settle_ms: 0,
    }];
    Manifest { lanes: 1, source: "test".into(), delivery: Delivery::ExactlyOnce, sinks }
}

fn pipeline() -> PipelineId {
    "orders".parse().unwrap()
}

fn sink() -> SinkId {
    "doris".parse().unwrap()
}

fn split() -> SplitId {
    SplitId::try_from("orders.jsonl".to_owned()).unwrap()
}

pub(crate) fn json_lines() -> Input {
    Input { format: Format::Json, columns: vec![] }
}

pub(crate) fn csv(columns: &[&str]) -> Input {
    Input { format: Format::Csv, columns: columns.iter().map(|name| (*name).to_owned()).collect() }
}

/// Lines as a batch.
pub(crate) fn lines(records: &[String]) -> Batch {
    let bytes: String = records.iter().flat_map(|record| [record.as_str(), "\n"]).collect();
    Batch::new(split(), 0, records.len() as u32, Framing::LineFeed, Bytes::from(bytes), None)
}

/// Records without line feeds as a batch.
pub(crate) fn bare(records: &[&str]) -> Batch {
    let mut ends = Vec::new();
    let mut bytes = Vec::new();
    for record in records {
        bytes.extend_from_slice(record.as_bytes());
        ends.push(bytes.len() as u32);
    }
    Batch::new(split(), 0, records.len() as u32, Framing::Bare, Bytes::from(bytes), Some(Arc::from(ends)))
}

/// Orders with the ids of a range.
pub(crate) fn orders(ids: std::ops::Range<u64>) -> Vec<String> {
    ids.map(|id| format!(r#"{{"id":{id},"note":"order {id}"}}"#)).collect()
}
