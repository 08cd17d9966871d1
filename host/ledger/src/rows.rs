//! Rows to facts, and the little that both directions share. Whatever is read is checked against the hash that it was written with, and the
//! decisions against their chain.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{Row, query};
use weir_protocol::{
    AttemptRecord, Confirmation, Decision, Epoch, Generation, Hash, Head, Label, LedgerId, Manifest, PipelineFacts, PipelineId,
    PipelineState, Replacement, SweepDebt, Verdict,
};

use crate::{LedgerError, PipelineSummary};

/// Why a row could not be read: the database's error, or what the row says.
#[derive(Debug)]
pub(crate) enum RowError {
    Sql(sqlx::Error),
    Ledger(LedgerError),
}

impl From<sqlx::Error> for RowError {
    fn from(error: sqlx::Error) -> Self {
        RowError::Sql(error)
    }
}

impl From<LedgerError> for RowError {
    fn from(error: LedgerError) -> Self {
        RowError::Ledger(error)
    }
}

/// Which decisions are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Those since the newest snapshot and those with an unconfirmed handle: what a start needs.
    Needed,
    /// All that are kept.
    Kept,
}

/// The ledger's id.
pub(crate) async fn ledger_id(conn: &mut SqliteConnection) -> Result<LedgerId, RowError> {
    let row = query("SELECT id FROM ledger").fetch_one(conn).await?;
    Ok(name(row.try_get("id")?)?)
}

/// One line for each pipeline.
pub(crate) async fn summaries(conn: &mut SqliteConnection) -> Result<Vec<PipelineSummary>, RowError> {
    let rows = query("SELECT pipeline, generation, head_epoch, head_hash FROM pipeline ORDER BY pipeline").fetch_all(conn).await?;
    rows.iter()
        .map(|row| {
            Ok(PipelineSummary {
                pipeline: name(row.try_get("pipeline")?)?,
                generation: Generation(unsigned(row, "generation")?),
                head: head(row)?,
            })
        })
        .collect()
}

/// The facts of a pipeline. To be called within a transaction, so that they are those of one moment.
pub(crate) async fn facts(
    conn: &mut SqliteConnection,
    ledger: LedgerId,
    pipeline: &PipelineId,
    extent: Extent,
) -> Result<Option<PipelineFacts>, RowError> {
    let found = query(
        "SELECT p.generation, stepped_down, head_epoch, head_hash, g.manifest AS body, g.hash AS hash
         FROM pipeline p LEFT JOIN generation g ON g.pipeline = p.pipeline AND g.generation = p.generation WHERE p.pipeline = ?",
    );
    let Some(row) = found.bind(pipeline.as_str()).fetch_optional(&mut *conn).await? else { return Ok(None) };
    let decisions = decisions(conn, pipeline, extent).await?;
    let epochs: BTreeSet<Epoch> = decisions.iter().map(|decision| decision.epoch).collect();
    let facts = PipelineFacts {
        pipeline: pipeline.clone(),
        ledger,
        generation: Generation(unsigned(&row, "generation")?),
        manifest: body::<Manifest>(&row, "manifest")?.0,
        head: head(&row)?,
        confirmations: confirmations(conn, pipeline, &epochs).await?,
        replacements: replacements(conn, pipeline, &epochs).await?,
        decisions,
        debts: debts(conn, pipeline).await?,
        undecided_may_exist: row.try_get::<i64, _>("stepped_down")? == 0,
    };
    PipelineState::from_facts(&facts).map_err(|error| LedgerError::corrupt(format!("pipeline {pipeline}: {error}")))?;
    Ok(Some(facts))
}

async fn decisions(conn: &mut SqliteConnection, pipeline: &PipelineId, extent: Extent) -> Result<Vec<Decision>, RowError> {
    let rows = query(
        "SELECT epoch, snapshot, hash, body FROM decision d WHERE pipeline = ?1 AND (?2
             OR epoch >= (SELECT coalesce(max(epoch), 0) FROM decision WHERE pipeline = ?1 AND snapshot = 1)
             OR EXISTS (SELECT 1 FROM handle h WHERE h.pipeline = ?1 AND h.epoch = d.epoch
                 AND NOT EXISTS (SELECT 1 FROM confirmation c WHERE c.pipeline = ?1 AND c.label = h.label)
                 AND NOT EXISTS (SELECT 1 FROM replacement r WHERE r.pipeline = ?1 AND r.lost = h.label)))
         ORDER BY epoch",
    );
    let rows = rows.bind(pipeline.as_str()).bind(extent == Extent::Kept).fetch_all(conn).await?;
    let mut decisions = Vec::with_capacity(rows.len());
    for row in &rows {
        let (decision, _) = body::<Decision>(row, "decision")?;
        let epoch = Epoch(unsigned(row, "epoch")?);
        let snapshot: bool = row.try_get("snapshot")?;
        if decision.epoch != epoch || decision.pipeline != *pipeline || decision.snapshot != snapshot {
            let message = format!("the decision stored for epoch {epoch} of pipeline {pipeline} is another one");
            return Err(LedgerError::corrupt(message).into());
        }
        decisions.push(decision);
    }
    Ok(decisions)
}

