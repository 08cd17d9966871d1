//! Records made up on the spot: orders of a shop, the same ones for the same seed, whenever and in however many splits they are made.
//!
//! Order n is a pure function of the seed and n. Split s of S has the orders s, s + S, s + 2S and so on, so record k of split s is a pure function of the seed,
//! the number of splits, s and k, and all splits together hold each order once. No clock is asked: an order's time follows from its number.

mod orders;
mod pace;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_engine::{Batch, Format, Framing, Input};
use weir_protocol::{Position, Positions, SplitId};

use crate::config::values::Count;
use crate::source::{BatchLimits, Read, Source, SourceError, SplitReader, codes};

use orders::{COLUMNS, Orders};
use pace::Pace;

/// How many bytes are made at a time.
const BLOCK_BYTES: usize = 1024 * 1024;
/// How often a source without an end is asked for splits anew, though it never has any.
const ASKED_AGAIN: Duration = Duration::from_secs(1);

/// Orders of a shop that does not exist: id, customer, product, quantity, price, created. The same ones for the same seed.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GenerateSourceConfig {
    /// How many orders in all. Without it there is no end.
    #[serde(skip_serializing)]
    #[schemars(with = "Count")]
    pub(crate) records: Option<Count>,
    /// At most so many orders a second, in all. Without it as fast as they are taken.
    #[serde(skip_serializing)]
    #[schemars(with = "Count")]
    pub(crate) rate: Option<Count>,
    /// Another seed gives other orders.
    pub(crate) seed: u64,
    /// Into how many splits they are dealt out. A pipeline that has begun keeps the number that it began with.
    #[schemars(range(min = 1, max = 10_000))]
    pub(crate) splits: u32,
    /// How an order is written.
    pub(crate) format: GenerateFormat,
}

/// How an order is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum GenerateFormat {
    /// One JSON object a line.
    #[default]
    Json,
    /// One CSV row a line.
    Csv,
}

impl Default for GenerateSourceConfig {
    fn default() -> Self {
        Self { records: None, rate: None, seed: 0, splits: 1, format: GenerateFormat::Json }
    }
}

impl GenerateSourceConfig {
    /// So many orders in that format, everything else as it is by default.
    pub fn new(records: Option<u64>, format: GenerateFormat) -> Self {
        Self { records: records.map(Count), format, ..Self::default() }
    }

    fn splits(&self) -> u64 {
        u64::from(self.splits.max(1))
    }
}

/// Orders of a shop.
pub struct GenerateSource {
    config: GenerateSourceConfig,
    pace: Arc<Pace>,
}

impl GenerateSource {
    /// A source of orders.
    pub fn new(config: GenerateSourceConfig) -> Self {
        let pace = Arc::new(Pace::new(config.rate.as_ref().map(|rate| rate.0)));
        Self { config, pace }
    }

    /// The number of a split.
    fn number(&self, split: &SplitId) -> Result<u64, SourceError> {
        let number = split.as_str().strip_prefix("generate:").and_then(|rest| rest.strip_suffix(&format!("/{}", self.config.splits())));
        number.and_then(|number| number.parse().ok()).filter(|number| *number < self.config.splits()).ok_or_else(|| {
            let code = codes::BAD_POSITION;
            SourceError::stop(
                code,
                format!(
                    "the ledger holds a position of split {split}, and this source has {} splits of its own: it was changed. {}",
                    self.config.splits(),
                    code.remedy
                ),
            )
        })
    }

    /// How many records a split has.
    fn records_of(&self, split: u64) -> u64 {
        let splits = self.config.splits();
        match &self.config.records {
            None => u64::MAX / splits,
            Some(Count(all)) => all / splits + u64::from(split < all % splits),
        }
    }
}

#[async_trait]
impl Source for GenerateSource {
    fn identity(&self) -> String {
        let format = match self.config.format {
            GenerateFormat::Json => "json",
            GenerateFormat::Csv => "csv",
        };
        format!("generate orders, seed {}, {} splits, {format}", self.config.seed, self.config.splits())
    }

    fn bounded(&self) -> bool {
        self.config.records.is_some()
    }

    async fn prepare(&mut self) -> Result<Input, SourceError> {
        Ok(match self.config.format {
            GenerateFormat::Json => Input { format: Format::Json, columns: Vec::new() },
            GenerateFormat::Csv => Input { format: Format::Csv, columns: COLUMNS.iter().map(|&name| name.to_owned()).collect() },
        })
    }

    async fn discover(&mut self, known: &Positions) -> Result<Vec<SplitId>, SourceError> {
        for split in known.keys() {
            self.number(split)?;
        }
        let mut splits = Vec::new();
        for number in 0..self.config.splits() {
            let split = split_id(number, self.config.splits())?;
            let next = known.get(&split).map(|position| decode(&split, position)).transpose()?.unwrap_or(0);
            if next < self.records_of(number) {
                splits.push(split);
            }
        }
        Ok(splits)
    }

