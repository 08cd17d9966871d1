//! The main job, end to end: a real table and a million orders through both plugins, with the host killed on the way, and a comparison by content.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a demo that cannot go on must say so and end")]

use std::io::{BufReader, Read};
use std::process::ExitCode;

use flate2::read::GzDecoder;
use weir_tests::compare::{Comparison, Records, temporary_files};
use weir_tests::emulator::{Emulator, ORDERS_COLUMNS};
use weir_tests::host::{Host, eventually};
use weir_tests::paths;
use weir_tests::project::Project;

/// The real table.
const FLIGHTS: &str = "tests/data/flights-2013-01.csv.gz";
/// How many orders are generated.
const ORDERS: u64 = 1_000_000;

#[tokio::main]
async fn main() -> ExitCode {
    let project = Project::default();
    let emulator = Emulator::start(&project.folder("doris")).await;
    let flights = flights();
    let (header, rows) = split_header(&flights);
    let columns: Vec<_> = header.split(',').map(|name| (name, doris_emulator::ColumnType::String)).collect();
    emulator.create_table("demo", "flights", &columns).await;
    emulator.create_table("demo", "orders", ORDERS_COLUMNS).await;
    let mut read_flights = Records::default();
    read_flights.add_lines(rows);
    let mut read_orders = read_flights.same_hashes();
    weir_tests::orders::each(ORDERS, |line| read_orders.add(line)).await;

    let config = project.config(&paths::plugins(), &pipelines(&project, &emulator));
    let mut kills = 0;
    kills += run(&config, "flights", read_flights.len(), 1, &emulator).await;
    kills += run(&config, "orders", read_orders.len(), 4, &emulator).await;
    eprintln!("demo: the host was killed {kills} times");

    let flights = compare(&read_flights, "flights", Some(header.as_bytes()), &project, &emulator).await;
    let orders = compare(&read_orders, "orders", None, &project, &emulator).await;
    let sum = |part: fn(&Comparison) -> u64| flights.iter().chain(&orders).map(part).sum::<u64>();
    let read = read_flights.len() + read_orders.len();
    let (in_doris, in_files) = (flights[0].found + orders[0].found, flights[1].found + orders[1].found);
    let (missing, duplicated) = (sum(|part| part.missing), sum(|part| part.duplicated));
    let unfinished = emulator.unfinished().await;
    let temporary = temporary_files(&project.join("flights")).len() + temporary_files(&project.join("orders")).len();
    eprintln!("demo: {unfinished} transactions are left unfinished at doris, and {temporary} temporary files");
    println!("demo: {read} read, {in_doris} visible in doris, {in_files} in files, {missing} missing, {duplicated} duplicated");
    let exact = in_doris == read && in_files == read && missing == 0 && duplicated == 0;
    if exact && kills >= 3 && unfinished == 0 && temporary == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn flights() -> String {
    let file = std::fs::File::open(paths::root().join(FLIGHTS)).unwrap();
    let mut text = String::new();
    GzDecoder::new(BufReader::new(file)).read_to_string(&mut text).unwrap();
    text
}

fn split_header(csv: &str) -> (String, &[u8]) {
    let (header, rows) = csv.split_once('\n').unwrap();
    (header.to_owned(), rows.as_bytes())
}

fn pipelines(project: &Project, emulator: &Emulator) -> String {
    let mut all = String::new();
    let flights = format!("file: {{ path: \"{}\", format: csv }}", paths::root().join(FLIGHTS).display());
    for (name, source, records) in [("flights", flights, 3_000), ("orders", format!("generate: {{ records: {ORDERS} }}"), 40_000)] {
        project.folder(name);
        all.push_str(&format!(
            r#"{name}:
  source:
    {source}
  checkpoint: {{ interval: 1s, records: {records} }}
  sinks:
    doris:
      plugin: doris
      config: {{ fe: ["{fe}"], database: demo, table: {name}, user: root, password: "", settle: 1 }}
      grant: {{ http: {grants} }}
    archive:
      plugin: file
      config: {{ directory: /out, prefix: {name} }}
      grant: {{ folders: {{ /out: {{ path: ./{name}, write: true }} }} }}
"#,
            fe = emulator.fe(),
            grants = emulator.grants(),
        ));
    }
    all
}

/// Runs one pipeline to its end and kills the host on the way, each time when some more of its records are visible.
async fn run(config: &std::path::Path, pipeline: &str, records: u64, kills: u64, emulator: &Emulator) -> u64 {
    let arguments = ["--pipeline", pipeline];
    let mut killed = 0;
    for kill in 1..=kills {
        let mut host = Host::start(config, &arguments);
        let enough = records * kill / (kills + 2);
        eventually("the pipeline goes on", async || host.has_ended() || emulator.visible_rows("demo", pipeline).await >= enough).await;
        if host.kill().await {
            killed += 1;
            let visible = emulator.visible_rows("demo", pipeline).await;
            eprintln!("demo: {pipeline}: killed the host when {visible} of {records} records were visible");
        }
    }
    let end = Host::start(config, &arguments).wait().await;
    assert_eq!(end.code, Some(0), "{}", end.log);
    killed
}

/// Holds both targets of a pipeline against what was read: Doris, then files.
async fn compare(read: &Records, pipeline: &str, header: Option<&[u8]>, project: &Project, emulator: &Emulator) -> [Comparison; 2] {
    let mut doris = read.same_hashes();
    emulator.add_visible("demo", pipeline, &mut doris).await;
    let mut files = read.same_hashes();
    files.add_folder(&project.join(pipeline), header);
    [read.compare(&doris), read.compare(&files)]
}
