//! Cutting bytes into records. Pure: what lies in front is looked at, and what comes out says how much of it was taken.
//!
//! One module a format: `lines`, `json`, `csv`.

mod csv;
mod json;
mod lines;

#[cfg(test)]
mod tests;

use std::ops::Range;

pub(super) use csv::{CsvCutter, Header, HeaderFound, find_header};

use super::config::{FileFormat, FileSourceConfig};

/// What a piece may hold at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct CutLimits {
    /// Bytes in all.
    pub(super) bytes: usize,
    /// Records.
    pub(super) records: u32,
    /// Bytes of one record, with its line feed. Not more than `bytes`.
    pub(super) record_bytes: usize,
    /// Whether to note where each record ends, also where line feeds tell.
    pub(super) ends: bool,
}

/// What lies in front.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window<'a> {
    pub(super) bytes: &'a [u8],
    /// It begins at the beginning of the file.
    pub(super) first: bool,
    /// Nothing comes after it.
    pub(super) last: bool,
}

/// What was cut off. Nothing taken: there is no whole record yet.
#[derive(Debug, Default)]
pub(super) struct Cut {
    /// How many bytes were taken from the front, with what belongs to no record.
    pub(super) taken: usize,
    /// How many line feeds are in them.
    pub(super) lines: u64,
    /// How many records they hold.
    pub(super) count: u32,
    /// The records, each with one line feed behind it.
    pub(super) records: Records,
    /// Where each record ends.
    pub(super) ends: Option<Vec<u32>>,
    /// The record has got a line feed that the file does not have.
    pub(super) unterminated: bool,
}

/// The bytes of records.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Records {
    /// As they lie in the window.
    Window(Range<usize>),
    /// Put together anew, because something between them was left out or added.
    Copied(Vec<u8>),
}

impl Default for Records {
    fn default() -> Self {
        Records::Window(0..0)
    }
}

/// Why what lies in front cannot be cut.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Problem {
    /// Which byte of the window it is about.
    pub(super) at: usize,
    pub(super) kind: ProblemKind,
}

/// What is wrong.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ProblemKind {
    /// The record that begins there is longer than this many bytes.
    TooLong { limit: usize },
    /// The byte there is not UTF-8.
    NotUtf8,
    /// The line that begins there is not one JSON value.
    NotJson { why: String },
    /// The row that begins there has another number of fields than the header.
    Fields { found: usize, expected: usize },
    /// A field of the row that begins there has a quote that never ends.
    OpenQuote,
}

/// Cuts one format.
#[derive(Debug)]
pub(super) enum Cutter {
    Lines,
    Json { validate: bool },
    Csv(Box<CsvCutter>),
}

impl Cutter {
    pub(super) fn new(config: &FileSourceConfig, columns: usize) -> Self {
        match config.format {
            FileFormat::Lines => Self::Lines,
            FileFormat::Json => Self::Json { validate: config.validate },
            FileFormat::Csv => Self::Csv(Box::new(CsvCutter::new(columns))),
        }
    }

    /// Cuts whole records off the front, as many as the limits allow.
    pub(super) fn cut(&mut self, window: Window<'_>, limits: &CutLimits) -> Result<Cut, Problem> {
        match self {
            Self::Lines => lines::cut(window, limits),
            Self::Json { validate } => json::cut(window, *validate, limits),
            Self::Csv(csv) => csv.cut(window, limits),
        }
    }
}

/// The bytes of a UTF-8 byte order mark.
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

fn line_feeds(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// No record has its end within the limit.
fn too_long(window: &[u8], limits: &CutLimits, last: bool) -> Option<Problem> {
    let limit = limits.record_bytes.min(limits.bytes);
    // At the end, a line feed is added and counts.
    (window.len() + usize::from(last) > limit).then_some(Problem { at: 0, kind: ProblemKind::TooLong { limit } })
}

/// The last record of a file, which has no line feed.
fn unterminated(record: &[u8], taken: usize, lines: u64, ends: bool) -> Cut {
    let mut copy = Vec::with_capacity(record.len() + 1);
    copy.extend_from_slice(record);
    copy.push(b'\n');
    let ends = ends.then(|| vec![copy.len() as u32]);
    Cut { taken, lines, count: 1, records: Records::Copied(copy), ends, unterminated: true }
}
