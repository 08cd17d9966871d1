//! What can be observed durably about a pipeline. Everything else is derived from these values, and never stored beside them.

use std::collections::BTreeMap;

use data_encoding::BASE64;
use serde::{Deserialize, Serialize};

use crate::error::ProtocolError;
use crate::ids::{Attempt, Epoch, Generation, Hash, Label, Labels, Lane, LedgerId, PipelineId, SinkId, SplitId, Transaction};
use crate::permit::{AbortPermit, Durable};

/// Largest handle that a plugin may return, in bytes.
pub const MAX_HANDLE_BYTES: usize = 64 * 1024;
/// Largest decision, in bytes of its canonical form.
pub const MAX_DECISION_BYTES: usize = 16 * 1024 * 1024;
/// Most epochs that a pipeline may have undecided at one time, and so how far a sweep must look.
pub const MAX_UNDECIDED_EPOCHS: u64 = 2;
/// Most epochs from their first `begin` to their last confirmation at one time.
pub const MAX_EPOCHS_IN_FLIGHT: usize = 2;

/// Bytes kept as text: base64 in JSON.
mod base64 {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&super::BASE64.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        super::BASE64.decode(String::deserialize(from)?.as_bytes()).map_err(D::Error::custom)
    }
}

/// Where reading a split would go on. The bytes belong to the source; nothing else looks inside.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Position(#[serde(with = "base64")] pub Vec<u8>);

/// The position of every split that has one.
pub type Positions = BTreeMap<SplitId, Position>;

/// The records of one split that one handle holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slice {
    /// The split.
    pub split: SplitId,
    /// Where its first record begins; a replay opens the split here. Absent: at the split's beginning.
    pub from: Option<Position>,
    /// Where reading goes on after its last record.
    pub to: Position,
    /// The first record's number in the split, from 0.
    pub first: u64,
    /// How many records.
    pub records: u64,
    /// How many bytes they have, as handed to the sink.
    pub bytes: u64,
    /// Hash of the last bytes, at most [`TAIL_BYTES`], so that a replay can tell whether it reads the same (EO-8).
    pub tail: Hash,
}

/// How many of a slice's last bytes its hash is over.
pub const TAIL_BYTES: usize = 256;

/// A record that a sink can never take.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RejectedRecord {
    /// Its split.
    pub split: SplitId,
    /// Its number in the split.
    pub record: u64,
    /// The target's words.
    pub reason: String,
}

/// A transaction that a plugin has prepared, with all that is needed to commit it in another process, or to fill it anew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PreparedHandle {
    /// The transaction.
    pub transaction: Transaction,
    /// The format of the handle, one of those that the plugin's description lists.
    pub format: String,
    /// The handle: bytes that belong to the plugin. At most [`MAX_HANDLE_BYTES`].
    #[serde(with = "base64")]
    pub handle: Vec<u8>,
    /// How many records the target says it holds, where it says so.
    pub held: Option<u64>,
    /// What was read into it, a slice for each split and stretch.
    pub slices: Vec<Slice>,
    /// Which of those records it does not hold.
    pub rejected: Vec<RejectedRecord>,
}

impl PreparedHandle {
    /// How many records were read for it, rejected ones included.
    pub fn records_read(&self) -> u64 {
        self.slices.iter().map(|slice| slice.records).sum()
    }
}

/// What makes an epoch certain to commit: positions and handles, written in one step (EO-3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// The pipeline.
    pub pipeline: PipelineId,
    /// The generation that decides. The ledger refuses any but its newest.
    pub generation: Generation,
    /// The epoch decided.
    pub epoch: Epoch,
    /// The epoch decided before it, or [`Epoch::GENESIS`].
    pub base: Epoch,
    /// The hash of that decision, or [`Hash::GENESIS`] (EO-4).
    pub base_hash: Hash,
    /// True: `positions` lists every split. False: only those that changed since `base`.
    pub snapshot: bool,
    /// Where reading goes on after this epoch.
    pub positions: Positions,
    /// What is to be committed. Empty where positions moved without records.
    pub handles: Vec<PreparedHandle>,
}

impl Decision {
    /// The canonical bytes: what is stored, sent again when an answer is lost, and hashed.
    ///
    /// JSON with the fields in their order of declaration and maps in key order, so the same decision gives the same bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>, ProtocolError> {
        let bytes = serde_json::to_vec(self).map_err(|source| ProtocolError::Encode { what: "decision", source })?;
        if bytes.len() > MAX_DECISION_BYTES {
            return Err(ProtocolError::DecisionTooLarge { epoch: self.epoch, bytes: bytes.len() });
        }
        Ok(bytes)
    }

    /// Reads back what [`Decision::to_bytes`] made.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ProtocolError> {
        serde_json::from_slice(bytes).map_err(|source| ProtocolError::Decode { what: "decision", source })
    }

    /// Its place in the chain after it is decided.
    pub fn head(&self) -> Result<Head, ProtocolError> {
        Ok(Head { epoch: self.epoch, hash: Hash::of(&self.to_bytes()?) })
    }
}

/// The newest decision of a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// Its epoch.
    pub epoch: Epoch,
    /// The hash of its canonical bytes.
    pub hash: Hash,
}

impl Head {
    /// The head of a pipeline that has decided nothing.
    pub const GENESIS: Head = Head { epoch: Epoch::GENESIS, hash: Hash::GENESIS };
}

/// A plugin's answer to commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// This call made it visible.
    Committed,
    /// It was visible before.
    AlreadyCommitted,
    /// It was never visible, and the plugin has made sure that it never can be.
    Lost,
    /// The target no longer remembers.
    Unknown,
}

