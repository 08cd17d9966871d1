//! The transaction manager: every decision is checked, written to the journal, and only then takes place.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::database::{Database, Table, aborted};
use super::journal::{Journal, Record};
use super::refusal::Refusal;
use crate::error::EmulatorError;
use crate::options::{Dialect, Settings};
use crate::rows::RowStore;
use crate::types::{RowFormat, TableSpec, Transaction, TransactionState};

/// Ids given away between two journal records about them.
const IDS_AT_ONCE: i64 = 1_000;
/// The first transaction, database and table id.
const FIRST_ID: i64 = 10_001;
/// Longest label, `label_regex_length` in Doris.
const LABEL_BYTES_MAX: usize = 128;

/// All databases and the journal.
#[derive(Debug)]
pub(crate) struct Manager {
    pub(super) databases: BTreeMap<String, Database>,
    journal: Journal,
    store: Arc<RowStore>,
    next_id: i64,
    ids_end: i64,
    clock_offset_ms: u64,
    /// Set when the journal failed: what is in memory may differ from what is on disk, so nothing more is promised.
    failed: Option<String>,
}

/// A load that wants a transaction.
#[derive(Debug)]
pub(crate) struct Begin<'a> {
    pub(crate) db: &'a str,
    pub(crate) table: &'a str,
    pub(crate) label: &'a str,
    pub(crate) timeout_s: Option<u64>,
    pub(crate) two_phase: bool,
    pub(crate) backend: usize,
    pub(crate) format: RowFormat,
}

/// What a complete body amounted to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outcome {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    pub(crate) hash: u64,
    pub(crate) stored_bytes: u64,
}

/// Which transaction a two-phase request means; the id wins.
#[derive(Debug, Clone, Default)]
pub(crate) struct Which {
    pub(crate) id: Option<i64>,
    pub(crate) label: Option<String>,
}

/// The moment and the limits under which something is decided.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At<'a> {
    pub(crate) now_ms: u64,
    pub(crate) settings: &'a Settings,
}

impl Manager {
    /// Rebuilds the state that the journal promises.
    pub(crate) fn replay(journal: Journal, records: Vec<Record>, store: Arc<RowStore>, settings: &Settings) -> Result<Self, EmulatorError> {
        let mut manager =
            Self { databases: BTreeMap::new(), journal, store, next_id: FIRST_ID, ids_end: FIRST_ID, clock_offset_ms: 0, failed: None };
        for record in records {
            manager.apply(record);
        }
        manager.next_id = manager.ids_end;
        manager.reread_precommit_timeout(settings);
        manager.check_rows()?;
        Ok(manager)
    }

    fn apply(&mut self, record: Record) {
        match record {
            Record::Table { spec, db_id, table_id } => {
                let database = self.databases.entry(spec.db.clone()).or_insert_with(|| Database::new(db_id));
                let name = spec.table.clone();
                database.tables.insert(name, Table { id: table_id, spec: Arc::new(spec), loads: Vec::new() });
            }
            Record::DropTable { db, table } => {
                if let Some(database) = self.databases.get_mut(&db) {
                    database.tables.remove(&table);
                }
            }
            Record::Ids(end) => self.ids_end = end,
            Record::Clock(offset_ms) => self.clock_offset_ms = offset_ms,
            Record::Transaction(transaction) => {
                if let Some(database) = self.databases.get_mut(&transaction.db) {
                    database.put(*transaction);
                }
            }
            Record::Forget { db, ids } => {
                if let Some(database) = self.databases.get_mut(&db) {
                    ids.iter().for_each(|&id| database.forget(id));
                }
            }
        }
    }

    /// Every promised transaction must have its rows, and every other file of rows must go.
    fn check_rows(&self) -> Result<(), EmulatorError> {
        let mut promised = BTreeMap::new();
        for database in self.databases.values() {
            let precommitted = database.transactions().filter(|it| it.state == TransactionState::Precommitted);
            promised.extend(precommitted.map(|it| (it.id, it.stored_bytes)));
            let loads = database.tables.values().flat_map(|table| &table.loads);
            promised.extend(loads.map(|load| (load.transaction, load.stored_bytes)));
        }
        self.store.keep_only(&promised)
    }

