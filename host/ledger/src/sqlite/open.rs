//! From a path to a ledger: creating one, recognising one, and refusing everything else before it is touched.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{Access, access};
use rustix::io::Errno;
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::sqlite::SqliteConnection;
use sqlx::{ConnectOptions, Connection, query, query_scalar};
use weir_protocol::LedgerId;

use super::session::{BUSY_TIMEOUT, SQLITE_BUSY, SQLITE_CANTOPEN, SQLITE_NOTADB, SQLITE_READONLY, options, result_code};
use crate::LedgerError;
use crate::rows;

static MIGRATIONS: Migrator = sqlx::migrate!("./migrations");

/// SQLite's `application_id` of a ledger: "Weir".
const APPLICATION_ID: i64 = 0x5765_6972;
/// SQLite's `user_version` of a ledger: the number of its newest migration.
pub(super) const SCHEMA_VERSION: i64 = 1;
/// Pause between two tries while another process creates the same ledger: a change of the journal mode does not wait for locks by itself.
const CREATE_RETRY: Duration = Duration::from_millis(20);

pub(super) const NOT_A_DATABASE: &str = "it is not a SQLite database";

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contents {
    /// Nothing, or what a creation left that was killed before its commit.
    Nothing,
    /// A ledger of this version.
    Ledger,
    /// A ledger that a newer program made or migrated.
    NewerLedger(i64),
    /// A ledger that this program migrates.
    OlderLedger,
    /// Somebody else's database.
    Other,
}

/// What can be said about a path without SQLite, in words that name the mistake. Returns the path in absolute form, which SQLite does not take
/// for a URI.
pub(super) fn check_path(path: &Path) -> Result<PathBuf, LedgerError> {
    let absolute = std::path::absolute(path).map_err(|error| cannot_open(path, error.to_string()))?;
    match fs::metadata(&absolute) {
        Ok(found) if found.is_dir() => Err(cannot_open(path, "it is a folder; name a file in it".to_owned())),
        Ok(found) if !found.is_file() => Err(cannot_open(path, "it is neither a file nor a folder".to_owned())),
        Ok(_) => Ok(absolute),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(cannot_open(path, "there is no such file".to_owned())),
        Err(error) => Err(cannot_open(path, error.to_string())),
    }
}

/// The same for a file that is to be written, or created.
pub(super) fn check_path_to_write(path: &Path, create: bool) -> Result<PathBuf, LedgerError> {
    let absolute = std::path::absolute(path).map_err(|error| cannot_open(path, error.to_string()))?;
    let is_missing = fs::metadata(&absolute).is_err_and(|error| error.kind() == ErrorKind::NotFound);
    if !(create && is_missing) {
        check_path(path)?;
        may_write(&absolute).map_err(|error| cannot_open(path, format!("this user may not write it ({error})")))?;
    }
    check_folder(path, absolute)
}

/// The folder must take the file and, beside it, its log.
fn check_folder(path: &Path, absolute: PathBuf) -> Result<PathBuf, LedgerError> {
    let Some(folder) = absolute.parent() else { return Ok(absolute) };
    if !folder.is_dir() {
        return Err(cannot_open(path, format!("the folder {} does not exist", folder.display())));
    }
    match may_write(folder) {
        Err(error) => Err(cannot_open(path, format!("this user may not write its folder {} ({error})", folder.display()))),
        Ok(()) => Ok(absolute),
    }
}

/// Asked before, because SQLite opens what it may not write for reading, and tells at the first write.
fn may_write(path: &Path) -> Result<(), Errno> {
    access(path, Access::READ_OK | Access::WRITE_OK)
}

/// Makes sure that the file is a ledger of this version, creating or migrating it. Answers whether it was created now.
pub(super) async fn prepare(path: &Path, create: bool) -> Result<bool, LedgerError> {
    let deadline = Instant::now() + BUSY_TIMEOUT;
    loop {
        match try_prepare(path, create).await {
            Err(error) if result_code(&error.0) == Some(SQLITE_BUSY) && Instant::now() < deadline => tokio::time::sleep(CREATE_RETRY).await,
            Err(error) => return Err(error.into_ledger_error(path)),
            Ok(created) => return created,
        }
    }
}

/// SQLite's error, to be told in terms of the path.
struct SqlError(sqlx::Error);

impl From<sqlx::Error> for SqlError {
    fn from(error: sqlx::Error) -> Self {
        Self(error)
    }
}

impl SqlError {
    fn into_ledger_error(self, path: &Path) -> LedgerError {
        let words = match result_code(&self.0) {
            Some(SQLITE_NOTADB) => NOT_A_DATABASE.to_owned(),
            Some(SQLITE_READONLY) => "this user may not write it".to_owned(),
            Some(SQLITE_CANTOPEN) => format!("this user may not open it, or not write its folder ({})", self.0),
            Some(SQLITE_BUSY) => "another process keeps it locked".to_owned(),
            _ => self.0.to_string(),
        };
        cannot_open(path, words)
    }
}

