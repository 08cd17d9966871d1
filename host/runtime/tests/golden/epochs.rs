//! `weir epochs` beside a host that has the ledger open.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use weir_ledger::{Decided, Ledger as _, SqliteLedger};
use weir_protocol::{
    Attempt, Confirmation, Decision, Delivery, Epoch, Generation, Hash, Head, Labels, Lane, Manifest, PipelineId, Position, PreparedHandle,
    SinkId, SinkManifest, Slice, SplitId, Verdict,
};

const CONFIG: &str = "\
ledger: sqlite://weir.db
pipelines: { orders: { source: { generate: {} }, sinks: { archive: { plugin: file }, doris: { plugin: doris } } } }
";

#[tokio::test]
async fn epochs_shows_what_is_decided_and_what_of_it_is_committed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("weir.yaml"), CONFIG).unwrap();
    let (ledger, _) = SqliteLedger::open(&folder.path().join("weir.db"), true).await.unwrap();
    let pipeline = PipelineId::try_from("orders".to_owned()).unwrap();
    ledger.raise_generation(&pipeline, Generation(0), &manifest()).await.unwrap();

    let first = decision(&ledger, &pipeline, Head::GENESIS, 1000);
    let head = first.head().unwrap();
    assert!(matches!(ledger.decide(&first, &[]).await.unwrap(), Decided::Made(_)));
    let second = decision(&ledger, &pipeline, head, 234_567);
    assert!(matches!(ledger.decide(&second, &confirm(&first, 2)).await.unwrap(), Decided::Made(_)));
    ledger.confirm(&pipeline, Generation(1), &confirm(&second, 1)).await.unwrap();

    // The ledger stays open meanwhile, as a running host would hold it.
    let (text, _, code) = weir(folder.path(), &["epochs", "orders"]);
    let expected = "\
EPOCH  GENERATION  RECORDS  BYTES    HANDLES  STATE
    1           1    1_000  9.8 KiB        2  committed
    2           1  234_567  2.2 MiB        2  1 of 2 committed
";
    assert_eq!((text.as_str(), code), (expected, 0));
    let (text, _, _) = weir(folder.path(), &["epochs", "orders", "--last", "1"]);
    assert_eq!(text.lines().count(), 2, "{text}");

    let (text, _, code) = weir(folder.path(), &["epochs", "orders", "--json"]);
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(code, 0);
    assert_eq!(json["ledger"], ledger.id().to_string());
    assert_eq!(json["head"]["epoch"], 2);
    assert_eq!(json["decisions"][1]["base_hash"], json["decisions"][0]["hash"]);
    assert_eq!(json["decisions"][1]["handles"][0]["confirmed"], "committed");
    assert_eq!(json["decisions"][1]["handles"][1]["confirmed"], Value::Null);
    assert_eq!(json["decisions"][1]["handles"][1]["label"], second.handles[1].transaction.label.as_str());
    assert_eq!(json["decisions"][1]["handles"][0]["slices"][0]["records"], 234_567);
}

#[tokio::test]
async fn epochs_names_the_pipelines_that_the_ledger_has() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("weir.yaml"), CONFIG).unwrap();
    let (ledger, _) = SqliteLedger::open(&folder.path().join("weir.db"), true).await.unwrap();
    let pipeline = PipelineId::try_from("orders".to_owned()).unwrap();
    ledger.raise_generation(&pipeline, Generation(0), &manifest()).await.unwrap();

    let (text, told, code) = weir(folder.path(), &["epochs", "orders"]);
    assert_eq!((text.lines().count(), told.as_str(), code), (1, "orders: nothing decided yet\n", 0));
    let (_, told, code) = weir(folder.path(), &["epochs", "ordres"]);
    assert_eq!((told.as_str(), code), ("error[usage-unknown-pipeline]: the ledger has no pipeline `ordres`; did you mean `orders`?\n", 2));
}

/// stdout, stderr and the exit code of a command.
fn weir(folder: &Path, arguments: &[&str]) -> (String, String, i32) {
    let output = Command::new(env!("CARGO_BIN_EXE_weir")).current_dir(folder).args(arguments).env("WEIR_LOG", "").output().unwrap();
    (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap(), output.status.code().unwrap())
}

fn manifest() -> Manifest {
    let sink = |name: &str| SinkManifest {
        sink: SinkId::try_from(name.to_owned()).unwrap(),
        plugin: name.to_owned(),
        version: "0.1.0".to_owned(),
        digest: Hash::of(name.as_bytes()),
        target: name.to_owned(),
        handle_formats: vec!["v1".to_owned()],
        settle_ms: 0,
    };
    Manifest { lanes: 1, source: "test".to_owned(), delivery: Delivery::ExactlyOnce, sinks: vec![sink("archive"), sink("doris")] }
}

fn decision(ledger: &SqliteLedger, pipeline: &PipelineId, base: Head, records: u64) -> Decision {
    let labels = Labels::new(ledger.id(), pipeline.clone());
    let split = SplitId::try_from("s".to_owned()).unwrap();
    let to = Position(records.to_be_bytes().to_vec());
    let epoch = base.epoch.next();
    let slice = Slice { split: split.clone(), from: None, to: to.clone(), first: 0, records, bytes: records * 10, tail: Hash::of(b"") };
    let handles = ["archive", "doris"].map(|sink| {
        let sink = SinkId::try_from(sink.to_owned()).unwrap();
        let transaction = labels.transaction(&sink, Generation(1), epoch, Lane(0), Attempt::FIRST).unwrap();
        PreparedHandle {
            transaction,
            format: "v1".to_owned(),
            handle: vec![1],
            held: None,
            slices: vec![slice.clone()],
            rejected: Vec::new(),
        }
    });
    Decision {
        pipeline: pipeline.clone(),
        generation: Generation(1),
        epoch,
        base: base.epoch,
        base_hash: base.hash,
        snapshot: base.epoch == Epoch::GENESIS,
        positions: [(split, to)].into(),
        handles: handles.to_vec(),
    }
}

/// Confirmations of a decision's first handles.
fn confirm(decision: &Decision, handles: usize) -> Vec<Confirmation> {
    let confirmation = |handle: &PreparedHandle| Confirmation {
        epoch: decision.epoch,
        label: handle.transaction.label.clone(),
        verdict: Verdict::Committed,
    };
    decision.handles.iter().take(handles).map(confirmation).collect()
}
