//! Names and numbers. A newtype for each, so that two of them cannot be mixed up, with the limits that labels depend on.

use std::fmt;
use std::str::FromStr;

use data_encoding::{BASE32_NOPAD, HEXLOWER};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::ProtocolError;

/// Longest pipeline or sink name, in bytes.
pub const MAX_NAME_BYTES: usize = 63;
/// Longest split id, in bytes.
pub const MAX_SPLIT_ID_BYTES: usize = 512;
/// Longest label, in bytes: MySQL's limit for an XA transaction id's first part, the narrowest of the targets thought of.
pub const MAX_LABEL_BYTES: usize = 64;
/// Largest epoch that a label has room for. One epoch a millisecond reaches it after 31 years.
pub const MAX_EPOCH: u64 = 999_999_999_999;
/// Largest generation that a label has room for.
pub const MAX_GENERATION: u64 = 999_999_999;
/// Largest lane number that a label has room for.
pub const MAX_LANE: u32 = 9_999;
/// Largest attempt that a label has room for.
pub const MAX_ATTEMPT: u32 = 99_999;

macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $type(String);

        impl $type {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $type {
            type Error = ProtocolError;
            fn try_from(text: String) -> Result<Self, ProtocolError> {
                let first = text.bytes().next().is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
                let rest = text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-');
                if first && rest && text.len() <= MAX_NAME_BYTES {
                    Ok(Self(text))
                } else {
                    Err(ProtocolError::BadName { what: $what, text })
                }
            }
        }

        impl FromStr for $type {
            type Err = ProtocolError;
            fn from_str(text: &str) -> Result<Self, ProtocolError> {
                Self::try_from(text.to_owned())
            }
        }

        impl From<$type> for String {
            fn from(name: $type) -> String {
                name.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name!(
    /// A pipeline's name: `[a-z0-9][a-z0-9_-]{0,62}`. It is part of every label, so renaming a pipeline makes a new one.
    PipelineId, "pipeline"
);
name!(
    /// A sink's name within its pipeline: `[a-z0-9][a-z0-9_-]{0,62}`. It is part of every label.
    SinkId, "sink"
);

/// A split's name, given by its source and the same for as long as the split is the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SplitId(String);

impl SplitId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for SplitId {
    type Error = ProtocolError;
    fn try_from(text: String) -> Result<Self, ProtocolError> {
        if text.is_empty() || text.len() > MAX_SPLIT_ID_BYTES || text.chars().any(char::is_control) {
            return Err(ProtocolError::BadName { what: "split", text });
        }
        Ok(Self(text))
    }
}

impl From<SplitId> for String {
    fn from(id: SplitId) -> String {
        id.0
    }
}

impl fmt::Display for SplitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

macro_rules! number {
    ($(#[$doc:meta])* $type:ident, $int:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $type(pub $int);

        impl $type {
            /// The number after this one.
            #[must_use]
            pub fn next(self) -> Self {
                Self(self.0.saturating_add(1))
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number!(
    /// The records between two barriers of a pipeline, numbered from 1. 0 stands for "nothing decided yet".
    Epoch, u64
);
number!(
    /// The fence: raised by every start of a pipeline. An older generation can decide nothing.
    Generation, u64
);
number!(
    /// One of a pipeline's parallel workers, numbered from 0.
    Lane, u32
);
number!(
    /// Which try of one lane's transaction in one epoch. The first is 1; any other is recorded before its `begin`.
    Attempt, u32
);

impl Epoch {
    /// "Nothing decided yet": the base of the first epoch.
    pub const GENESIS: Epoch = Epoch(0);
}

impl Attempt {
    /// The attempt that needs no record of its own, because its label can be computed from the manifest.
    pub const FIRST: Attempt = Attempt(1);
}

/// A ledger's random name, part of every label, so that two ledgers never use the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LedgerId([u8; 8]);

impl LedgerId {
    /// From 8 bytes of the system's randomness.
    pub fn from_random(bytes: [u8; 8]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for LedgerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE32_NOPAD.encode(&self.0).to_ascii_lowercase())
    }
}

impl From<LedgerId> for String {
    fn from(id: LedgerId) -> String {
        id.to_string()
    }
}

impl TryFrom<String> for LedgerId {
    type Error = ProtocolError;
    fn try_from(text: String) -> Result<Self, ProtocolError> {
        BASE32_NOPAD
            .decode(text.to_ascii_uppercase().as_bytes())
            .ok()
            .and_then(|bytes| <[u8; 8]>::try_from(bytes).ok())
            .map(Self)
            .ok_or(ProtocolError::BadName { what: "ledger", text })
    }
}

/// A SHA-256, written in hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Hash([u8; 32]);

impl Hash {
    /// The base hash of a pipeline's first decision.
    pub const GENESIS: Hash = Hash([0; 32]);

    /// The hash of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<Hash> for String {
    fn from(hash: Hash) -> String {
        hash.to_string()
    }
}

impl TryFrom<String> for Hash {
    type Error = ProtocolError;
    fn try_from(text: String) -> Result<Self, ProtocolError> {
        HEXLOWER
            .decode(text.as_bytes())
            .ok()
            .and_then(|bytes| <[u8; 32]>::try_from(bytes).ok())
            .map(Self)
            .ok_or(ProtocolError::BadName { what: "hash", text })
    }
}

/// A transaction's name at its target: `[a-z0-9-]{1,64}`, deterministic, and used once, ever (EO-5).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Label(String);

impl Label {
    /// The label as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Label {
    type Error = ProtocolError;
    fn try_from(text: String) -> Result<Self, ProtocolError> {
        let good = text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if text.is_empty() || text.len() > MAX_LABEL_BYTES || !good {
            return Err(ProtocolError::BadName { what: "label", text });
        }
        Ok(Self(text))
    }
}

impl From<Label> for String {
    fn from(label: Label) -> String {
        label.0
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Makes the labels of one pipeline in one ledger.
#[derive(Clone, Debug)]
pub struct Labels {
    ledger: LedgerId,
    pipeline: PipelineId,
}

impl Labels {
    /// For the pipeline of that name in that ledger.
    pub fn new(ledger: LedgerId, pipeline: PipelineId) -> Self {
        Self { ledger, pipeline }
    }

    /// The transaction that one lane opens at one sink in one epoch.
    ///
    /// The label is `<slug>-<ledger id>-<hash of pipeline and sink>-g<generation>-e<epoch>-l<lane>-a<attempt>`. All but the slug
    /// makes it unique; the slug is as much of the pipeline's name as has room, for people who look at the target.
    pub fn transaction(
        &self,
        sink: &SinkId,
        generation: Generation,
        epoch: Epoch,
        lane: Lane,
        attempt: Attempt,
    ) -> Result<Transaction, ProtocolError> {
        if generation.0 > MAX_GENERATION || epoch.0 > MAX_EPOCH || lane.0 > MAX_LANE || attempt.0 > MAX_ATTEMPT {
            return Err(ProtocolError::NumberTooLarge { generation, epoch, lane, attempt });
        }
        // A line feed is in no name, so the pair cannot be split in two ways.
        let pair = format!("{}\n{}", self.pipeline, sink);
        let hash = BASE32_NOPAD.encode(&Sha256::digest(pair.as_bytes())).to_ascii_lowercase();
        let hash = hash.get(..8).unwrap_or(&hash);
        let unique = format!("{}-{hash}-g{generation}-e{epoch}-l{lane}-a{attempt}", self.ledger);
        let room = MAX_LABEL_BYTES.saturating_sub(unique.len() + 1);
        let slug: String = self.pipeline.as_str().bytes().filter(|b| *b != b'_').take(room).map(char::from).collect();
        let label = Label::try_from(format!("{slug}-{unique}"))?;
        Ok(Transaction { sink: sink.clone(), lane, epoch, label })
    }
}

/// One lane's writes to one sink in one epoch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transaction {
    /// The sink that it writes to.
    pub sink: SinkId,
    /// The lane that writes.
    pub lane: Lane,
    /// The epoch whose records it holds.
    pub epoch: Epoch,
    /// Its name at the target.
    pub label: Label,
}