async fn confirmations(
    conn: &mut SqliteConnection,
    pipeline: &PipelineId,
    epochs: &BTreeSet<Epoch>,
) -> Result<Vec<Confirmation>, RowError> {
    let rows = query(
        "SELECT h.epoch AS epoch, c.label AS label, verdict FROM confirmation c JOIN handle h USING (pipeline, label)
         WHERE c.pipeline = ? ORDER BY h.epoch, c.label",
    );
    let mut confirmations = Vec::new();
    for row in &rows.bind(pipeline.as_str()).fetch_all(conn).await? {
        let epoch = Epoch(unsigned(row, "epoch")?);
        let verdict = match row.try_get("verdict")? {
            COMMITTED => Verdict::Committed,
            ALREADY_COMMITTED => Verdict::AlreadyCommitted,
            other => return Err(LedgerError::corrupt(format!("a confirmation has the verdict {other:?}")).into()),
        };
        if epochs.contains(&epoch) {
            confirmations.push(Confirmation { epoch, label: name::<Label>(row.try_get("label")?)?, verdict });
        }
    }
    Ok(confirmations)
}

async fn replacements(conn: &mut SqliteConnection, pipeline: &PipelineId, epochs: &BTreeSet<Epoch>) -> Result<Vec<Replacement>, RowError> {
    let rows = query("SELECT hash, body FROM replacement WHERE pipeline = ? ORDER BY number");
    let mut replacements = Vec::new();
    for row in &rows.bind(pipeline.as_str()).fetch_all(conn).await? {
        let (replacement, _) = body::<Replacement>(row, "replacement")?;
        if epochs.contains(&replacement.handle.transaction.epoch) {
            replacements.push(replacement);
        }
    }
    Ok(replacements)
}

async fn debts(conn: &mut SqliteConnection, pipeline: &PipelineId) -> Result<Vec<SweepDebt>, RowError> {
    let rows = query(
        "SELECT generation, base, manifest AS body, hash FROM generation WHERE pipeline = ? AND base IS NOT NULL ORDER BY generation",
    );
    let rows = rows.bind(pipeline.as_str()).fetch_all(&mut *conn).await?;
    let mut debts = Vec::with_capacity(rows.len());
    for row in &rows {
        let generation = Generation(unsigned(row, "generation")?);
        debts.push(SweepDebt {
            generation,
            base: Epoch(unsigned(row, "base")?),
            manifest: body::<Manifest>(row, "manifest")?.0,
            attempts: attempts(conn, pipeline, generation).await?,
        });
    }
    Ok(debts)
}

async fn attempts(conn: &mut SqliteConnection, pipeline: &PipelineId, generation: Generation) -> Result<Vec<AttemptRecord>, RowError> {
    let rows = query("SELECT body FROM attempt WHERE pipeline = ? AND generation = ?");
    let rows = rows.bind(pipeline.as_str()).bind(signed(generation.0)?).fetch_all(conn).await?;
    let mut attempts = Vec::with_capacity(rows.len());
    for row in &rows {
        attempts.push(from_json(row.try_get("body")?, "attempt")?);
    }
    attempts.sort();
    Ok(attempts)
}

/// The columns `body` and `hash` of a row: the value, after a check that its bytes are those that were written.
pub(crate) fn body<T: DeserializeOwned>(row: &SqliteRow, what: &str) -> Result<(T, Hash), RowError> {
    let (bytes, hash): (Option<&[u8]>, Option<String>) = (row.try_get("body")?, row.try_get("hash")?);
    let (Some(bytes), Some(hash)) = (bytes, hash) else {
        return Err(LedgerError::corrupt(format!("a {what} is missing")).into());
    };
    let hash: Hash = name(hash)?;
    if Hash::of(bytes) != hash {
        return Err(LedgerError::corrupt(format!("the bytes of a {what} do not have the hash {hash} that they were written with")).into());
    }
    Ok((from_json(bytes, what)?, hash))
}

pub(crate) fn head(row: &SqliteRow) -> Result<Head, RowError> {
    Ok(Head { epoch: Epoch(unsigned(row, "head_epoch")?), hash: name(row.try_get("head_hash")?)? })
}

pub(crate) fn from_json<T: DeserializeOwned>(bytes: &[u8], what: &str) -> Result<T, LedgerError> {
    serde_json::from_slice(bytes).map_err(|error| LedgerError::corrupt(format!("a {what} cannot be read: {error}")))
}

pub(crate) fn to_json<T: serde::Serialize>(value: &T, what: &'static str) -> Result<Vec<u8>, LedgerError> {
    serde_json::to_vec(value).map_err(|source| weir_protocol::ProtocolError::Encode { what, source }.into())
}

const COMMITTED: &str = "committed";
const ALREADY_COMMITTED: &str = "already-committed";

/// The text of a verdict that confirms; `None` for one that does not.
pub(crate) fn verdict(verdict: Verdict) -> Option<&'static str> {
    match verdict {
        Verdict::Committed => Some(COMMITTED),
        Verdict::AlreadyCommitted => Some(ALREADY_COMMITTED),
        Verdict::Lost | Verdict::Unknown => None,
    }
}

/// A number as SQLite keeps it.
pub(crate) fn signed(number: u64) -> Result<i64, LedgerError> {
    i64::try_from(number).map_err(|_| LedgerError::corrupt(format!("the number {number} is larger than any that is used")))
}

pub(crate) fn unsigned(row: &SqliteRow, column: &str) -> Result<u64, RowError> {
    let number: i64 = row.try_get(column)?;
    u64::try_from(number).map_err(|_| LedgerError::corrupt(format!("{column} has the value {number}")).into())
}

/// A name, id or hash, checked as it was when it was made.
fn name<T: TryFrom<String, Error = weir_protocol::ProtocolError>>(text: String) -> Result<T, LedgerError> {
    T::try_from(text).map_err(|error| LedgerError::corrupt(error.to_string()))
}
