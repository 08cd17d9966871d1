//! What Doris says when it refuses, in the words of each dialect.
//!
//! Sources: Apache Doris at commit 82bd980a6a, `DatabaseTransactionMgr.java`, `FrontendServiceImpl.java`,
//! `LabelAlreadyUsedException.java`, `meta_service_txn.cpp`, `stream_load_2pc.cpp`; older wordings from connector
//! fixtures. Spelling mistakes are theirs.

use crate::options::Dialect;
use crate::types::TransactionState;

/// Why the transaction manager (the FE in Doris) says no. It is nobody's bug: a faithful answer to the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    LabelUsed {
        label: String,
        transaction: i64,
        state: TransactionState,
    },
    LabelFormat {
        label: String,
    },
    RunningLimit {
        db_id: i64,
        running: u64,
        limit: u64,
    },
    InvalidTimeout {
        seconds: u64,
        max: u64,
    },
    UnknownDatabase {
        db: String,
    },
    UnknownTable {
        table: String,
    },
    AccessDenied {
        user: String,
        ip: String,
        with_password: bool,
    },
    NoPrivilege,
    NotFound {
        transaction: i64,
    },
    LabelUnknown {
        label: String,
    },
    LabelNotRunning {
        label: String,
    },
    CommitRefused {
        transaction: i64,
        state: TransactionState,
        reason: String,
        db_id: i64,
    },
    AbortRefused {
        transaction: i64,
        state: TransactionState,
        reason: String,
        db_id: i64,
    },
    GoneWhileLoading,
    AbortedWhileLoading {
        reason: String,
    },
    LockTimeout {
        table_id: i64,
        table: String,
    },
    NotMaster,
    IllegalInput {
        label: String,
    },
    /// The emulator itself failed, such as a full disk.
    Internal {
        text: String,
    },
}

impl Refusal {
    /// Doris's text, without prefixes.
    pub(crate) fn text(&self, dialect: Dialect) -> String {
        match self {
            Self::LabelUsed { label, transaction, state } => label_used(label, *transaction, *state, dialect),
            Self::LabelFormat { label } => {
                format!("Label format error. regex: ^[\\-_A-Za-z0-9:]{{1,128}}$, label: {label}")
            }
            Self::RunningLimit { db_id, running, limit } => {
                format!("current running txns on db {db_id} is {running}, larger than limit {limit}")
            }
            Self::InvalidTimeout { seconds, max } => {
                format!("Invalid timeout: {seconds}. Timeout should be lower than {max}")
            }
            Self::UnknownDatabase { db } => format!("unknown database, database={db}"),
            Self::UnknownTable { table } => format!("unknown table, tableName={table}"),
            Self::AccessDenied { user, ip, with_password } => {
                let using = if *with_password { "YES" } else { "NO" };
                format!("Access denied for user '{user}@{ip}' (using password: {using})")
            }
            Self::NoPrivilege => "Access denied; you need (at least one of) the (LOAD) privilege(s) for this operation".to_owned(),
            Self::NotFound { transaction } => format!("transaction [{transaction}] not found"),
            Self::LabelUnknown { label } => format!("transaction not found, label={label}"),
            Self::LabelNotRunning { label } => format!("running transaction not found, label={label}"),
            Self::CommitRefused { transaction, state, reason, db_id } => commit_refused(*transaction, *state, reason, *db_id, dialect),
            Self::AbortRefused { transaction, state, reason, db_id } => abort_refused(*transaction, *state, reason, *db_id, dialect),
            Self::GoneWhileLoading => "transaction not found".to_owned(),
            Self::AbortedWhileLoading { reason } => reason.clone(),
            Self::LockTimeout { table_id, table } => {
                format!("get tableList write lock timeout, tableList=(Table [id={table_id}, name={table}, type=OLAP])")
            }
            Self::NotMaster => "FE is not master".to_owned(),
            Self::IllegalInput { label } => {
                format!("failed abort txn, with illegal input, db_id=-1 txn_id=-1 label={label}")
            }
            Self::Internal { text } => format!("doris-emulator failed: {text}"),
        }
    }

