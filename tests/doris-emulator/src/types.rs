//! Words shared by the server and the control client: tables, transactions, counts.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// Where an emulator listens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Addresses {
    /// Master FEs.
    pub fe: Vec<SocketAddr>,
    /// Follower FEs.
    pub follower_fe: Vec<SocketAddr>,
    /// BEs.
    pub be: Vec<SocketAddr>,
    /// The control API.
    pub control: SocketAddr,
}

/// A table, as given to the control API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableSpec {
    /// Database; created with its first table.
    pub db: String,
    /// Table name.
    pub table: String,
    /// Columns in order. None at all: every row that can be parsed is accepted.
    #[serde(default)]
    pub columns: Vec<Column>,
    /// What happens to rows with equal keys.
    #[serde(default)]
    pub key_type: KeyType,
    /// Key columns; needed for `UNIQUE`.
    #[serde(default)]
    pub keys: Vec<String>,
    /// Whether a `UNIQUE` table is merge-on-write, which cloud mode does not load with two-phase commit.
    #[serde(default = "yes")]
    pub merge_on_write: bool,
}

fn yes() -> bool {
    true
}

impl TableSpec {
    /// A table that keeps every row that can be parsed, of any shape.
    pub fn any(db: impl Into<String>, table: impl Into<String>) -> Self {
        Self {
            db: db.into(),
            table: table.into(),
            columns: Vec::new(),
            key_type: KeyType::Duplicate,
            keys: Vec::new(),
            merge_on_write: true,
        }
    }

    /// The same table with one more column, which does not take NULL.
    #[must_use]
    pub fn column(mut self, name: impl Into<String>, kind: ColumnType) -> Self {
        self.columns.push(Column { name: name.into(), kind, nullable: false });
        self
    }

    /// The same table with one more column, which takes NULL.
    #[must_use]
    pub fn nullable(mut self, name: impl Into<String>, kind: ColumnType) -> Self {
        self.columns.push(Column { name: name.into(), kind, nullable: true });
        self
    }

    /// The same table, where the last row with equal values in `keys` wins.
    #[must_use]
    pub fn unique(mut self, keys: &[&str]) -> Self {
        self.key_type = KeyType::Unique;
        self.keys = keys.iter().map(|&key| key.to_owned()).collect();
        self
    }
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// Name, compared as written.
    pub name: String,
    /// Type of its values.
    #[serde(rename = "type", default)]
    pub kind: ColumnType,
    /// Whether NULL is a value. Without it, NULL and what does not convert are filtered, as in a `NOT NULL` column.
    #[serde(default)]
    pub nullable: bool,
}

/// The types whose values the emulator checks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColumnType {
    /// 32-bit integer.
    Int,
    /// 64-bit integer.
    Bigint,
    /// 64-bit floating point.
    Double,
    /// Any text.
    #[default]
    String,
    /// `YYYY-MM-DD HH:MM:SS`, also with `T`, a fraction, or without the time.
    Datetime,
}

/// A table's data model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum KeyType {
    /// Every row is kept.
    #[default]
    Duplicate,
    /// The last row of a key is kept.
    Unique,
}

/// State of a transaction, by the names that Doris prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum TransactionState {
    /// Begun, its body not complete.
    Prepare,
    /// Durable, invisible, waiting for commit or abort.
    Precommitted,
    /// Certain to become visible.
    Committed,
    /// Visible.
    Visible,
    /// Never visible.
    Aborted,
}

impl TransactionState {
    /// All states, in the order a transaction can pass them.
    pub const ALL: [Self; 5] = [Self::Prepare, Self::Precommitted, Self::Committed, Self::Visible, Self::Aborted];

    /// The name in upper case, as in `get_load_state`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Prepare => "PREPARE",
            Self::Precommitted => "PRECOMMITTED",
            Self::Committed => "COMMITTED",
            Self::Visible => "VISIBLE",
            Self::Aborted => "ABORTED",
        }
    }

    /// Whether nothing can change any more; such transactions are forgotten in time.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Visible | Self::Aborted)
    }
}