    /// How far the emulated clock is ahead, as last written.
    pub(crate) fn clock_offset_ms(&self) -> u64 {
        self.clock_offset_ms
    }

    /// Writes the records, then lets them take place.
    fn record(&mut self, records: Vec<Record>) -> Result<(), Refusal> {
        if let Some(text) = &self.failed {
            return Err(Refusal::Internal { text: text.clone() });
        }
        if let Err(error) = self.journal.append(&records) {
            let text = format!("{error}");
            tracing::error!(error = %text, "journal failed; nothing more is promised");
            self.failed = Some(text.clone());
            return Err(Refusal::Internal { text });
        }
        for record in records {
            self.apply(record);
        }
        Ok(())
    }

    fn record_transaction(&mut self, transaction: Transaction) -> Result<(), Refusal> {
        self.record(vec![Record::Transaction(Box::new(transaction))])
    }

    /// Does what time has made due. Called before every other operation.
    pub(crate) fn sweep(&mut self, at: At<'_>) -> Result<(), Refusal> {
        // Evictions can follow from the aborts of the same moment, so it goes on until nothing is due.
        loop {
            let (mut records, mut without_rows) = (Vec::new(), Vec::new());
            for (name, database) in &mut self.databases {
                let swept = database.sweep(at.now_ms, at.settings);
                without_rows.extend(swept.aborted.iter().map(|transaction| transaction.id));
                records.extend(swept.aborted.into_iter().map(|it| Record::Transaction(Box::new(it))));
                if !swept.forgotten.is_empty() {
                    records.push(Record::Forget { db: name.clone(), ids: swept.forgotten });
                }
            }
            if records.is_empty() {
                return Ok(());
            }
            self.record(records)?;
            without_rows.into_iter().for_each(|id| self.store.remove(id));
        }
    }

    /// The emulated clock was moved.
    pub(crate) fn clock_moved(&mut self, offset_ms: u64) -> Result<(), Refusal> {
        self.record(vec![Record::Clock(offset_ms)])
    }

    /// Creates a table, and its database with the first. An equal one that exists is fine; another one is replaced
    /// only after it was dropped.
    pub(crate) fn create_table(&mut self, spec: TableSpec) -> Result<bool, Refusal> {
        if let Some(table) = self.table(&spec.db, &spec.table) {
            return Ok(*table.spec == spec);
        }
        let db_id = match self.databases.get(&spec.db) {
            Some(database) => database.id,
            None => self.next_id()?,
        };
        let table_id = self.next_id()?;
        self.record(vec![Record::Table { spec, db_id, table_id }])?;
        Ok(true)
    }

    /// Drops a table with its visible rows; its transactions stay. False if there is none.
    pub(crate) fn drop_table(&mut self, db: &str, table: &str) -> Result<bool, Refusal> {
        let Some(found) = self.table(db, table) else { return Ok(false) };
        let loads: Vec<i64> = found.loads.iter().map(|load| load.transaction).collect();
        self.record(vec![Record::DropTable { db: db.to_owned(), table: table.to_owned() }])?;
        loads.into_iter().for_each(|id| self.store.remove(id));
        Ok(true)
    }

    pub(super) fn table(&self, db: &str, table: &str) -> Option<&Table> {
        self.databases.get(db)?.tables.get(table)
    }

    fn next_id(&mut self) -> Result<i64, Refusal> {
        if self.next_id >= self.ids_end {
            self.record(vec![Record::Ids(self.next_id + IDS_AT_ONCE)])?;
        }
        let id = self.next_id;
        self.next_id += 1;
        Ok(id)
    }