async fn try_prepare(path: &Path, create: bool) -> Result<Result<bool, LedgerError>, SqlError> {
    let mut conn = options(path).create_if_missing(create).connect().await?;
    let created = match contents(&mut conn).await? {
        Contents::Nothing if create => match write_schema(&mut conn, path).await? {
            Ok(created) => created,
            Err(error) => return Ok(Err(error)),
        },
        Contents::OlderLedger => match write_schema(&mut conn, path).await? {
            Ok(_) => false,
            Err(error) => return Ok(Err(error)),
        },
        Contents::Ledger => false,
        other => return Ok(Err(refusal(path, other))),
    };
    conn.close().await?;
    if created {
        // The file's name must survive a crash as well as its content.
        let synced = path.parent().map_or(Ok(()), |folder| File::open(folder).and_then(|folder| folder.sync_all()));
        if let Err(error) = synced {
            return Ok(Err(cannot_open(path, format!("its folder cannot be synced: {error}"))));
        }
    }
    Ok(Ok(created))
}

/// The message for a file that cannot be used as it is.
pub(super) fn refusal(path: &Path, contents: Contents) -> LedgerError {
    let message = match contents {
        Contents::Nothing => "the file is empty".to_owned(),
        Contents::Ledger => "it is a ledger".to_owned(),
        Contents::NewerLedger(version) => {
            format!(
                "it has schema version {version}, and this program knows versions up to {SCHEMA_VERSION}; use the newer program that wrote it"
            )
        }
        Contents::OlderLedger => "it was written by an older program; start it once with this one".to_owned(),
        Contents::Other => "it is a database, but not a ledger".to_owned(),
    };
    cannot_open(path, message)
}

pub(super) fn cannot_open(path: &Path, message: String) -> LedgerError {
    LedgerError::CannotOpen { url: format!("sqlite://{}", path.display()), message }
}

/// Looks at a file without changing it.
pub(super) async fn contents(conn: &mut SqliteConnection) -> Result<Contents, sqlx::Error> {
    let application: i64 = query_scalar("PRAGMA application_id").fetch_one(&mut *conn).await?;
    let version: i64 = query_scalar("PRAGMA user_version").fetch_one(&mut *conn).await?;
    let tables: i64 = query_scalar("SELECT count(*) FROM sqlite_schema").fetch_one(&mut *conn).await?;
    Ok(match (application, version) {
        (APPLICATION_ID, SCHEMA_VERSION) => Contents::Ledger,
        (APPLICATION_ID, newer) if newer > SCHEMA_VERSION => Contents::NewerLedger(newer),
        (APPLICATION_ID, _) => Contents::OlderLedger,
        (0, 0) if tables == 0 => Contents::Nothing,
        (_, _) => Contents::Other,
    })
}

/// Creates or migrates, in one transaction: a kill leaves what was there before. Answers whether the ledger is new; another process can have been
/// faster.
async fn write_schema(conn: &mut SqliteConnection, path: &Path) -> Result<Result<bool, LedgerError>, SqlError> {
    query("PRAGMA journal_mode = WAL").execute(&mut *conn).await?;
    query("PRAGMA synchronous = FULL").execute(&mut *conn).await?;
    let mut tx = conn.begin_with("BEGIN IMMEDIATE").await?;
    let before = contents(&mut tx).await?;
    let created = match before {
        Contents::Ledger => return Ok(Ok(false)),
        Contents::Nothing => true,
        Contents::OlderLedger => false,
        Contents::NewerLedger(_) | Contents::Other => return Ok(Err(refusal(path, before))),
    };
    match MIGRATIONS.run_direct(None, &mut *tx, false).await {
        Ok(()) => {}
        Err(MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _)) => return Err(error.into()),
        Err(error) => return Ok(Err(cannot_open(path, error.to_string()))),
    }
    if created {
        let mut random = [0; 8];
        if let Err(error) = getrandom::fill(&mut random) {
            return Ok(Err(cannot_open(path, format!("no randomness for its id: {error}"))));
        }
        let id = LedgerId::from_random(random).to_string();
        query("INSERT INTO ledger (one, id) VALUES (1, ?)").bind(id).execute(&mut *tx).await?;
        query("PRAGMA application_id = 0x57656972").execute(&mut *tx).await?;
    }
    query("PRAGMA user_version = 1").execute(&mut *tx).await?;
    tx.commit().await?;
    Ok(Ok(created))
}

#[cfg(test)]
pub(super) fn newest_migration() -> Option<i64> {
    MIGRATIONS.iter().map(|migration| migration.version).max()
}

/// The id of a ledger just prepared.
pub(super) async fn read_id(conn: &mut SqliteConnection) -> Result<LedgerId, LedgerError> {
    Ok(rows::ledger_id(conn).await?)
}
