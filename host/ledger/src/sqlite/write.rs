//! What is written in a transaction that holds the write lock. Each function leaves the transaction open: its caller commits it, or takes back what was
//! written if the function fails.

use serde::Serialize;
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{Row, query, query_scalar};
use weir_protocol::{
    AttemptRecord, Confirmation, Decision, Epoch, Generation, Hash, Head, Label, Labels, LedgerId, Manifest, PipelineId, ProtocolError,
    Replacement,
};

use super::session::before_commit;
use crate::check::{self, DECISIONS_KEPT, Sealed};
use crate::rows::{self, RowError, signed, to_json, unsigned};
use crate::{Holder, LedgerError};

/// What is to become of a decision's transaction.
pub(super) enum Outcome {
    /// Commit it: then the decision is made.
    Write,
    /// Nothing was written.
    Refused {
        /// The newest generation.
        generation: Generation,
        /// The newest decision.
        head: Head,
    },
}

/// Moves what is in the write-ahead log into the database and syncs both. A reader that stays can keep it from finishing; the next synced commit covers
/// the log all the same.
pub(super) async fn checkpoint(conn: &mut SqliteConnection) -> Result<(), LedgerError> {
    // After a failed sync the system may have dropped what it could not write.
    let failed = |error: sqlx::Error| LedgerError::MustRestart { message: error.to_string() };
    let row = query("PRAGMA wal_checkpoint(TRUNCATE)").fetch_one(conn).await.map_err(failed)?;
    if row.try_get::<i64, _>(0).map_err(|error| before_commit(&error))? != 0 {
        tracing::info!("the ledger's write-ahead log is in use by another process; it stays as it is");
    }
    Ok(())
}

pub(super) async fn lease(conn: &mut SqliteConnection, holder: &Holder, counter: i64) -> Result<(), LedgerError> {
    let write = query("INSERT OR REPLACE INTO lease (one, holder_id, holder, counter) VALUES (1, ?, ?, ?)");
    run(conn, write.bind(&holder.id).bind(to_json(holder, "lease")?).bind(counter)).await?;
    Ok(())
}

pub(super) async fn raise(
    conn: &mut SqliteConnection,
    pipeline: &PipelineId,
    seen: Generation,
    manifest: &Manifest,
) -> Result<(), LedgerError> {
    let (old, new) = (signed(seen.0)?, signed(seen.next().0)?);
    let known = pipeline_row(conn, pipeline).await?;
    let found = known.as_ref().map_or(Generation(0), |known| known.generation);
    let raised = match &known {
        None if seen == Generation(0) => {
            let insert = query("INSERT INTO pipeline (pipeline, generation, stepped_down, head_epoch, head_hash) VALUES (?, ?, 0, 0, ?)");
            run(conn, insert.bind(pipeline.as_str()).bind(new).bind(Hash::GENESIS.to_string())).await?
        }
        None => 0,
        Some(_) => {
            let update = query("UPDATE pipeline SET generation = ?, stepped_down = 0 WHERE pipeline = ? AND generation = ?");
            run(conn, update.bind(new).bind(pipeline.as_str()).bind(old)).await?
        }
    };
    if raised != 1 {
        return Err(LedgerError::Fenced { ours: seen, found });
    }
    if let Some(before) = known {
        let ended = if before.stepped_down {
            query("DELETE FROM generation WHERE pipeline = ? AND generation = ?").bind(pipeline.as_str()).bind(old)
        } else {
            let owes = query("UPDATE generation SET base = ? WHERE pipeline = ? AND generation = ?");
            owes.bind(signed(before.head.epoch.0)?).bind(pipeline.as_str()).bind(old)
        };
        run(conn, ended).await?;
    }
    let (body, hash) = body(manifest, "manifest")?;
    let insert = query("INSERT INTO generation (pipeline, generation, base, manifest, hash) VALUES (?, ?, NULL, ?, ?)");
    run(conn, insert.bind(pipeline.as_str()).bind(new).bind(body).bind(hash)).await?;
    Ok(())
}

