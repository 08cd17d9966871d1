//! One database: its tables, its transactions and their labels. Pure; time and limits are given.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::options::Settings;
use crate::types::{RowFormat, StateCounts, TableSpec, Transaction, TransactionState};

/// The reason that Doris gives when its cleaner aborts.
pub(crate) const TIMED_OUT: &str = "timeout by txn manager";

/// Tables, transactions and labels of one database.
#[derive(Debug)]
pub(crate) struct Database {
    pub(crate) id: i64,
    pub(crate) tables: BTreeMap<String, Table>,
    transactions: BTreeMap<i64, Transaction>,
    /// Transactions of each label, oldest first; at most one of them is not aborted.
    labels: HashMap<String, Vec<i64>>,
    running: BTreeSet<i64>,
    /// Final transactions by the time they became so.
    finished: BTreeSet<(u64, i64)>,
}

/// A table and what was committed into it, in commit order; this outlives the transactions.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) id: i64,
    pub(crate) spec: Arc<TableSpec>,
    pub(crate) loads: Vec<Load>,
}

/// The rows of one committed transaction.
#[derive(Debug, Clone)]
pub(crate) struct Load {
    pub(crate) transaction: i64,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    pub(crate) hash: u64,
    pub(crate) stored_bytes: u64,
    pub(crate) format: RowFormat,
    pub(crate) visible_ms: u64,
}

/// What the passing of time did.
#[derive(Debug, Default)]
pub(crate) struct Swept {
    /// Transactions that timed out, already in their new state.
    pub(crate) aborted: Vec<Transaction>,
    /// Transactions to forget.
    pub(crate) forgotten: Vec<i64>,
}

impl Database {
    pub(crate) fn new(id: i64) -> Self {
        Self {
            id,
            tables: BTreeMap::new(),
            transactions: BTreeMap::new(),
            labels: HashMap::new(),
            running: BTreeSet::new(),
            finished: BTreeSet::new(),
        }
    }

    pub(crate) fn get(&self, id: i64) -> Option<&Transaction> {
        self.transactions.get(&id)
    }

    pub(crate) fn transactions(&self) -> impl Iterator<Item = &Transaction> {
        self.transactions.values()
    }

    /// PREPARE, PRECOMMITTED and COMMITTED transactions.
    pub(crate) fn running(&self) -> u64 {
        self.running.len() as u64
    }