    async fn open(&self, split: &SplitId, from: Option<&Position>) -> Result<Box<dyn SplitReader>, SourceError> {
        let number = self.number(split)?;
        let next = from.map(|position| decode(split, position)).transpose()?.unwrap_or(0);
        Ok(Box::new(GenerateReader {
            split: split.clone(),
            orders: Orders::new(self.config.seed, self.config.format),
            number,
            splits: self.config.splits(),
            next,
            end: self.records_of(number),
            pace: self.pace.clone(),
            made: Vec::new(),
        }))
    }

    async fn changed(&self) -> Result<(), SourceError> {
        crate::clock::sleep(ASKED_AGAIN).await;
        Ok(())
    }

    fn describe(&self, split: &SplitId, position: Option<&Position>) -> String {
        match position.and_then(|position| decode(split, position).ok()) {
            Some(next) => format!("generated split {split}, record {next}"),
            None => format!("generated split {split}"),
        }
    }
}

fn split_id(number: u64, splits: u64) -> Result<SplitId, SourceError> {
    SplitId::try_from(format!("generate:{number}/{splits}")).map_err(|error| SourceError::stop(codes::BAD_POSITION, error.to_string()))
}

/// A position is the number of the next record, in decimal.
fn decode(split: &SplitId, position: &Position) -> Result<u64, SourceError> {
    std::str::from_utf8(&position.0).ok().and_then(|text| text.parse().ok()).ok_or_else(|| {
        let code = codes::BAD_POSITION;
        SourceError::stop(code, format!("the position of split {split} is not a record's number. {}", code.remedy))
    })
}

/// Makes the records of one split.
struct GenerateReader {
    split: SplitId,
    orders: Orders,
    number: u64,
    splits: u64,
    next: u64,
    end: u64,
    pace: Arc<Pace>,
    /// The batches made last, to be overwritten once nobody holds them any more.
    made: Vec<Bytes>,
}

/// Batches whose space is used again.
const MAX_MADE: usize = 3;

impl GenerateReader {
    /// Makes at most so many records.
    fn make(&mut self, limits: &BatchLimits, most: u64) -> Result<Batch, SourceError> {
        let first = self.next;
        let limit = limits.bytes.min(BLOCK_BYTES);
        let mut bytes = self.space();
        let with_ends = limits.ends || self.orders.format() == GenerateFormat::Csv;
        let mut ends = Vec::new();
        let mut count = 0;
        while u64::from(count) < most && count < limits.records.max(1) {
            let start = bytes.len();
            self.orders.write(self.number + (first + u64::from(count)) * self.splits, &mut bytes);
            if bytes.len() > limit {
                bytes.truncate(start);
                break;
            }
            count += 1;
            if with_ends {
                ends.push(bytes.len() as u32);
            }
        }
        if count == 0 {
            let code = codes::RECORD_TOO_LONG;
            return Err(SourceError::stop(
                code,
                format!(
                    "record {first} of {} is longer than {limit} bytes, the largest batch that the pipeline's sinks take. {}",
                    self.split, code.remedy
                ),
            ));
        }
        self.next += u64::from(count);
        let bytes = Bytes::from(bytes);
        if self.made.len() == MAX_MADE {
            self.made.remove(0);
        }
        self.made.push(bytes.clone());
        Ok(Batch::new(self.split.clone(), first, count, Framing::LineFeed, bytes, with_ends.then(|| Arc::from(ends))))
    }

    /// Empty space for a block, used before if nobody holds it any more.
    fn space(&mut self) -> Vec<u8> {
        let free = self.made.iter().position(Bytes::is_unique);
        let mut space = match free {
            Some(index) => Vec::from(self.made.remove(index)),
            None => Vec::with_capacity(BLOCK_BYTES + orders::MAX_ORDER_BYTES),
        };
        space.clear();
        space
    }
}

#[async_trait]
impl SplitReader for GenerateReader {
    async fn read(&mut self, limits: &BatchLimits) -> Result<Read, SourceError> {
        let left = self.end.saturating_sub(self.next);
        if left == 0 {
            return Ok(Read::End);
        }
        let most = left.min(u64::from(limits.records.max(1)));
        let due = self.pace.due(most).await;
        let batch = self.make(limits, due)?;
        self.pace.took(u64::from(batch.count));
        Ok(Read::Batch(batch))
    }

    fn position(&self) -> Position {
        Position(self.next.to_string().into_bytes())
    }

    fn next_record(&self) -> u64 {
        self.next
    }
}