pub(super) async fn decide(
    conn: &mut SqliteConnection,
    decision: &Decision,
    sealed: &Sealed,
    confirmations: &[Confirmation],
) -> Result<Outcome, LedgerError> {
    let pipeline = &decision.pipeline;
    let extend = query(
        "UPDATE pipeline SET head_epoch = ?, head_hash = ?
         WHERE pipeline = ? AND generation = ? AND stepped_down = 0 AND head_epoch = ? AND head_hash = ?",
    );
    let extend = extend.bind(signed(sealed.head.epoch.0)?).bind(sealed.head.hash.to_string()).bind(pipeline.as_str());
    let extend = extend.bind(signed(decision.generation.0)?).bind(signed(decision.base.0)?).bind(decision.base_hash.to_string());
    if run(conn, extend).await? != 1 {
        return not_extended(conn, decision, sealed, confirmations).await;
    }
    let insert = query("INSERT INTO decision (pipeline, epoch, snapshot, hash, body) VALUES (?, ?, ?, ?, ?)");
    let insert = insert.bind(pipeline.as_str()).bind(signed(decision.epoch.0)?).bind(decision.snapshot);
    run(conn, insert.bind(sealed.head.hash.to_string()).bind(&sealed.bytes)).await?;
    for handle in &decision.handles {
        name_handle(conn, pipeline, &handle.transaction.label, decision.epoch).await?;
    }
    write_confirmations(conn, pipeline, confirmations).await?;
    prune(conn, pipeline, sealed.head.epoch).await?;
    Ok(Outcome::Write)
}

/// The head did not match: was this very decision made before?
async fn not_extended(
    conn: &mut SqliteConnection,
    decision: &Decision,
    sealed: &Sealed,
    confirmations: &[Confirmation],
) -> Result<Outcome, LedgerError> {
    let ours = decision.generation;
    let Some(known) = pipeline_row(conn, &decision.pipeline).await? else {
        return Ok(Outcome::Refused { generation: Generation(0), head: Head::GENESIS });
    };
    let find = query("SELECT hash, body FROM decision WHERE pipeline = ? AND epoch = ?");
    let find = find.bind(decision.pipeline.as_str()).bind(signed(decision.epoch.0)?);
    let found = find.fetch_optional(&mut *conn).await.map_err(|error| before_commit(&error))?;
    if let Some(row) = &found {
        let (_, hash) = rows::body::<Decision>(row, "decision")?;
        if hash == sealed.head.hash {
            if known.generation == ours {
                write_confirmations(conn, &decision.pipeline, confirmations).await?;
            }
            return Ok(Outcome::Write);
        }
    }
    if known.generation == ours && known.stepped_down {
        return Err(ProtocolError::SteppedDown { generation: ours }.into());
    }
    if found.is_none() && decision.epoch <= known.head.epoch {
        // It was made or refused so long ago that this can no longer be told.
        return Err(LedgerError::Fenced { ours, found: known.generation });
    }
    Ok(Outcome::Refused { generation: known.generation, head: known.head })
}

pub(super) async fn confirm(
    conn: &mut SqliteConnection,
    pipeline: &PipelineId,
    generation: Generation,
    confirmations: &[Confirmation],
) -> Result<(), LedgerError> {
    fenced(conn, pipeline, generation).await?;
    write_confirmations(conn, pipeline, confirmations).await
}

pub(super) async fn replace(
    conn: &mut SqliteConnection,
    pipeline: &PipelineId,
    generation: Generation,
    replacement: &Replacement,
) -> Result<(), LedgerError> {
    running(conn, pipeline, generation).await?;
    let (body, hash) = body(replacement, "replacement")?;
    let same = query_scalar("SELECT count(*) FROM replacement WHERE pipeline = ? AND lost = ? AND hash = ?");
    let same = same.bind(pipeline.as_str()).bind(replacement.lost.as_str()).bind(&hash);
    let same: i64 = same.fetch_one(&mut *conn).await.map_err(|error| before_commit(&error))?;
    if same == 1 {
        return Ok(());
    }
    let lost = named(conn, pipeline, &replacement.lost).await?.filter(|lost| !lost.confirmed && !lost.replaced);
    let lost = lost.ok_or_else(|| check::unnamed(&replacement.lost))?;
    check::handle(&replacement.handle, lost.epoch)?;
    let label = &replacement.handle.transaction.label;
    name_handle(conn, pipeline, label, lost.epoch).await?;
    let insert = query("INSERT INTO replacement (pipeline, lost, label, hash, body) VALUES (?, ?, ?, ?, ?)");
    let insert = insert.bind(pipeline.as_str()).bind(replacement.lost.as_str()).bind(label.as_str());
    run(conn, insert.bind(hash).bind(body)).await?;
    Ok(())
}