    /// The status code name: the `status` of a two-phase reply, and in brackets in front of a load's message.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::LabelUsed { .. } => "LABEL_ALREADY_EXISTS",
            Self::NotMaster => "NOT_MASTER",
            Self::IllegalInput { .. } | Self::Internal { .. } => "INTERNAL_ERROR",
            _ => "ANALYSIS_ERROR",
        }
    }

    /// The text with what the FE and the BE's thrift layer put in front of it.
    pub(crate) fn detail(&self, dialect: Dialect) -> String {
        let text = self.text(dialect);
        let number = match self {
            Self::UnknownTable { .. } => 7,
            _ => 2,
        };
        match self {
            Self::IllegalInput { .. } => text,
            Self::NotMaster => format!("{}{text}", thrift_prefix(dialect)),
            _ => format!("{}errCode = {number}, detailMessage = {text}", thrift_prefix(dialect)),
        }
    }

    /// The `Message` of a load reply.
    pub(crate) fn load_message(&self, dialect: Dialect) -> String {
        match (self, dialect) {
            (_, Dialect::V1) | (Self::LabelUsed { .. }, Dialect::V2_0) => self.detail(dialect),
            _ => format!("[{}]{}", self.code(), self.detail(dialect)),
        }
    }
}

/// `TStatus: ` came with Doris 2.1.
fn thrift_prefix(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::V1 | Dialect::V2_0 => "",
        Dialect::V2_1 | Dialect::V4_0 | Dialect::Cloud => "TStatus: ",
    }
}

fn label_used(label: &str, transaction: i64, state: TransactionState, dialect: Dialect) -> String {
    let used = format!("Label [{label}] has already been used, relate to txn [{transaction}]");
    match dialect {
        Dialect::V1 | Dialect::V2_0 => used,
        Dialect::V2_1 | Dialect::V4_0 => format!("{used}, status [{}].", state.name()),
        Dialect::Cloud => {
            let state = match state {
                TransactionState::Prepare => "PREPARED",
                TransactionState::Precommitted => "PRECOMMITTED",
                TransactionState::Committed => "COMMITTED",
                TransactionState::Visible => "VISIBLE",
                TransactionState::Aborted => "ABORTED",
            };
            format!("{used}, status=[TXN_STATUS_{state}]")
        }
    }
}

fn commit_refused(id: i64, state: TransactionState, reason: &str, db_id: i64, dialect: Dialect) -> String {
    match (state, dialect) {
        (TransactionState::Aborted, Dialect::Cloud) => format!("transaction [{id}] is already aborted, db_id={db_id}"),
        (TransactionState::Aborted, _) => format!("transaction [{id}] is already aborted. abort reason: {reason}"),
        (TransactionState::Prepare, Dialect::Cloud) => {
            format!("transaction is prepare, not pre-committed: db_id={db_id} txn_id{id}")
        }
        (TransactionState::Prepare, _) => format!("transaction [{id}] is prepare, not pre-committed."),
        (TransactionState::Committed, _) => format!("transaction [{id}] is already committed, not pre-committed."),
        (TransactionState::Visible, _) => format!("transaction [{id}] is already visible, not pre-committed."),
        // Never asked for: a PRECOMMITTED transaction is committed.
        (TransactionState::Precommitted, _) => format!("transaction [{id}] is precommitted"),
    }
}

fn abort_refused(id: i64, state: TransactionState, reason: &str, db_id: i64, dialect: Dialect) -> String {
    match (state, dialect) {
        (TransactionState::Aborted, Dialect::Cloud) => format!("transaction [{id}] is already aborted, db_id={db_id}"),
        (TransactionState::Aborted, _) => format!("transaction [{id}] is already aborted, abort reason: {reason}"),
        (state, Dialect::Cloud) => format!("transaction [{id}] is already {}, db_id={db_id}", state.name()),
        (state, _) => format!("transaction [{id}] is already {}, could not abort.", state.name()),
    }
}
