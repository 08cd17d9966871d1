//! Turns the body of one load into kept rows, counts and an error log, chunk by chunk.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use twox_hash::XxHash3_64;

use super::check::Checker;
use super::split::{Layout, SplitError, Splitter};
use super::store::{RowStore, RowWriter};
use crate::transactions::Outcome;

/// Filtered rows that an error log names; the rest is only counted.
const LOGGED_ROWS_MAX: u64 = 1_000;

/// What a body amounted to so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct RowCounts {
    pub(crate) total: u64,
    pub(crate) filtered: u64,
    pub(crate) bytes: u64,
    /// Why the first filtered row was filtered.
    pub(crate) first_error: Option<String>,
    kept: u64,
    hash: u64,
}

/// Takes a body.
pub(crate) struct Loader {
    splitter: Splitter,
    sink: RowSink,
    /// Rows held back so that the last ones can be lost.
    lose: Option<LastRows>,
}

/// Where rows go once they are cut.
struct RowSink {
    /// `None` when values are not looked at.
    checker: Option<Checker>,
    /// A CSV row may end in CR before the delimiter `\n`.
    strip_carriage_return: bool,
    /// Elements of a JSON array may span lines.
    join_lines: bool,
    writer: RowWriter,
    counts: RowCounts,
    errors: ErrorLog,
    failed: Option<io::Error>,
}

struct LastRows {
    count: usize,
    rows: std::collections::VecDeque<Vec<u8>>,
}

impl Loader {
    /// Begins with an empty file for the transaction. `lose` rows are dropped from the end.
    pub(crate) fn new(
        store: &RowStore,
        transaction: i64,
        error_log: &str,
        layout: &Layout,
        checker: Checker,
        lose: usize,
    ) -> io::Result<Self> {
        let newline = matches!(layout, Layout::Lines { delimiter, .. } if delimiter == b"\n");
        let sink = RowSink {
            checker: (!store.discards()).then_some(checker),
            strip_carriage_return: newline,
            join_lines: matches!(layout, Layout::Document { .. }),
            writer: store.create(transaction)?,
            counts: RowCounts::default(),
            errors: ErrorLog { path: store.error_log(error_log), file: None },
            failed: None,
        };
        let lose = (lose > 0).then(|| LastRows { count: lose, rows: std::collections::VecDeque::new() });
        Ok(Self { splitter: Splitter::new(layout.clone()), sink, lose })
    }

    /// Takes the next chunk of the body.
    pub(crate) fn feed(&mut self, chunk: &[u8]) -> Result<(), LoadError> {
        self.sink.counts.bytes += chunk.len() as u64;
        let Self { splitter, sink, lose } = self;
        splitter.feed(chunk, &mut |row| take(sink, lose, row))?;
        self.sink.failed.take().map_or(Ok(()), |error| Err(error.into()))
    }

    /// The body is complete: takes the last row and makes all rows durable.
    pub(crate) fn finish(mut self) -> Result<(RowCounts, Outcome), LoadError> {
        let Self { splitter, sink, lose } = &mut self;
        splitter.finish(&mut |row| take(sink, lose, row))?;
        if let Some(error) = self.sink.failed.take() {
            return Err(error.into());
        }
        self.sink.errors.finish()?;
        let RowSink { writer, counts, .. } = self.sink;
        let stored_bytes = writer.finish()?;
        let outcome = Outcome { rows: counts.kept, bytes: counts.bytes, hash: counts.hash, stored_bytes };
        Ok((counts, outcome))
    }

    /// What came in so far.
    pub(crate) fn counts(&self) -> &RowCounts {
        &self.sink.counts
    }
}

fn take(sink: &mut RowSink, lose: &mut Option<LastRows>, row: &[u8]) {
    let Some(last) = lose else { return sink.take(row) };
    last.rows.push_back(row.to_vec());
    if last.rows.len() > last.count
        && let Some(row) = last.rows.pop_front()
    {
        sink.take(&row);
    }
}

impl RowSink {
    fn take(&mut self, row: &[u8]) {
        let row = match row {
            [line @ .., b'\r'] if self.strip_carriage_return => line,
            other => other,
        };
        // Doris reads over empty lines without counting them.
        if row.is_empty() || self.failed.is_some() {
            return;
        }
        self.counts.total += 1;
        let joined = self.join_lines.then(|| join_lines(row));
        let row = joined.as_deref().unwrap_or(row);
        let result = match self.checker.as_ref().map_or(Ok(()), |checker| checker.check(row)) {
            Ok(()) => self.keep(row),
            Err(reason) => self.filter(row, reason),
        };
        self.failed = result.err();
    }

    fn keep(&mut self, row: &[u8]) -> io::Result<()> {
        self.counts.kept += 1;
        self.counts.hash = self.counts.hash.wrapping_add(XxHash3_64::oneshot(row));
        self.writer.append(row)
    }

    fn filter(&mut self, row: &[u8], reason: String) -> io::Result<()> {
        self.counts.filtered += 1;
        if self.counts.filtered <= LOGGED_ROWS_MAX {
            self.errors.append(&reason, row)?;
        }
        self.counts.first_error.get_or_insert(reason);
        Ok(())
    }
}

/// A JSON value on one line: blanks outside of strings go if there is a line end among them.
fn join_lines(row: &[u8]) -> Vec<u8> {
    if !row.contains(&b'\n') && !row.contains(&b'\r') {
        return row.to_vec();
    }
    let (mut joined, mut quoted, mut escaped) = (Vec::with_capacity(row.len()), false, false);
    for &byte in row {
        if quoted || !byte.is_ascii_whitespace() {
            joined.push(byte);
        }
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = quoted,
            b'"' => quoted = !quoted,
            _ => {}
        }
    }
    joined
}

/// The file behind `ErrorURL`; created with the first filtered row.
struct ErrorLog {
    path: PathBuf,
    file: Option<io::BufWriter<File>>,
}

impl ErrorLog {
    fn append(&mut self, reason: &str, row: &[u8]) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(io::BufWriter::new(File::create(&self.path)?)),
        };
        writeln!(file, "Reason: {reason}. src line [{}]; ", String::from_utf8_lossy(row))
    }

    fn finish(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}

/// Why a body could not be taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    #[error("[DATA_QUALITY_ERROR]{0}")]
    Split(#[from] SplitError),
    #[error("[IO_ERROR]cannot keep rows: {0}")]
    Io(#[from] io::Error),
}