pub(super) async fn attempt(
    conn: &mut SqliteConnection,
    ledger: LedgerId,
    pipeline: &PipelineId,
    generation: Generation,
    attempt: &AttemptRecord,
) -> Result<(), LedgerError> {
    let labels = Labels::new(ledger, pipeline.clone());
    let label = labels.transaction(&attempt.sink, generation, attempt.epoch, attempt.lane, attempt.attempt)?.label;
    running(conn, pipeline, generation).await?;
    if named(conn, pipeline, &label).await?.is_some() {
        return Err(check::used_twice(&label));
    }
    let insert = query("INSERT OR IGNORE INTO attempt (pipeline, generation, label, body) VALUES (?, ?, ?, ?)");
    let insert = insert.bind(pipeline.as_str()).bind(signed(generation.0)?).bind(label.as_str());
    run(conn, insert.bind(to_json(attempt, "attempt")?)).await?;
    Ok(())
}

pub(super) async fn discharge(
    conn: &mut SqliteConnection,
    pipeline: &PipelineId,
    generation: Generation,
    owed_by: Generation,
) -> Result<(), LedgerError> {
    fenced(conn, pipeline, generation).await?;
    if owed_by >= generation {
        return Err(ProtocolError::NotOwed { generation: owed_by }.into());
    }
    let delete = query("DELETE FROM generation WHERE pipeline = ? AND generation = ?");
    run(conn, delete.bind(pipeline.as_str()).bind(signed(owed_by.0)?)).await?;
    Ok(())
}

pub(super) async fn step_down(conn: &mut SqliteConnection, pipeline: &PipelineId, generation: Generation) -> Result<(), LedgerError> {
    fenced(conn, pipeline, generation).await?;
    run(conn, query("UPDATE pipeline SET stepped_down = 1 WHERE pipeline = ?").bind(pipeline.as_str())).await?;
    Ok(())
}

/// The head row of a pipeline.
struct PipelineRow {
    generation: Generation,
    stepped_down: bool,
    head: Head,
}

async fn pipeline_row(conn: &mut SqliteConnection, pipeline: &PipelineId) -> Result<Option<PipelineRow>, LedgerError> {
    let select = query("SELECT generation, stepped_down, head_epoch, head_hash FROM pipeline WHERE pipeline = ?");
    let row = select.bind(pipeline.as_str()).fetch_optional(conn).await.map_err(|error| before_commit(&error))?;
    let read = |row: SqliteRow| -> Result<PipelineRow, RowError> {
        let generation = Generation(unsigned(&row, "generation")?);
        Ok(PipelineRow { generation, stepped_down: row.try_get("stepped_down")?, head: rows::head(&row)? })
    };
    Ok(row.map(read).transpose()?)
}

/// The pipeline, if that generation is its newest.
async fn fenced(conn: &mut SqliteConnection, pipeline: &PipelineId, ours: Generation) -> Result<PipelineRow, LedgerError> {
    match pipeline_row(conn, pipeline).await? {
        Some(known) if known.generation == ours => Ok(known),
        Some(known) => Err(LedgerError::Fenced { ours, found: known.generation }),
        None => Err(LedgerError::Fenced { ours, found: Generation(0) }),
    }
}

/// The same, if it has not stepped down.
async fn running(conn: &mut SqliteConnection, pipeline: &PipelineId, ours: Generation) -> Result<(), LedgerError> {
    if fenced(conn, pipeline, ours).await?.stepped_down {
        return Err(ProtocolError::SteppedDown { generation: ours }.into());
    }
    Ok(())
}

/// A transaction that a kept decision or a replacement names.
struct NamedHandle {
    epoch: Epoch,
    confirmed: bool,
    replaced: bool,
}

async fn named(conn: &mut SqliteConnection, pipeline: &PipelineId, label: &Label) -> Result<Option<NamedHandle>, LedgerError> {
    let select = query(
        "SELECT epoch, EXISTS (SELECT 1 FROM confirmation c WHERE c.pipeline = h.pipeline AND c.label = h.label) AS confirmed,
             EXISTS (SELECT 1 FROM replacement r WHERE r.pipeline = h.pipeline AND r.lost = h.label) AS replaced
         FROM handle h WHERE pipeline = ? AND label = ?",
    );
    let row = select.bind(pipeline.as_str()).bind(label.as_str()).fetch_optional(conn).await.map_err(|error| before_commit(&error))?;
    let read = |row: SqliteRow| -> Result<NamedHandle, RowError> {
        let epoch = Epoch(unsigned(&row, "epoch")?);
        Ok(NamedHandle { epoch, confirmed: row.try_get("confirmed")?, replaced: row.try_get("replaced")? })
    };
    Ok(row.map(read).transpose()?)
}

