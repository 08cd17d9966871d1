//! Connections, each with one purpose, and the transactions on them.
//!
//! A transaction takes its connection out of the seat and puts it back when it ends well. After an error, or when its caller stops waiting,
//! the connection is closed, which rolls back; the next transaction opens another one with the same checks. So no doubt about a
//! connection's state outlives a call.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteSynchronous};
use sqlx::{ConnectOptions, query, query_scalar};
use tokio::sync::{Mutex, MutexGuard};

use crate::LedgerError;
use crate::rows::RowError;

/// How long a call waits for a lock that another connection holds.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// What is left of the write-ahead log after it was checkpointed, in bytes.
const WAL_KEPT_BYTES: &str = "16777216";
/// `PRAGMA synchronous` of a connection whose commits are synced.
const SYNCHRONOUS_FULL: i64 = 2;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Everything whose loss would break a promise: every commit is synced.
    Decide,
    /// Heartbeats: commits are written, not synced, and never checkpoint, which would sync.
    Beat,
    /// Reads beside a writer.
    Read,
}

/// Which file was opened, so that one put in its place is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    pub(super) fn of(path: &Path) -> std::io::Result<Self> {
        std::fs::metadata(path).map(|file| Self { device: file.dev(), inode: file.ino() })
    }
}

/// A place for one connection.
#[derive(Debug)]
pub(super) struct Seat {
    path: PathBuf,
    file: FileIdentity,
    purpose: Purpose,
    slot: Mutex<Option<SqliteConnection>>,
}

impl Seat {
    pub(super) fn new(path: &Path, file: FileIdentity, purpose: Purpose) -> Self {
        Self { path: path.to_owned(), file, purpose, slot: Mutex::new(None) }
    }

    /// The connection, without a transaction.
    pub(super) async fn connection(&self) -> Result<Session<'_>, LedgerError> {
        let mut slot = self.slot.lock().await;
        // Writing on into a file that has lost its name would fence nobody.
        if FileIdentity::of(&self.path).ok() != Some(self.file) {
            let message = format!("{} was moved, deleted or replaced while it was in use", self.path.display());
            return Err(LedgerError::Corrupt { message });
        }
        let conn = match slot.take() {
            Some(conn) => conn,
            None => connect(&self.path, self.purpose).await?,
        };
        Ok(Session { slot, conn })
    }

    /// Begins a transaction: one that reads for [`Purpose::Read`], else one that holds the write lock from its start, so that what it reads stays true.
    pub(super) async fn begin(&self) -> Result<Session<'_>, LedgerError> {
        let mut session = self.connection().await?;
        let begin = match self.purpose {
            Purpose::Read => query("BEGIN"),
            Purpose::Decide | Purpose::Beat => query("BEGIN IMMEDIATE"),
        };
        begin.execute(&mut session.conn).await.map_err(|error| before_commit(&error))?;
        Ok(session)
    }
}

/// A connection in use.
pub(super) struct Session<'a> {
    slot: MutexGuard<'a, Option<SqliteConnection>>,
    conn: SqliteConnection,
}

impl Session<'_> {
    pub(super) fn conn(&mut self) -> &mut SqliteConnection {
        &mut self.conn
    }

    /// Commits. After [`LedgerError::MustRestart`] nobody in this process can tell whether it did.
    pub(super) async fn commit(mut self) -> Result<(), LedgerError> {
        query("COMMIT").execute(&mut self.conn).await.map_err(|error| at_commit(&error))?;
        self.keep();
        Ok(())
    }

    /// Ends a transaction that wrote nothing, or shall not have.
    pub(super) async fn rollback(mut self) -> Result<(), LedgerError> {
        query("ROLLBACK").execute(&mut self.conn).await.map_err(|error| before_commit(&error))?;
        self.keep();
        Ok(())
    }

    /// Puts back a connection that has no transaction open.
    pub(super) fn keep(mut self) {
        *self.slot = Some(self.conn);
    }
}

/// The options that every connection has.
pub(super) fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .busy_timeout(BUSY_TIMEOUT)
        .foreign_keys(true)
        // Where a sync of a file does not reach the disk by itself (macOS); elsewhere they do nothing.
        .pragma("fullfsync", "ON")
        .pragma("checkpoint_fullfsync", "ON")
        .pragma("journal_size_limit", WAL_KEPT_BYTES)
        .disable_statement_logging()
}

/// Opens a connection to an existing ledger and checks that it syncs as its purpose needs.
async fn connect(path: &Path, purpose: Purpose) -> Result<SqliteConnection, LedgerError> {
    let options = match purpose {
        Purpose::Decide => options(path).synchronous(SqliteSynchronous::Full),
        Purpose::Beat => options(path).synchronous(SqliteSynchronous::Normal).pragma("wal_autocheckpoint", "0"),
        Purpose::Read => options(path).pragma("query_only", "ON"),
    };
    let mut conn = options.connect().await.map_err(|error| before_commit(&error))?;
    if purpose == Purpose::Decide {
        let wrong = |what: String| LedgerError::CannotOpen { url: path.display().to_string(), message: what };
        let mode: String = query_scalar("PRAGMA journal_mode").fetch_one(&mut conn).await.map_err(|error| before_commit(&error))?;
        if mode != "wal" {
            return Err(wrong(format!("its journal mode is {mode} and not wal; another program has changed it")));
        }
        let synchronous: i64 = query_scalar("PRAGMA synchronous").fetch_one(&mut conn).await.map_err(|error| before_commit(&error))?;
        if synchronous != SYNCHRONOUS_FULL {
            return Err(wrong(format!("SQLite does not sync commits: PRAGMA synchronous is {synchronous}")));
        }
    }
    Ok(conn)
}

/// SQLite's primary result code (<https://sqlite.org/rescode.html>), if the error is SQLite's.
pub(super) fn result_code(error: &sqlx::Error) -> Option<i32> {
    let code: i32 = error.as_database_error()?.code()?.parse().ok()?;
    Some(code & 0xff)
}

pub(super) const SQLITE_BUSY: i32 = 5;
pub(super) const SQLITE_READONLY: i32 = 8;
const SQLITE_CORRUPT: i32 = 11;
pub(super) const SQLITE_CANTOPEN: i32 = 14;
const SQLITE_CONSTRAINT: i32 = 19;
pub(super) const SQLITE_NOTADB: i32 = 26;

/// An error of anything but a commit: nothing is written, so the caller may try again unless the file is damaged.
pub(super) fn before_commit(error: &sqlx::Error) -> LedgerError {
    let message = error.to_string();
    match result_code(error) {
        // Everything that a caller can get wrong is checked before: what a constraint still refuses contradicts facts.
        Some(SQLITE_CORRUPT | SQLITE_NOTADB | SQLITE_CONSTRAINT) => LedgerError::Corrupt { message },
        _ => LedgerError::Unavailable { message },
    }
}

/// An error of a commit. Busy is definite: nothing was written. After anything else the log may hold the commit although it was not synced.
fn at_commit(error: &sqlx::Error) -> LedgerError {
    let message = error.to_string();
    match result_code(error) {
        Some(SQLITE_BUSY) => LedgerError::Unavailable { message },
        _ => LedgerError::MustRestart { message },
    }
}

impl From<RowError> for LedgerError {
    fn from(error: RowError) -> Self {
        match error {
            RowError::Sql(sqlx::Error::ColumnDecode { index, source }) => LedgerError::corrupt(format!("column {index}: {source}")),
            RowError::Sql(error) => before_commit(&error),
            RowError::Ledger(error) => error,
        }
    }
}
