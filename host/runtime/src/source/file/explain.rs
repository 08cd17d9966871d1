//! What is wrong with a file, for people: the file, the line, the record, the byte, and what to do.

use std::io;
use std::ops::Range;

use super::config::{FileFormat, FileSourceConfig};
use super::cut::{Problem, ProblemKind};
use super::place::Place;
use crate::source::SourceError;
use crate::source::codes::{self, Code};

/// What cannot be cut into records. The window begins at the place.
pub(super) fn problem(problem: &Problem, place: &Place, window: &[u8], config: &FileSourceConfig) -> SourceError {
    let before = window.get(..problem.at).unwrap_or(window);
    let line = place.line + memchr::memchr_iter(b'\n', before).count() as u64 + 1;
    let byte = place.offset + problem.at as u64;
    let (code, what) = match &problem.kind {
        ProblemKind::TooLong { limit } => {
            let by = if *limit < config.max_record() { "the largest batch that the pipeline's sinks take" } else { "`max_record_bytes`" };
            let or = if config.format == FileFormat::Csv { ", or it has a quote that is never closed" } else { "" };
            (codes::RECORD_TOO_LONG, format!("the record that begins here is longer than {limit} bytes, the limit given by {by}{or}"))
        }
        ProblemKind::NotUtf8 => (codes::BAD_UTF8, "this byte is not UTF-8, and JSON is promised".to_owned()),
        ProblemKind::NotJson { why } => (codes::BAD_JSON, format!("the line is not one JSON value: {why}")),
        ProblemKind::Fields { found, expected } => {
            let many = if found < expected { "too few" } else { "too many" };
            (codes::CSV_FIELDS, format!("the row that begins here has {many} fields: {found}, and the header has {expected}"))
        }
        ProblemKind::OpenQuote => {
            (codes::CSV_QUOTE, "the row that begins here has a quote that is not closed before the file ends".to_owned())
        }
    };
    SourceError::stop(code, format!("{}, line {line}, byte {byte}: {what}. {}", place.path, code.remedy))
}

/// Bytes that were there, have not been read, and cannot be read any more.
pub(super) fn unread(code: Code, what: &str, place: &Place, range: Range<u64>) -> SourceError {
    let Place { path, record, .. } = place;
    let Range { start, end } = range;
    let missing = if end > start {
        format!("bytes {start} to {end}, from record {record} on, were there")
    } else {
        "what it held is gone".to_owned()
    };
    SourceError::stop(code, format!("{path} {what}: {missing} and cannot be read any more. {}", code.remedy))
}

/// A line that grew after it was taken as the last.
pub(super) fn line_went_on(place: &Place) -> SourceError {
    let code = codes::CHANGED;
    let last = place.record.saturating_sub(1);
    SourceError::stop(
        code,
        format!(
            "{} goes on at byte {} within the line that was taken as its last, record {last}. {}",
            place.path, place.offset, code.remedy
        ),
    )
}

/// A compressed file that is not whole.
pub(super) fn broken(place: &Place, error: &io::Error) -> SourceError {
    let code = codes::COMPRESSED_BROKEN;
    SourceError::stop(
        code,
        format!(
            "{} cannot be decompressed after byte {} of its contents, record {}: {error}. {}",
            place.path, place.offset, place.record, code.remedy
        ),
    )
}