/// One transaction, as listed by the control API and as written to the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transaction {
    /// Increasing number, unique in the emulator.
    pub id: i64,
    /// Label, unique among the database's transactions that are not aborted.
    pub label: String,
    /// Database.
    pub db: String,
    /// Table.
    pub table: String,
    /// Current state.
    pub state: TransactionState,
    /// Whether the load asked for two-phase commit.
    pub two_phase: bool,
    /// Number of the BE that took the load, counted from 0.
    pub backend: usize,
    /// Rows that were kept.
    pub rows: u64,
    /// Bytes of the body.
    pub bytes: u64,
    /// Sum modulo 2^64 of the XXH3 64-bit hashes of the kept rows (without delimiters): equal for equal rows in any order.
    pub hash: u64,
    /// Bytes of its file of rows.
    pub stored_bytes: u64,
    /// How its rows are written.
    pub format: RowFormat,
    /// Life in state PREPARE, milliseconds.
    pub timeout_ms: u64,
    /// Life in state PRECOMMITTED, milliseconds; not kept over a restart, like in Doris.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub precommit_timeout_ms: u64,
    /// When it began; this and the following in milliseconds since 1970 of the emulated clock.
    pub begun_ms: u64,
    /// When it became PRECOMMITTED.
    pub precommitted_ms: Option<u64>,
    /// When it became COMMITTED.
    pub committed_ms: Option<u64>,
    /// When it became, or will become, VISIBLE.
    pub visible_ms: Option<u64>,
    /// When it was aborted.
    pub aborted_ms: Option<u64>,
    /// Why it was aborted.
    pub reason: Option<String>,
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// How the rows of one load are written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RowFormat {
    /// One JSON object a row.
    Json,
    /// Delimited fields.
    Csv(CsvShape),
}

/// What tells fields of a CSV row apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CsvShape {
    /// Between two fields; one byte or more.
    pub column_separator: Vec<u8>,
    /// Quote character, if the load names one.
    pub enclose: Option<u8>,
    /// Character that takes the meaning from a quote, if the load names one.
    pub escape: Option<u8>,
    /// The `columns` header; empty for the table's own columns in order.
    pub columns: Vec<String>,
}

/// What is visible in a table, and its transactions per state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableCounts {
    /// Visible rows; of a `UNIQUE` table the loaded rows before merging.
    pub rows: u64,
    /// Bytes of the bodies they came in.
    pub bytes: u64,
    /// Sum of the transactions' hashes, modulo 2^64.
    pub hash: u64,
    /// Visible transactions with at least one row, also those that are forgotten by now.
    pub loads: u64,
    /// Transactions that are still remembered, per state.
    pub transactions: StateCounts,
}

/// Number of transactions per state; every state is present.
pub type StateCounts = BTreeMap<TransactionState, u64>;

/// What went over the wire since the emulator started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Traffic {
    /// Requests to FE listeners.
    pub fe_requests: u64,
    /// FE requests whose body bytes were sent to the FE. Must never happen.
    pub fe_bodies: u64,
    /// Redirects that FEs answered with.
    pub fe_redirects: u64,
    /// Load requests that reached a BE.
    pub load_requests: u64,
    /// Transactions begun.
    pub loads_begun: u64,
    /// Loads that became PRECOMMITTED.
    pub loads_precommitted: u64,
    /// Loads that were answered, or would have been, with anything but success.
    pub loads_failed: u64,
    /// Bodies that broke off before their end.
    pub bodies_broken: u64,
    /// Body bytes received.
    pub body_bytes: u64,
    /// Commit requests that reached a BE.
    pub commit_requests: u64,
    /// Transactions that became COMMITTED by a commit request.
    pub commits: u64,
    /// Abort requests that reached a BE.
    pub abort_requests: u64,
    /// Transactions that became ABORTED by an abort request.
    pub aborts: u64,
    /// Requests that hold faults keep back now.
    pub held: u64,
    /// Faults that fired.
    pub faults_fired: u64,
}
