//! What the border between host and plugin costs on this machine. Prints one line for each number.
//!
//!     cargo run --release -p weir-engine --example boundary -- build/guests/count-rust.wasm
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::hint::black_box;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use bytes::Bytes;
use weir_engine::{Batch, Engine, EngineOptions, Folder, Format, Framing, Grants, Input, Limits, OpenRequest, Plugin};
use weir_protocol::{Attempt, Epoch, Generation, Labels, Lane, LedgerId, SplitId, Transaction};

const RECORD_BYTES: u32 = 100;
const RUN: Duration = Duration::from_secs(2);

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let component = std::env::args().nth(1).map(PathBuf::from).expect("the component to measure, one that counts records");
    let scratch = tempfile::tempdir().unwrap();
    let cache = scratch.path().join("cache");
    let (engine, took) = timed(|| Engine::new(EngineOptions { cache: Some(cache) }).unwrap());
    line("engine start", took);
    let started = Instant::now();
    let plugin = engine.load(&component).await.unwrap();
    line("load, compiled", started.elapsed());
    let started = Instant::now();
    engine.load(&component).await.unwrap();
    line("load, from the cache", started.elapsed());

    let out = tempfile::tempdir().unwrap();
    let folder = Folder { guest: "/out".to_owned(), host: out.path().to_owned(), write: true };
    let grants = Grants { folders: vec![folder], ..Grants::default() };
    instances(&plugin, &grants).await;
    for records in [1, 10, 100, 1000, 10_000] {
        batches(&plugin, &grants, records).await;
    }
    copies();
}

async fn instances(plugin: &Plugin, grants: &Grants) {
    let (mut opened, mut closed, mut count) = (Duration::ZERO, Duration::ZERO, 0);
    let until = Instant::now() + RUN;
    while Instant::now() < until {
        let started = Instant::now();
        let writer = plugin.open_writer(&request(), grants, &Limits::default()).await.unwrap();
        opened += started.elapsed();
        let started = Instant::now();
        writer.close().await.unwrap();
        closed += started.elapsed();
        count += 1;
    }
    line("instance, started and opened", opened / count);
    line("instance, closed", closed / count);
}

async fn batches(plugin: &Plugin, grants: &Grants, records: u32) {
    let record = format!("{}\n", "r".repeat(RECORD_BYTES as usize - 1));
    let bytes = Bytes::from(record.repeat(records as usize));
    let ends = (1..=records).map(|record| record * RECORD_BYTES).collect();
    let batch = Batch::new(SplitId::try_from("s".to_owned()).unwrap(), 0, records, Framing::LineFeed, bytes, Some(ends));
    let writer = plugin.open_writer(&request(), grants, &Limits::default()).await.unwrap();
    let mut open = writer.begin(&transaction(u64::from(records))).await.unwrap();
    let (started, mut calls) = (Instant::now(), 0_u32);
    while started.elapsed() < RUN {
        for _ in 0..100 {
            open.invoke(&batch).await.unwrap();
        }
        calls += 100;
    }
    let each = started.elapsed() / calls;
    println!(
        "{:<40} {:>10.0} ns a call {:>8.2} ns a record",
        format!("invoke, {records} records of {RECORD_BYTES} B"),
        each.as_secs_f64() * 1e9,
        each.as_secs_f64() * 1e9 / f64::from(records)
    );
    open.close().await.unwrap();
}

/// What the copy alone costs, for comparison.
fn copies() {
    let from = vec![b'r'; 1000 * RECORD_BYTES as usize];
    let mut to = vec![0; from.len()];
    let (started, mut count) = (Instant::now(), 0_u32);
    while started.elapsed() < RUN {
        for _ in 0..100 {
            black_box(&mut to).copy_from_slice(black_box(&from));
        }
        count += 100;
    }
    let each = (started.elapsed() / count).as_secs_f64() * 1e9;
    println!("{:<40} {each:>10.0} ns a copy {:>8.2} ns a record", "memcpy, 1000 records of 100 B", each / 1000.0);
}

fn request() -> OpenRequest {
    OpenRequest {
        pipeline: "bench".parse().unwrap(),
        sink: "out".parse().unwrap(),
        lane: Lane(0),
        lanes: 1,
        input: Input { format: Format::Lines, columns: Vec::new() },
        config_json: r#"{"directory":"/out"}"#.to_owned(),
    }
}

fn transaction(epoch: u64) -> Transaction {
    let labels = Labels::new(LedgerId::from_random([1; 8]), "bench".parse().unwrap());
    labels.transaction(&"out".parse().unwrap(), Generation(1), Epoch(epoch), Lane(0), Attempt::FIRST).unwrap()
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let started = Instant::now();
    let value = work();
    (value, started.elapsed())
}

fn line(what: &str, took: Duration) {
    println!("{what:<40} {:>10.1} us", took.as_secs_f64() * 1e6);
}
