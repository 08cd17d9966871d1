//! Rows by RFC 4180, comma-separated. A quoted field may hold line feeds, so a row ends where csv-core says it does. A carriage return before the line feed
//! that ends a row belongs to the row's end and is left out. An empty line is no row.

use std::ops::Range;

use csv_core::{ReadRecordResult, Reader, ReaderBuilder, Terminator};

use super::{BYTE_ORDER_MARK, Cut, CutLimits, Problem, ProblemKind, Records, Window, line_feeds, too_long};

/// Space for the contents of fields, which only a header's reader looks at.
const FIELD_BYTES: usize = 16 * 1024;
/// Space for the ends of fields. A row with more of them is read in several steps.
const FIELD_ENDS: usize = 256;

/// Finds the ends of rows, and counts their fields.
pub(in crate::source::file) struct CsvCutter {
    columns: usize,
    rows: Rows,
}

impl std::fmt::Debug for CsvCutter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CsvCutter").field("columns", &self.columns).finish_non_exhaustive()
    }
}

impl CsvCutter {
    /// For rows of so many fields.
    pub(super) fn new(columns: usize) -> Self {
        Self { columns, rows: Rows::new() }
    }

    pub(super) fn cut(&mut self, window: Window<'_>, limits: &CutLimits) -> Result<Cut, Problem> {
        let bytes = window.bytes;
        let mut found = Found::default();
        let mut start = 0;
        while found.ends.len() < limits.records as usize {
            start += blank_lines(bytes.get(start..).unwrap_or_default());
            let rest = bytes.get(start..).unwrap_or_default();
            if rest.is_empty() || is_lone_return(rest, window.last) {
                break;
            }
            // A row that is longer than the limit is not searched to its end.
            let limit = limits.record_bytes.min(limits.bytes);
            // Two more: the row's line feed may have a carriage return before it that does not count.
            let reach = rest.get(..limit + 1).unwrap_or(rest);
            let found_row = self.rows.next(reach, window.last && reach.len() == rest.len());
            let (length, row) = match found_row {
                Row::Whole { length, fields } => {
                    self.check_fields(fields, start)?;
                    (length, row_content(rest.get(..length).unwrap_or(rest)))
                }
                Row::Open { quoted } if found.ends.is_empty() => return self.open_row(window, start, quoted, limits),
                Row::Open { .. } => break,
            };
            if row.len() + 1 > limit {
                if found.ends.is_empty() {
                    return Err(Problem { at: start, kind: ProblemKind::TooLong { limit } });
                }
                break;
            }
            if found.length() + row.len() + 1 > limits.bytes {
                break;
            }
            let terminated = rest.get(length.wrapping_sub(1)) == Some(&b'\n');
            found.add(bytes, start..start + row.len(), start + length, terminated);
            start += length;
        }
        let lines = line_feeds(bytes.get(..start).unwrap_or(bytes));
        let count = found.ends.len() as u32;
        Ok(Cut {
            taken: start,
            lines,
            count,
            unterminated: found.unterminated,
            ends: Some(std::mem::take(&mut found.ends)),
            records: found.records(),
        })
    }

    /// A row in front has no end: not yet, or never.
    fn open_row(&self, window: Window<'_>, start: usize, quoted: bool, limits: &CutLimits) -> Result<Cut, Problem> {
        let rest = window.bytes.get(start..).unwrap_or_default();
        if let Some(problem) = too_long(rest, limits, false) {
            return Err(Problem { at: start, ..problem });
        }
        if window.last && quoted {
            return Err(Problem { at: start, kind: ProblemKind::OpenQuote });
        }
        let lines = line_feeds(window.bytes.get(..start).unwrap_or_default());
        Ok(Cut { taken: start, lines, ..Cut::default() })
    }

    fn check_fields(&self, found: usize, start: usize) -> Result<(), Problem> {
        if found == self.columns {
            return Ok(());
        }
        Err(Problem { at: start, kind: ProblemKind::Fields { found, expected: self.columns } })
    }
}

/// The rows found so far: a stretch of the window until something between two of them had to be left out.
#[derive(Default)]
struct Found {
    stretch: Range<usize>,
    copied: Option<Vec<u8>>,
    ends: Vec<u32>,
    unterminated: bool,
}

impl Found {
    fn length(&self) -> usize {
        self.copied.as_ref().map_or(self.stretch.len(), Vec::len)
    }

    /// Adds a row: its content, and where what belongs to it ends in the window.
    fn add(&mut self, window: &[u8], content: Range<usize>, end: usize, terminated: bool) {
        if self.ends.is_empty() {
            self.stretch = content.start..content.start;
        }
        self.unterminated = !terminated;
        let as_it_lies = self.copied.is_none() && content.start == self.stretch.end && end == content.end + 1 && terminated;
        if as_it_lies {
            self.stretch.end = end;
        } else {
            let stretch = self.stretch.clone();
            let copy = self.copied.get_or_insert_with(|| window.get(stretch).unwrap_or_default().to_vec());
            copy.extend_from_slice(window.get(content).unwrap_or_default());
            copy.push(b'\n');
        }
        self.ends.push(self.length() as u32);
    }

    fn records(self) -> Records {
        match self.copied {
            Some(copy) => Records::Copied(copy),
            None => Records::Window(self.stretch),
        }
    }
}