    /// The label's transactions, newest first.
    pub(crate) fn of_label<'a>(&'a self, label: &str) -> impl Iterator<Item = &'a Transaction> + use<'a> {
        let ids = self.labels.get(label).map(Vec::as_slice).unwrap_or_default();
        ids.iter().rev().filter_map(|id| self.transactions.get(id))
    }

    /// Takes the transaction's new state, live and in replay.
    pub(crate) fn put(&mut self, transaction: Transaction) {
        let id = transaction.id;
        let before = self.transactions.get(&id).map(|old| old.state);
        if before.is_none() {
            self.labels.entry(transaction.label.clone()).or_default().push(id);
        }
        if transaction.state.is_final() {
            self.running.remove(&id);
            self.finished.insert((finished_ms(&transaction), id));
        } else {
            self.running.insert(id);
        }
        if transaction.state == TransactionState::Committed && before != Some(TransactionState::Committed) {
            self.keep_rows(&transaction);
        }
        self.transactions.insert(id, transaction);
    }

    fn keep_rows(&mut self, transaction: &Transaction) {
        if let Some(table) = self.tables.get_mut(&transaction.table) {
            table.loads.push(Load {
                transaction: transaction.id,
                rows: transaction.rows,
                bytes: transaction.bytes,
                hash: transaction.hash,
                stored_bytes: transaction.stored_bytes,
                format: transaction.format.clone(),
                visible_ms: transaction.visible_ms.unwrap_or_default(),
            });
        }
    }

    /// Drops the transaction from memory, as after 12 hours or after a restart that lost it.
    pub(crate) fn forget(&mut self, id: i64) {
        let Some(transaction) = self.transactions.remove(&id) else { return };
        self.running.remove(&id);
        self.finished.remove(&(finished_ms(&transaction), id));
        if let Some(ids) = self.labels.get_mut(&transaction.label) {
            ids.retain(|&other| other != id);
            if ids.is_empty() {
                self.labels.remove(&transaction.label);
            }
        }
    }

    /// What is due at `now_ms`: publishes in place, and returns time-outs and evictions for the journal.
    pub(crate) fn sweep(&mut self, now_ms: u64, settings: &Settings) -> Swept {
        let mut swept = Swept::default();
        let mut published = Vec::new();
        for transaction in self.running.iter().filter_map(|id| self.transactions.get(id)) {
            let due = |since: Option<u64>, life: u64| since.is_some_and(|at| at.saturating_add(life) <= now_ms);
            match transaction.state {
                TransactionState::Prepare if due(Some(transaction.begun_ms), transaction.timeout_ms) => {
                    swept.aborted.push(aborted(transaction, now_ms, TIMED_OUT));
                }
                TransactionState::Precommitted if due(transaction.precommitted_ms, transaction.precommit_timeout_ms) => {
                    swept.aborted.push(aborted(transaction, now_ms, TIMED_OUT));
                }
                TransactionState::Committed if due(transaction.visible_ms, 0) => {
                    published.push(Transaction { state: TransactionState::Visible, ..transaction.clone() });
                }
                _ => {}
            }
        }
        for transaction in published {
            self.put(transaction);
        }
        swept.forgotten = self.evictable(now_ms, settings);
        swept
    }

    /// Finished transactions that are too old, or too many; oldest first.
    fn evictable(&self, now_ms: u64, settings: &Settings) -> Vec<i64> {
        let keep_ms = settings.streaming_label_keep_max_second.saturating_mul(1_000);
        let surplus = match usize::try_from(settings.label_num_threshold) {
            Ok(limit) => self.finished.len().saturating_sub(limit),
            Err(_) => 0,
        };
        let old = |&(index, &(at, _)): &(usize, &(u64, i64))| index < surplus || at.saturating_add(keep_ms) <= now_ms;
        self.finished.iter().enumerate().take_while(old).map(|(_, &(_, id))| id).collect()
    }

    /// PREPARE transactions, of one BE or of all.
    pub(crate) fn preparing(&self, backend: Option<usize>) -> Vec<i64> {
        let preparing = |transaction: &&Transaction| {
            transaction.state == TransactionState::Prepare && backend.is_none_or(|be| be == transaction.backend)
        };
        self.running.iter().filter_map(|id| self.transactions.get(id)).filter(preparing).map(|it| it.id).collect()
    }

    /// Gives every transaction without one its life in state PRECOMMITTED.
    pub(crate) fn set_precommit_timeout(&mut self, timeout_ms: u64) {
        for id in &self.running {
            if let Some(transaction) = self.transactions.get_mut(id) {
                transaction.precommit_timeout_ms = timeout_ms;
            }
        }
    }

    /// Remembered transactions per state, of one table or of all.
    pub(crate) fn count(&self, table: Option<&str>, counts: &mut StateCounts) {
        for transaction in self.transactions.values() {
            if table.is_none_or(|name| name == transaction.table) {
                *counts.entry(transaction.state).or_default() += 1;
            }
        }
    }
}

/// The transaction, aborted.
pub(crate) fn aborted(transaction: &Transaction, now_ms: u64, reason: &str) -> Transaction {
    Transaction { state: TransactionState::Aborted, aborted_ms: Some(now_ms), reason: Some(reason.to_owned()), ..transaction.clone() }
}

fn finished_ms(transaction: &Transaction) -> u64 {
    transaction.aborted_ms.or(transaction.visible_ms).unwrap_or_default()
}
