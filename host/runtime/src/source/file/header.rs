//! The header of CSV files: found in a file's first bytes, and the same in all of them.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;

use super::blocks::{Blocks, Compression, Fetched};
use super::cut::{Header, HeaderFound, Problem, ProblemKind, find_header};
use crate::source::{SourceError, codes};

/// Reads the header of a file. `None`: it is not written to its end yet, or the file holds none.
pub(super) fn read_header(path: &Path, limit: usize, grows: bool) -> Result<Option<Header>, SourceError> {
    let unreadable = |error: &std::io::Error| SourceError::io(codes::UNREADABLE, &format!("cannot read {}", path.display()), error);
    let file = File::open(path).map_err(|error| unreadable(&error))?;
    let mut blocks = Blocks::open(path.to_owned(), file, Compression::of(path), None).map_err(|error| unreadable(&error))?;
    loop {
        let ended = match blocks.fetch().map_err(|error| unreadable(&error))? {
            Fetched::More { .. } => false,
            Fetched::Nothing { .. } | Fetched::Replaced { .. } => true,
            Fetched::Broken(error) => return Err(broken(path, &error)),
        };
        let found = find_header(blocks.buffer.window(), ended && !grows, limit).map_err(|problem| explain(path, &problem))?;
        match found {
            HeaderFound::Header(header) => return usable(header, path).map(Some),
            HeaderFound::Empty => return Ok(None),
            HeaderFound::Open if ended => return Ok(None),
            HeaderFound::Open => {}
        }
    }
}

/// Refuses a header whose columns cannot be told apart.
pub(super) fn usable(header: Header, path: &Path) -> Result<Header, SourceError> {
    let mut names = BTreeSet::new();
    for name in &header.columns {
        if !names.insert(name) {
            return Err(SourceError::stop(
                codes::CSV_HEADER,
                format!("{}: the header names the column `{name}` twice. {}", path.display(), codes::CSV_HEADER.remedy),
            ));
        }
    }
    Ok(header)
}

/// Refuses a header that is not the one of the other files.
pub(super) fn check_same(header: &Header, expected: &[String], path: &Path) -> Result<(), SourceError> {
    if header.columns == expected {
        return Ok(());
    }
    Err(SourceError::stop(
        codes::CSV_HEADER,
        format!(
            "{}: the header is `{}`, and that of the first file is `{}`. {}",
            path.display(),
            header.columns.join(","),
            expected.join(","),
            codes::CSV_HEADER.remedy
        ),
    ))
}

/// What is wrong with a header.
pub(super) fn explain(path: &Path, problem: &Problem) -> SourceError {
    let (code, what) = match &problem.kind {
        ProblemKind::NotUtf8 => (codes::BAD_UTF8, "the header is not UTF-8".to_owned()),
        ProblemKind::OpenQuote => (codes::CSV_QUOTE, "the header has a quote that is not closed before the file ends".to_owned()),
        ProblemKind::TooLong { limit } => (
            codes::RECORD_TOO_LONG,
            format!("the header is longer than {limit} bytes, the limit given by `max_record_bytes`, or a quote is never closed"),
        ),
        ProblemKind::NotJson { why } => (codes::CSV_HEADER, why.clone()),
        ProblemKind::Fields { found, expected } => (codes::CSV_HEADER, format!("the header has {found} fields, not {expected}")),
    };
    SourceError::stop(code, format!("{}, line 1, byte {}: {what}. {}", path.display(), problem.at, code.remedy))
}

/// A compressed file that is not whole.
pub(super) fn broken(path: &Path, error: &std::io::Error) -> SourceError {
    let code = codes::COMPRESSED_BROKEN;
    SourceError::stop(code, format!("{} cannot be decompressed: {error}. {}", path.display(), code.remedy))
}
