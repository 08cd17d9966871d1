//! A ledger opened for reading only, beside a running host or without one. It takes no lease, changes nothing and creates nothing.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sqlx::sqlite::SqliteConnection;
use sqlx::{ConnectOptions, Connection, query};
use weir_protocol::{LedgerId, PipelineFacts, PipelineId};

use super::open::{Contents, NOT_A_DATABASE, cannot_open, check_path, contents, refusal};
use super::session::{SQLITE_CANTOPEN, SQLITE_NOTADB, before_commit, options, result_code};
use crate::rows::{self, Extent, RowError};
use crate::{LedgerError, PipelineSummary};

/// How often a read begins again because a host came or went in the middle of it.
const READ_TRIES: u32 = 10;

/// A ledger opened for reading only.
///
/// Every call opens the file anew. While its write-ahead log exists, SQLite reads both. Without a log no host has it open and the file alone is complete;
/// it is then read as an immutable one, since SQLite would create a log for a mere reader too, and the read is repeated if the file or the log
/// has changed meanwhile. The one file that can come into being is the log's index (`-shm`), where somebody has copied the log without it.
#[derive(Debug)]
pub struct SqliteReader {
    path: PathBuf,
    id: LedgerId,
}

/// What must be the same before and after a read that does not lock.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    log: bool,
    size: u64,
    modified: Option<SystemTime>,
}

impl SqliteReader {
    pub(super) async fn open(path: &Path) -> Result<Self, LedgerError> {
        let path = check_path(path)?;
        let id = read(&path, &Id).await?;
        Ok(Self { path, id })
    }

    /// The ledger's random id.
    pub fn id(&self) -> LedgerId {
        self.id
    }

    /// See [`Ledger::peek`](crate::Ledger::peek).
    pub async fn peek(&self, pipeline: &PipelineId) -> Result<Option<PipelineFacts>, LedgerError> {
        read(&self.path, &Facts { ledger: self.id, pipeline, extent: Extent::Needed }).await
    }

    /// The same with every decision that is kept, also those that a start does not need: the newest [`DECISIONS_KEPT`](crate::DECISIONS_KEPT) at
    /// least.
    pub async fn history(&self, pipeline: &PipelineId) -> Result<Option<PipelineFacts>, LedgerError> {
        read(&self.path, &Facts { ledger: self.id, pipeline, extent: Extent::Kept }).await
    }

    /// See [`Ledger::pipelines`](crate::Ledger::pipelines).
    pub async fn pipelines(&self) -> Result<Vec<PipelineSummary>, LedgerError> {
        read(&self.path, &Pipelines).await
    }
}

/// What is to be read.
trait Question: Sync {
    type Answer: Send;
    fn ask(&self, conn: &mut SqliteConnection) -> impl Future<Output = Result<Self::Answer, RowError>> + Send;
}

struct Id;

impl Question for Id {
    type Answer = LedgerId;
    async fn ask(&self, conn: &mut SqliteConnection) -> Result<LedgerId, RowError> {
        rows::ledger_id(conn).await
    }
}

struct Facts<'a> {
    ledger: LedgerId,
    pipeline: &'a PipelineId,
    extent: Extent,
}

impl Question for Facts<'_> {
    type Answer = Option<PipelineFacts>;
    async fn ask(&self, conn: &mut SqliteConnection) -> Result<Option<PipelineFacts>, RowError> {
        rows::facts(conn, self.ledger, self.pipeline, self.extent).await
    }
}

struct Pipelines;

impl Question for Pipelines {
    type Answer = Vec<PipelineSummary>;
    async fn ask(&self, conn: &mut SqliteConnection) -> Result<Vec<PipelineSummary>, RowError> {
        rows::summaries(conn).await
    }
}

fn stamp(path: &Path) -> Result<Stamp, LedgerError> {
    let file = std::fs::metadata(path).map_err(|error| cannot_open(path, error.to_string()))?;
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    Ok(Stamp { log: Path::new(&log).exists(), size: file.len(), modified: file.modified().ok() })
}

/// Runs one read in one transaction, on a connection of its own.
async fn read<Q: Question>(path: &Path, question: &Q) -> Result<Q::Answer, LedgerError> {
    let mut last = None;
    for _ in 0..READ_TRIES {
        let before = stamp(path)?;
        let result = read_once(path, !before.log, question).await;
        if before.log {
            match result {
                // The last host went away between the look and the open, and took its log along.
                Err(LedgerError::CannotOpen { .. }) if !stamp(path)?.log => last = result.err(),
                result => return result,
            }
        } else if stamp(path)? == before {
            return result;
        } else {
            last = result.err();
        }
    }
    Err(last.unwrap_or_else(|| LedgerError::Unavailable { message: "hosts come and go too fast to read it".to_owned() }))
}

async fn read_once<Q: Question>(path: &Path, immutable: bool, question: &Q) -> Result<Q::Answer, LedgerError> {
    let told = |error: sqlx::Error| match result_code(&error) {
        Some(SQLITE_NOTADB) => cannot_open(path, NOT_A_DATABASE.to_owned()),
        Some(SQLITE_CANTOPEN) => cannot_open(path, error.to_string()),
        _ => before_commit(&error),
    };
    let mut conn = options(path).read_only(true).immutable(immutable).connect().await.map_err(told)?;
    query("BEGIN").execute(&mut conn).await.map_err(told)?;
    let found = contents(&mut conn).await.map_err(told)?;
    if found != Contents::Ledger {
        return Err(refusal(path, found));
    }
    let answer = question.ask(&mut conn).await?;
    conn.close().await.map_err(told)?;
    Ok(answer)
}