    /// Begins a transaction; checks in Doris's order: database and table, label format, label, limit, time-out.
    pub(crate) fn begin(&mut self, begin: Begin<'_>, at: At<'_>) -> Result<(i64, Arc<TableSpec>), Refusal> {
        let unknown_db = || Refusal::UnknownDatabase { db: begin.db.to_owned() };
        let database = self.databases.get(begin.db).ok_or_else(unknown_db)?;
        let unknown_table = || Refusal::UnknownTable { table: begin.table.to_owned() };
        let spec = database.tables.get(begin.table).ok_or_else(unknown_table)?.spec.clone();
        let max = at.settings.max_stream_load_timeout_second;
        let timeout_s = begin.timeout_s.unwrap_or(at.settings.stream_load_default_timeout_second);
        if timeout_s > max {
            return Err(Refusal::InvalidTimeout { seconds: timeout_s, max });
        }
        check_label_format(begin.label)?;
        let taken = database.of_label(begin.label).find(|other| other.state != TransactionState::Aborted);
        if let Some(other) = taken {
            let (label, transaction, state) = (begin.label.to_owned(), other.id, other.state);
            return Err(Refusal::LabelUsed { label, transaction, state });
        }
        let (db_id, running, limit) = (database.id, database.running(), at.settings.max_running_txn_num_per_db);
        if running >= limit {
            return Err(Refusal::RunningLimit { db_id, running, limit });
        }
        let id = self.next_id()?;
        if let Some(database) = self.databases.get_mut(begin.db) {
            database.put(prepared(id, &begin, timeout_s, at));
        }
        Ok((id, spec))
    }

    /// PREPARE to PRECOMMITTED, or without two-phase commit to COMMITTED. The rows must be on disk. Returns when they
    /// will be visible, for the latter.
    pub(crate) fn finish(&mut self, db: &str, id: i64, body: &Outcome, at: At<'_>) -> Result<Option<u64>, Refusal> {
        let transaction = self.databases.get(db).and_then(|database| database.get(id));
        let transaction = transaction.ok_or(Refusal::GoneWhileLoading)?;
        if transaction.state == TransactionState::Aborted {
            return Err(Refusal::AbortedWhileLoading { reason: transaction.reason.clone().unwrap_or_default() });
        }
        let mut done =
            Transaction { rows: body.rows, bytes: body.bytes, hash: body.hash, stored_bytes: body.stored_bytes, ..transaction.clone() };
        if done.two_phase {
            done.state = TransactionState::Precommitted;
            done.precommitted_ms = Some(at.now_ms);
        } else {
            commit_now(&mut done, at);
        }
        let visible_ms = done.visible_ms;
        self.record_transaction(done)?;
        self.sweep(at)?;
        Ok(visible_ms)
    }

    /// What a BE does when a load fails: aborts it if that is still possible. Errors are only logged there, too.
    pub(crate) fn roll_back(&mut self, db: &str, id: i64, reason: &str, at: At<'_>) {
        let found = self.databases.get(db).and_then(|database| database.get(id));
        let Some(transaction) = found.filter(|it| is_abortable(it.state)) else { return };
        let transaction = aborted(transaction, at.now_ms, reason);
        if self.record_transaction(transaction).is_ok() {
            self.store.remove(id);
        }
    }

    /// The two-phase commit. Success means COMMITTED, not yet VISIBLE.
    pub(crate) fn commit(&mut self, db: &str, which: &Which, access: Result<(), Refusal>, at: At<'_>) -> Result<(), Refusal> {
        let (database, transaction) = self.find(db, which, &[TransactionState::Precommitted])?;
        if !database.tables.contains_key(&transaction.table) {
            return Err(Refusal::UnknownTable { table: transaction.table.clone() });
        }
        access?;
        if transaction.state != TransactionState::Precommitted {
            return Err(Refusal::CommitRefused {
                transaction: transaction.id,
                state: transaction.state,
                reason: transaction.reason.clone().unwrap_or_default(),
                db_id: database.id,
            });
        }
        let mut done = transaction.clone();
        commit_now(&mut done, at);
        self.record_transaction(done)?;
        self.sweep(at)
    }

    /// The two-phase abort; also of a transaction that is still being loaded.
    pub(crate) fn abort(&mut self, db: &str, which: &Which, access: Result<(), Refusal>, reason: &str, at: At<'_>) -> Result<(), Refusal> {
        let allowed = [TransactionState::Precommitted, TransactionState::Prepare];
        let (database, transaction) = self.find(db, which, &allowed)?;
        access?;
        if !is_abortable(transaction.state) {
            return Err(Refusal::AbortRefused {
                transaction: transaction.id,
                state: transaction.state,
                reason: transaction.reason.clone().unwrap_or_default(),
                db_id: database.id,
            });
        }
        let done = aborted(transaction, at.now_ms, reason);
        let id = done.id;
        self.record_transaction(done)?;
        self.store.remove(id);
        Ok(())
    }

