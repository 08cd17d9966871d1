//! Where reading a file would go on, and what has to be true of the file for that.

use serde::{Deserialize, Serialize};
use weir_protocol::{Position, SplitId};

use super::identity::{MAX_TAIL_BYTES, short_hash};
use crate::source::{SourceError, codes};

/// The version of a position's bytes that is written.
const VERSION: u32 = 1;

/// A position, as it is kept: JSON, so that a person can read a ledger. Bytes count in the decompressed data of a compressed file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Place {
    pub(super) v: u32,
    /// The first byte that has not been read.
    pub(super) offset: u64,
    /// The number of the next record.
    pub(super) record: u64,
    /// How many line feeds lie before: the next line's number, from 0.
    pub(super) line: u64,
    /// Hash of the bytes before the offset, at most [`MAX_TAIL_BYTES`] of them.
    pub(super) tail: String,
    /// The largest size that the file was seen to have, on disk. Of a plain file, what lies between the offset and this was there to be read.
    pub(super) seen: u64,
    /// The last record was taken without a line feed, because the file ended there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) unterminated: bool,
    /// A compressed file has been read to its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) whole: bool,
    /// Whether the offset counts in decompressed data.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) compressed: bool,
    /// When the file was made, in nanoseconds since 1970, where its file system says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) born: Option<u64>,
    /// Where the file was, for people and as the first place to look.
    pub(super) path: String,
}

impl Place {
    /// The beginning of a file.
    pub(super) fn beginning(path: String, seen: u64, born: Option<u64>, compressed: bool) -> Self {
        Self {
            v: VERSION,
            offset: 0,
            record: 0,
            line: 0,
            tail: short_hash(&[]),
            seen,
            unterminated: false,
            whole: false,
            compressed,
            born,
            path,
        }
    }

    /// How many bytes before the offset the hash is over.
    pub(super) fn tail_bytes(&self) -> usize {
        usize::try_from(self.offset).unwrap_or(usize::MAX).min(MAX_TAIL_BYTES)
    }

    /// Was everything read that the file was ever seen to hold?
    pub(super) fn read_to_the_end(&self) -> bool {
        if self.compressed { self.whole } else { self.offset >= self.seen }
    }

    pub(super) fn encode(&self) -> Position {
        // A struct of numbers and strings cannot fail to serialize.
        Position(serde_json::to_vec(self).unwrap_or_default())
    }

    pub(super) fn decode(split: &SplitId, position: &Position) -> Result<Self, SourceError> {
        let bad = |why: String| {
            SourceError::stop(
                codes::BAD_POSITION,
                format!(
                    "the position of split {split} was not written by this version of the file source: {why}. {}",
                    codes::BAD_POSITION.remedy
                ),
            )
        };
        let place: Self = serde_json::from_slice(&position.0).map_err(|error| bad(error.to_string()))?;
        if place.v != VERSION {
            return Err(bad(format!("it has version {}, known is {VERSION}", place.v)));
        }
        Ok(place)
    }
}
