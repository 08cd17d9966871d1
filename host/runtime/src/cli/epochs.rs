//! `weir epochs PIPELINE`: what is decided, and what of it is committed. Reads the ledger without taking anything from a running host.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use weir_ledger::{LedgerError, SqliteLedger};
use weir_protocol::{Decision, Label, PipelineFacts, PipelineId, PreparedHandle, Verdict};

use super::Failure;
use super::args::EpochsArgs;
use super::output::{Output, grouped, size, table};
use crate::config::{Draft, LedgerConfig, ProcessVariables};
use crate::error::{Exit, code};
use crate::stop::Stop;

/// Shows a pipeline's decisions.
pub(super) async fn epochs(args: EpochsArgs, output: Output) -> Result<Exit, Failure> {
    let ledger = Draft::read(&args.config.config, &ProcessVariables)?.ledger()?;
    let facts = read(&ledger, &args.pipeline).await?;
    let shown = facts.decisions.len().saturating_sub(args.last);
    let decisions = facts.decisions.get(shown..).unwrap_or_default();
    let confirmed = Confirmed::of(&facts);
    if output.json {
        let decisions = decisions.iter().map(|decision| decision_json(decision, &confirmed)).collect::<Result<Vec<_>, _>>()?;
        let debts: Vec<Value> = facts.debts.iter().map(|debt| json!({ "generation": debt.generation, "after_epoch": debt.base })).collect();
        output.data(
            &json!({
                "pipeline": facts.pipeline, "ledger": facts.ledger, "generation": facts.generation, "head": facts.head,
                "decisions": decisions, "debts": debts,
            })
            .to_string(),
        );
        return Ok(Exit::Done);
    }
    let rows: Vec<Vec<String>> = decisions.iter().map(|decision| row(decision, &confirmed)).collect();
    output.data(&table(&["EPOCH", "GENERATION", "RECORDS", "BYTES", "HANDLES", "STATE"], &rows));
    if decisions.is_empty() {
        output.tell(&format!("{}: nothing decided yet", facts.pipeline));
    }
    for debt in &facts.debts {
        output.tell(&format!(
            "generation {} may have left transactions of epochs after {}; they are being aborted",
            debt.generation, debt.base
        ));
    }
    Ok(Exit::Done)
}

async fn read(ledger: &LedgerConfig, pipeline: &PipelineId) -> Result<PipelineFacts, Failure> {
    let LedgerConfig::Sqlite { path } = ledger;
    if !path.exists() {
        let message = format!("there is no ledger at {}; the first `weir run` makes one", path.display());
        return Err(Failure::Coded { code: code::LEDGER_MISSING, message, exit: Exit::LedgerRefused });
    }
    let reader = SqliteLedger::open_read_only(path).await.map_err(refused)?;
    if let Some(facts) = reader.history(pipeline).await.map_err(refused)? {
        return Ok(facts);
    }
    let known = reader.pipelines().await.map_err(refused)?;
    Err(unknown_pipeline(pipeline, "the ledger", known.iter().map(|summary| summary.pipeline.as_str())))
}

/// A pipeline that is not there, with those that are.
pub(super) fn unknown_pipeline<'a>(pipeline: &PipelineId, place: &str, known: impl Iterator<Item = &'a str> + Clone) -> Failure {
    let help = match crate::config::nearest(pipeline.as_str(), known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("it has {}", crate::config::list(known)),
    };
    let message = format!("{place} has no pipeline `{pipeline}`; {help}");
    Failure::Coded { code: code::USAGE_UNKNOWN_PIPELINE, message, exit: Exit::Usage }
}

fn refused(error: LedgerError) -> Failure {
    let stop = Stop::from_ledger(error);
    Failure::Coded { code: stop.code, message: stop.message, exit: Exit::LedgerRefused }
}

/// What is known of each handle, by the label of its transaction.
struct Confirmed<'a> {
    verdicts: BTreeMap<&'a Label, Verdict>,
    replaced: BTreeMap<&'a Label, &'a PreparedHandle>,
}

impl<'a> Confirmed<'a> {
    fn of(facts: &'a PipelineFacts) -> Self {
        Self {
            verdicts: facts.confirmations.iter().map(|confirmation| (&confirmation.label, confirmation.verdict)).collect(),
            replaced: facts.replacements.iter().map(|replacement| (&replacement.lost, &replacement.handle)).collect(),
        }
    }

    /// The handle that stands in for one that was lost.
    fn replacement(&self, handle: &PreparedHandle) -> Option<&'a PreparedHandle> {
        self.replaced.get(&handle.transaction.label).copied()
    }

    fn verdict(&self, handle: &PreparedHandle) -> Option<Verdict> {
        let label = self.replacement(handle).map_or(&handle.transaction.label, |replacement| &replacement.transaction.label);
        self.verdicts.get(label).copied()
    }
}

fn row(decision: &Decision, confirmed: &Confirmed<'_>) -> Vec<String> {
    let done = decision.handles.iter().filter(|handle| confirmed.verdict(handle).is_some()).count();
    let all = decision.handles.len();
    let state = match (done, all) {
        (_, 0) => "nothing to commit".to_owned(),
        (done, all) if done == all => "committed".to_owned(),
        (0, _) => "not committed yet".to_owned(),
        (done, all) => format!("{done} of {all} committed"),
    };
    let (records, bytes) = read_in(decision);
    vec![decision.epoch.to_string(), decision.generation.to_string(), grouped(records), size(bytes), all.to_string(), state]
}

/// Records and bytes read in an epoch. Every sink gets all of them, so they are those of one sink.
fn read_in(decision: &Decision) -> (u64, u64) {
    let mut by_sink = BTreeMap::new();
    for handle in &decision.handles {
        let sums: &mut (u64, u64) = by_sink.entry(&handle.transaction.sink).or_default();
        sums.0 = sums.0.saturating_add(handle.records_read());
        sums.1 = handle.slices.iter().fold(sums.1, |sum, slice| sum.saturating_add(slice.bytes));
    }
    by_sink.into_values().max().unwrap_or_default()
}

fn decision_json(decision: &Decision, confirmed: &Confirmed<'_>) -> Result<Value, Failure> {
    let head = decision.head().map_err(|error| refused(LedgerError::Protocol(error)))?;
    let (records, bytes) = read_in(decision);
    let handles: Vec<Value> = decision.handles.iter().map(|handle| handle_json(handle, confirmed)).collect();
    Ok(json!({
        "epoch": decision.epoch, "generation": decision.generation, "hash": head.hash,
        "base": decision.base, "base_hash": decision.base_hash, "snapshot": decision.snapshot,
        "records": records, "bytes": bytes, "positions": decision.positions, "handles": handles,
    }))
}

fn handle_json(handle: &PreparedHandle, confirmed: &Confirmed<'_>) -> Value {
    json!({
        "sink": handle.transaction.sink, "lane": handle.transaction.lane, "label": handle.transaction.label,
        "format": handle.format, "handle_bytes": handle.handle.len(), "held": handle.held,
        "confirmed": confirmed.verdict(handle), "replaced_by": confirmed.replacement(handle).map(|handle| &handle.transaction.label),
        "slices": handle.slices, "rejected": handle.rejected,
    })
}