/// What csv-core finds in front.
enum Row {
    /// A row that takes up so many bytes, with its line feed.
    Whole { length: usize, fields: usize },
    /// The row does not end in what is there.
    Open { quoted: bool },
}

/// csv-core with the space it writes fields to.
struct Rows {
    reader: Reader,
    fields: Vec<u8>,
    ends: Vec<usize>,
}

impl Rows {
    fn new() -> Self {
        let reader = ReaderBuilder::new().terminator(Terminator::Any(b'\n')).build();
        Self { reader, fields: vec![0; FIELD_BYTES], ends: vec![0; FIELD_ENDS] }
    }

    /// The row in front. At the end of a file a row ends also without a line feed.
    fn next(&mut self, bytes: &[u8], last: bool) -> Row {
        self.reader.reset();
        let mut length = 0;
        let mut fields = 0;
        loop {
            let rest = bytes.get(length..).unwrap_or_default();
            if rest.is_empty() {
                break;
            }
            let (result, read, _, ended) = self.reader.read_record(rest, &mut self.fields, &mut self.ends);
            length += read;
            fields += ended;
            match result {
                ReadRecordResult::Record => return Row::Whole { length, fields },
                ReadRecordResult::InputEmpty | ReadRecordResult::OutputFull | ReadRecordResult::OutputEndsFull => {}
                ReadRecordResult::End => break,
            }
        }
        // A line feed ends the row, unless it stands within quotes.
        let (result, _, _, ended) = self.reader.read_record(b"\n", &mut self.fields, &mut self.ends);
        let quoted = result != ReadRecordResult::Record;
        if last && !quoted { Row::Whole { length, fields: fields + ended } } else { Row::Open { quoted } }
    }
}

/// A row without its end.
fn row_content(row: &[u8]) -> &[u8] {
    let row = row.strip_suffix(b"\n").unwrap_or(row);
    row.strip_suffix(b"\r").unwrap_or(row)
}

/// How many bytes of empty lines lie in front.
fn blank_lines(bytes: &[u8]) -> usize {
    let mut length = 0;
    loop {
        match bytes.get(length..) {
            Some([b'\n', ..]) => length += 1,
            Some([b'\r', b'\n', ..]) => length += 2,
            _ => return length,
        }
    }
}

/// A carriage return of which cannot be told yet whether it is an empty line.
fn is_lone_return(rest: &[u8], last: bool) -> bool {
    rest == b"\r" && !last
}

/// The first row of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::source::file) struct Header {
    pub(in crate::source::file) columns: Vec<String>,
    /// Bytes from the beginning of the file to the first row of data.
    pub(in crate::source::file) length: usize,
    /// Line feeds in them.
    pub(in crate::source::file) lines: u64,
}

/// What a look for a header found.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::source::file) enum HeaderFound {
    /// A header.
    Header(Header),
    /// Nothing but empty lines, and the file has ended.
    Empty,
    /// The header does not end in what is there.
    Open,
}

/// Finds the header in a file's first bytes, at most `limit` of them.
pub(in crate::source::file) fn find_header(bytes: &[u8], last: bool, limit: usize) -> Result<HeaderFound, Problem> {
    let mark = if bytes.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    let start = mark + blank_lines(bytes.get(mark..).unwrap_or_default());
    let rest = bytes.get(start..).unwrap_or_default();
    if rest.is_empty() {
        return Ok(if last { HeaderFound::Empty } else { HeaderFound::Open });
    }
    let mut rows = Rows::new();
    let length = match rows.next(rest, last) {
        Row::Whole { length, .. } => length,
        Row::Open { .. } if rest.len() >= limit => return Err(Problem { at: start, kind: ProblemKind::TooLong { limit } }),
        Row::Open { quoted: true } if last => return Err(Problem { at: start, kind: ProblemKind::OpenQuote }),
        Row::Open { .. } => return Ok(HeaderFound::Open),
    };
    let columns =
        fields(row_content(rest.get(..length).unwrap_or(rest))).map_err(|at| Problem { at: start + at, kind: ProblemKind::NotUtf8 })?;
    let end = start + length;
    Ok(HeaderFound::Header(Header { columns, length: end, lines: line_feeds(bytes.get(..end).unwrap_or(bytes)) }))
}

/// The fields of a row, as text. The error is the first byte that is not UTF-8.
fn fields(row: &[u8]) -> Result<Vec<String>, usize> {
    std::str::from_utf8(row).map_err(|error| error.valid_up_to())?;
    let mut reader = ReaderBuilder::new().terminator(Terminator::Any(b'\n')).build();
    let mut space = vec![0; row.len() + 1];
    let mut ends = vec![0; row.len() + 2];
    let (_, _, written, some) = reader.read_record(row, &mut space, &mut ends);
    // At the end of input an empty read ends the last field.
    let (_, _, _, rest) = reader.read_record(&[], space.get_mut(written..).unwrap_or_default(), ends.get_mut(some..).unwrap_or_default());
    let mut columns = Vec::new();
    let mut start = 0;
    for end in ends.iter().take(some + rest) {
        columns.push(String::from_utf8_lossy(space.get(start..*end).unwrap_or_default()).into_owned());
        start = *end;
    }
    Ok(columns)
}
