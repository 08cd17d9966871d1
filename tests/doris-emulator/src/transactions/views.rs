//! What can be asked of the transaction manager without changing anything.

use std::sync::Arc;

use super::database::{Database, Load};
use super::manager::{At, Manager, Which};
use super::refusal::Refusal;
use crate::types::{StateCounts, TableCounts, TableSpec, Transaction, TransactionState};

impl Manager {
    /// Label, table id and table of the transaction that a two-phase request means, if there is one.
    pub(crate) fn locate(&self, db: &str, which: &Which) -> Option<(String, i64, String)> {
        let database = self.databases.get(db)?;
        let transaction = match (which.id, &which.label) {
            (Some(id), _) => database.get(id),
            (None, Some(label)) => database.of_label(label).next(),
            (None, None) => None,
        }?;
        let table_id = database.tables.get(&transaction.table).map_or(-1, |table| table.id);
        Some((transaction.label.clone(), table_id, transaction.table.clone()))
    }

    /// State of the label's latest transaction; `None` where Doris says UNKNOWN.
    pub(crate) fn label_state(&self, db: &str, label: &str) -> Result<Option<TransactionState>, Refusal> {
        let unknown = || Refusal::UnknownDatabase { db: db.to_owned() };
        let database = self.databases.get(db).ok_or_else(unknown)?;
        Ok(database.of_label(label).next().map(|transaction| transaction.state))
    }

    /// All tables.
    pub(crate) fn tables(&self) -> Vec<Arc<TableSpec>> {
        let tables = self.databases.values().flat_map(|database| database.tables.values());
        tables.map(|table| table.spec.clone()).collect()
    }

    /// A table and its visible loads in commit order.
    pub(crate) fn visible(&self, db: &str, table: &str, at: At<'_>) -> Option<(Arc<TableSpec>, Vec<Load>)> {
        let table = self.table(db, table)?;
        let visible = table.loads.iter().filter(|load| load.visible_ms <= at.now_ms).cloned().collect();
        Some((table.spec.clone(), visible))
    }

    /// What is visible in a table, and its remembered transactions per state.
    pub(crate) fn table_counts(&self, db: &str, table: &str, at: At<'_>) -> Option<TableCounts> {
        let (_, loads) = self.visible(db, table, at)?;
        Some(TableCounts {
            rows: loads.iter().map(|load| load.rows).sum(),
            bytes: loads.iter().map(|load| load.bytes).sum(),
            hash: loads.iter().fold(0, |sum, load| sum.wrapping_add(load.hash)),
            loads: loads.iter().filter(|load| load.rows > 0).count() as u64,
            transactions: self.counts(Some(db), Some(table)),
        })
    }

    /// Remembered transactions per state.
    pub(crate) fn counts(&self, db: Option<&str>, table: Option<&str>) -> StateCounts {
        let mut counts: StateCounts = TransactionState::ALL.into_iter().map(|state| (state, 0)).collect();
        for (_, database) in self.databases.iter().filter(|(name, _)| db.is_none_or(|wanted| wanted == *name)) {
            database.count(table, &mut counts);
        }
        counts
    }

    /// Remembered transactions, by id.
    pub(crate) fn transactions(&self) -> Vec<Transaction> {
        let all = self.databases.values().flat_map(Database::transactions);
        let mut all: Vec<Transaction> = all.cloned().collect();
        all.sort_by_key(|transaction| transaction.id);
        all
    }
}