/// A prepared handle that is known to be visible at its target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Confirmation {
    /// The epoch whose decision names the handle.
    pub epoch: Epoch,
    /// The handle's transaction.
    pub label: Label,
    /// [`Verdict::Committed`] or [`Verdict::AlreadyCommitted`].
    pub verdict: Verdict,
}

/// The handle that stands in for one that its target lost. Written under the fence before it is committed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replacement {
    /// The label of the handle that was lost.
    pub lost: Label,
    /// What holds its slices now, less its rejected records.
    pub handle: PreparedHandle,
}

/// What a pipeline delivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Delivery {
    /// Each record once, through every crash.
    ExactlyOnce,
}

/// What one generation of a pipeline runs: enough to compute the labels that it may use, and to settle what it owes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// How many lanes.
    pub lanes: u32,
    /// What is read, in a form that stays the same for as long as it is the same place.
    pub source: String,
    /// What is promised.
    pub delivery: Delivery,
    /// The sinks.
    pub sinks: Vec<SinkManifest>,
}

/// One sink of a manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SinkManifest {
    /// The sink.
    pub sink: SinkId,
    /// The plugin's name, as its description gives it.
    pub plugin: String,
    /// The plugin's version, likewise.
    pub version: String,
    /// The SHA-256 of the component.
    pub digest: Hash,
    /// What is written to, as the profile of an open instance names it.
    pub target: String,
    /// The formats of handles that the plugin commits; it writes the first.
    pub handle_formats: Vec<String>,
    /// How long a request that was sent can still take effect at the target after its sender is gone, in milliseconds.
    pub settle_ms: u32,
}

impl Manifest {
    /// The entry of one sink.
    pub fn sink(&self, id: &SinkId) -> Option<&SinkManifest> {
        self.sinks.iter().find(|sink| &sink.sink == id)
    }
}

/// A try of a transaction other than its first, recorded before its `begin`, since its label cannot be computed from the manifest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttemptRecord {
    /// The sink.
    pub sink: SinkId,
    /// The lane.
    pub lane: Lane,
    /// The epoch.
    pub epoch: Epoch,
    /// Which try.
    pub attempt: Attempt,
}

/// What a generation that ended may have left at its targets. It is paid when every label has been aborted by a pass that began at
/// least the settle time after the generation's host was known to be gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepDebt {
    /// The generation that ended.
    pub generation: Generation,
    /// The newest decision when it ended: what it had under way comes after.
    pub base: Epoch,
    /// What it ran.
    pub manifest: Manifest,
    /// Its tries other than the first that no decision and no replacement names. One of a repair can be of an epoch up to `base`.
    pub attempts: Vec<AttemptRecord>,
}

impl SweepDebt {
    /// The longest settle time of its sinks, in milliseconds: how long after the end of its host the paying pass may begin.
    pub fn settle_ms(&self) -> u32 {
        self.manifest.sinks.iter().map(|sink| sink.settle_ms).max().unwrap_or(0)
    }

    /// Every transaction that it may have begun and that no decision names.
    fn transactions(&self, labels: &Labels) -> Result<Vec<Transaction>, ProtocolError> {
        let mut all = Vec::new();
        for sink in &self.manifest.sinks {
            for ahead in 1..=MAX_UNDECIDED_EPOCHS {
                let epoch = Epoch(self.base.0.saturating_add(ahead));
                for lane in 0..self.manifest.lanes {
                    all.push(labels.transaction(&sink.sink, self.generation, epoch, Lane(lane), Attempt::FIRST)?);
                }
            }
        }
        for tried in &self.attempts {
            all.push(labels.transaction(&tried.sink, self.generation, tried.epoch, tried.lane, tried.attempt)?);
        }
        Ok(all)
    }
}

/// Everything durable about one pipeline that is not pruned, as one consistent read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PipelineFacts {
    /// The pipeline.
    pub pipeline: PipelineId,
    /// The ledger.
    pub ledger: LedgerId,
    /// The newest generation.
    pub generation: Generation,
    /// What the newest generation runs.
    pub manifest: Manifest,
    /// The newest decision.
    pub head: Head,
    /// The decisions since the newest snapshot, and every older one that has a handle unconfirmed, ascending.
    pub decisions: Vec<Decision>,
    /// The confirmations of those decisions' handles, and of their replacements.
    pub confirmations: Vec<Confirmation>,
    /// The replacements of those decisions' handles, oldest first.
    pub replacements: Vec<Replacement>,
    /// What ended generations may have left behind.
    pub debts: Vec<SweepDebt>,
    /// Whether the newest generation may have transactions that no decision names. False once its host has written that it stepped down with
    /// nothing under way; the next generation then owes no sweep for it.
    pub undecided_may_exist: bool,
}

impl Durable<PipelineFacts> {
    /// The right to abort whatever a debt may have left. The debt's generation is older than the one these facts were read under, so it can
    /// decide nothing any more (EO-2).
    pub fn sweep(&self, debt: &SweepDebt) -> Result<Vec<AbortPermit>, ProtocolError> {
        let facts = self.get();
        if !facts.debts.contains(debt) || debt.generation >= facts.generation {
            return Err(ProtocolError::NotOwed { generation: debt.generation });
        }
        let labels = Labels::new(facts.ledger, facts.pipeline.clone());
        Ok(debt.transactions(&labels)?.into_iter().map(AbortPermit::for_undecided).collect())
    }
}