    /// Finds by id, else by label among `states`.
    fn find(&self, db: &str, which: &Which, states: &[TransactionState]) -> Result<(&Database, &Transaction), Refusal> {
        let unknown = || Refusal::UnknownDatabase { db: db.to_owned() };
        let database = self.databases.get(db).ok_or_else(unknown)?;
        let id = match (which.id, &which.label) {
            (Some(id), _) => id,
            (None, None) => -1,
            (None, Some(label)) => {
                let mut of_label = database.of_label(label).peekable();
                if of_label.peek().is_none() {
                    return Err(Refusal::LabelUnknown { label: label.clone() });
                }
                let found = of_label.find(|it| states.contains(&it.state));
                found.ok_or_else(|| Refusal::LabelNotRunning { label: label.clone() })?.id
            }
        };
        let transaction = database.get(id).ok_or(Refusal::NotFound { transaction: id })?;
        Ok((database, transaction))
    }

    /// The FE restarts: PREPARE transactions are gone, and the precommit time-out is read anew.
    pub(crate) fn restart_fe(&mut self, at: At<'_>) {
        for database in self.databases.values_mut() {
            for id in database.preparing(None) {
                database.forget(id);
                self.store.remove(id);
            }
        }
        self.reread_precommit_timeout(at.settings);
    }

    /// A BE restarts: its own PREPARE transactions are aborted.
    pub(crate) fn restart_be(&mut self, backend: usize, at: At<'_>) {
        let preparing = |(name, database): (&String, &Database)| {
            database.preparing(Some(backend)).into_iter().map(|id| (name.clone(), id)).collect::<Vec<_>>()
        };
        let all: Vec<(String, i64)> = self.databases.iter().flat_map(preparing).collect();
        for (db, id) in all {
            self.roll_back(&db, id, "coordinate BE restart", at);
        }
    }

    fn reread_precommit_timeout(&mut self, settings: &Settings) {
        let timeout_ms = settings.stream_load_default_precommit_timeout_second.saturating_mul(1_000);
        self.databases.values_mut().for_each(|database| database.set_precommit_timeout(timeout_ms));
    }
}

fn prepared(id: i64, begin: &Begin<'_>, timeout_s: u64, at: At<'_>) -> Transaction {
    Transaction {
        id,
        label: begin.label.to_owned(),
        db: begin.db.to_owned(),
        table: begin.table.to_owned(),
        state: TransactionState::Prepare,
        two_phase: begin.two_phase,
        backend: begin.backend,
        rows: 0,
        bytes: 0,
        hash: 0,
        stored_bytes: 0,
        format: begin.format.clone(),
        timeout_ms: timeout_s.saturating_mul(1_000),
        precommit_timeout_ms: at.settings.stream_load_default_precommit_timeout_second.saturating_mul(1_000),
        begun_ms: at.now_ms,
        precommitted_ms: None,
        committed_ms: None,
        visible_ms: None,
        aborted_ms: None,
        reason: None,
    }
}

/// Cloud mode has no time between COMMITTED and VISIBLE.
fn commit_now(transaction: &mut Transaction, at: At<'_>) {
    let delay_ms = match at.settings.dialect {
        Dialect::Cloud => 0,
        _ => at.settings.publish_delay_ms,
    };
    transaction.state = TransactionState::Committed;
    transaction.committed_ms = Some(at.now_ms);
    transaction.visible_ms = Some(at.now_ms.saturating_add(delay_ms));
}

fn is_abortable(state: TransactionState) -> bool {
    matches!(state, TransactionState::Prepare | TransactionState::Precommitted)
}

fn check_label_format(label: &str) -> Result<(), Refusal> {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b':');
    if (1..=LABEL_BYTES_MAX).contains(&label.len()) && label.bytes().all(fine) {
        return Ok(());
    }
    Err(Refusal::LabelFormat { label: label.to_owned() })
}
