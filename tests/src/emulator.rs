//! The Doris emulator as a process of its own, so that it outlives hosts and can be killed itself.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use doris_emulator::{Addresses, Client, ColumnType, CountsQuery, Fault, FaultName, TableSpec, TransactionState};
use tokio::task::block_in_place;

use crate::compare::Records;
use crate::paths;

/// The columns of generated orders.
pub const ORDERS_COLUMNS: &[(&str, ColumnType)] = &[
    ("id", ColumnType::Bigint),
    ("customer", ColumnType::String),
    ("product", ColumnType::String),
    ("quantity", ColumnType::Int),
    ("price", ColumnType::Double),
    ("created", ColumnType::Datetime),
];

/// More than any test lets happen.
const ALWAYS: u64 = 1_000_000;

/// A running emulator. Killed when dropped. Its methods block; tests that use it run on a multi-threaded runtime.
#[derive(Debug)]
pub struct Emulator {
    child: Child,
    addresses: Addresses,
    /// For what this type has no word for.
    pub client: Client,
}

impl Emulator {
    /// Starts one on a folder, and waits until it is ready.
    pub async fn start(data: &Path) -> Self {
        Self::spawn(data, &[])
    }

    /// One that keeps counts and hashes only.
    pub async fn start_discarding(data: &Path) -> Self {
        Self::spawn(data, &["--discard"])
    }

    fn spawn(data: &Path, arguments: &[&str]) -> Self {
        let mut child = Command::new(paths::binary("doris-emulator"))
            .arg("--data")
            .arg(data)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        let addresses: Addresses = serde_json::from_str(&ready).unwrap_or_else(|error| panic!("{error}: {ready:?}"));
        let client = Client::new(addresses.control);
        Self { child, addresses, client }
    }

    /// The FE's base URL.
    pub fn fe(&self) -> String {
        format!("http://{}", self.addresses.fe[0])
    }

    /// Every address that a sink must be granted, as a YAML list.
    pub fn grants(&self) -> String {
        let all: Vec<String> = self.addresses.fe.iter().chain(&self.addresses.be).map(|address| format!("\"{address}\"")).collect();
        format!("[{}]", all.join(", "))
    }

    /// Creates a table whose columns take NULL.
    pub async fn create_table(&self, db: &str, table: &str, columns: &[(&str, ColumnType)]) {
        let spec = columns.iter().fold(TableSpec::any(db, table), |spec, (name, kind)| spec.nullable(*name, *kind));
        block_in_place(|| self.client.create_table(&spec)).unwrap();
    }

    /// How many rows of a table are visible.
    pub async fn visible_rows(&self, db: &str, table: &str) -> u64 {
        block_in_place(|| self.client.table_counts(db, table)).unwrap().rows
    }

    /// Adds the visible rows of a table, as they were sent.
    pub async fn add_visible(&self, db: &str, table: &str, to: &mut Records) {
        block_in_place(|| to.add_lines(self.client.row_stream(db, table).unwrap()));
    }

    /// How many transactions are neither visible nor aborted.
    pub async fn unfinished(&self) -> u64 {
        let counts = block_in_place(|| self.client.counts(&CountsQuery::default())).unwrap();
        counts[&TransactionState::Prepare] + counts[&TransactionState::Precommitted]
    }

    /// How many loads have begun since it was started.
    pub async fn loads_begun(&self) -> u64 {
        block_in_place(|| self.client.traffic()).unwrap().loads_begun
    }

    /// From now on commits are dropped and not done, or no longer.
    pub async fn fail_commits(&self, fail: bool) {
        let fault = Fault::new(FaultName::CommitDropBefore).times(if fail { ALWAYS } else { 0 });
        block_in_place(|| self.client.arm(&fault)).unwrap();
    }

    /// The next load is received whole and begins only when released.
    pub async fn hold_next_load(&self) {
        block_in_place(|| self.client.arm(&Fault::new(FaultName::LoadHold).times(1))).unwrap();
    }

    /// How many requests are held.
    pub async fn held_loads(&self) -> usize {
        block_in_place(|| self.client.held()).unwrap().len()
    }

    /// Lets them take effect.
    pub async fn release_held_loads(&self) {
        block_in_place(|| self.client.release(None)).unwrap();
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