/// Takes note that a decision or a replacement names a transaction: its attempt is then no longer owed.
async fn name_handle(conn: &mut SqliteConnection, pipeline: &PipelineId, label: &Label, epoch: Epoch) -> Result<(), LedgerError> {
    let insert = query("INSERT OR IGNORE INTO handle (pipeline, label, epoch) VALUES (?, ?, ?)");
    if run(conn, insert.bind(pipeline.as_str()).bind(label.as_str()).bind(signed(epoch.0)?)).await? != 1 {
        return Err(check::used_twice(label));
    }
    run(conn, query("DELETE FROM attempt WHERE pipeline = ? AND label = ?").bind(pipeline.as_str()).bind(label.as_str())).await?;
    Ok(())
}

async fn write_confirmations(
    conn: &mut SqliteConnection,
    pipeline: &PipelineId,
    confirmations: &[Confirmation],
) -> Result<(), LedgerError> {
    for confirmation in confirmations {
        check::confirmation(confirmation)?;
        let label = &confirmation.label;
        let handle = named(conn, pipeline, label).await?.filter(|handle| handle.epoch == confirmation.epoch);
        match handle {
            Some(handle) if handle.confirmed => {}
            Some(handle) if !handle.replaced => {
                let insert = query("INSERT INTO confirmation (pipeline, label, verdict) VALUES (?, ?, ?)");
                let insert = insert.bind(pipeline.as_str()).bind(label.as_str());
                run(conn, insert.bind(rows::verdict(confirmation.verdict))).await?;
            }
            // A decision is pruned once every handle of it is confirmed.
            None if is_pruned(conn, pipeline, confirmation.epoch).await? => {}
            Some(_) | None => return Err(check::unnamed(label)),
        }
    }
    Ok(())
}

async fn is_pruned(conn: &mut SqliteConnection, pipeline: &PipelineId, epoch: Epoch) -> Result<bool, LedgerError> {
    let select = query_scalar(
        "SELECT ?2 >= 1 AND ?2 <= (SELECT head_epoch FROM pipeline WHERE pipeline = ?1)
             AND NOT EXISTS (SELECT 1 FROM decision WHERE pipeline = ?1 AND epoch = ?2)",
    );
    select.bind(pipeline.as_str()).bind(signed(epoch.0)?).fetch_one(conn).await.map_err(|error| before_commit(&error))
}

/// Forgets decisions that are older than the newest [`DECISIONS_KEPT`] and than the newest snapshot, and whose handles are all confirmed.
async fn prune(conn: &mut SqliteConnection, pipeline: &PipelineId, head: Epoch) -> Result<(), LedgerError> {
    let delete = query(
        "DELETE FROM decision WHERE pipeline = ?1 AND epoch <= ?2
             AND epoch < (SELECT coalesce(max(epoch), 0) FROM decision WHERE pipeline = ?1 AND snapshot = 1)
             AND NOT EXISTS (SELECT 1 FROM handle h WHERE h.pipeline = ?1 AND h.epoch = decision.epoch
                 AND NOT EXISTS (SELECT 1 FROM confirmation c WHERE c.pipeline = ?1 AND c.label = h.label)
                 AND NOT EXISTS (SELECT 1 FROM replacement r WHERE r.pipeline = ?1 AND r.lost = h.label))",
    );
    let newest_gone = signed(head.0.saturating_sub(DECISIONS_KEPT))?;
    run(conn, delete.bind(pipeline.as_str()).bind(newest_gone)).await?;
    Ok(())
}

/// A value's bytes and the hash that is stored beside them.
fn body<T: Serialize>(value: &T, what: &'static str) -> Result<(Vec<u8>, String), LedgerError> {
    let bytes = to_json(value, what)?;
    let hash = Hash::of(&bytes).to_string();
    Ok((bytes, hash))
}

/// Runs a statement. Answers how many rows it changed.
async fn run(
    conn: &mut SqliteConnection,
    statement: sqlx::query::Query<'_, sqlx::Sqlite, sqlx::sqlite::SqliteArguments>,
) -> Result<u64, LedgerError> {
    Ok(statement.execute(conn).await.map_err(|error| before_commit(&error))?.rows_affected())
}
