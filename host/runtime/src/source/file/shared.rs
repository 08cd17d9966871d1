//! What a file source and its readers have in common.

use std::path::{Path, PathBuf};

use glob::{MatchOptions, Pattern};
use weir_protocol::SplitId;

use super::config::{FileFormat, FileSourceConfig};
use super::memory::Progress;
use super::place::Place;
use crate::source::{SourceError, codes};

/// How the pattern is compared: a star stops at a folder's end, and hidden files are left alone.
const MATCHING: MatchOptions = MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

/// What a file source and its readers have in common.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    pub(super) config: FileSourceConfig,
    /// The pattern, absolute.
    pub(super) pattern: String,
    /// The columns of a CSV source, once they are known.
    pub(super) columns: Vec<String>,
    pub(super) progress: Progress,
}

impl Shared {
    pub(super) fn new(config: FileSourceConfig, folder: &Path) -> Result<Self, SourceError> {
        let bad = |why: String| {
            SourceError::stop(
                codes::BAD_PATTERN,
                format!("the pattern `{}` of a file source is not one: {why}. {}", config.path, codes::BAD_PATTERN.remedy),
            )
        };
        let folder = std::path::absolute(folder).map_err(|error| bad(error.to_string()))?;
        let base = folder.to_str().ok_or_else(|| bad(format!("its folder {} is not UTF-8", folder.display())))?;
        let pattern =
            if Path::new(&config.path).is_absolute() { config.path.clone() } else { format!("{}/{}", Pattern::escape(base), config.path) };
        Pattern::new(&pattern).map_err(|error| bad(error.to_string()))?;
        Ok(Self { config, pattern, columns: Vec::new(), progress: Progress::default() })
    }

    /// The files that the pattern names now, in the order of their names.
    pub(super) fn paths(&self) -> Result<Vec<PathBuf>, SourceError> {
        let listed = glob::glob_with(&self.pattern, MATCHING).map_err(|error| SourceError::stop(codes::BAD_PATTERN, error.to_string()))?;
        let mut paths = Vec::new();
        for path in listed {
            match path {
                Ok(path) => paths.push(path),
                // A folder that went away since it was listed has no files.
                Err(error) if error.error().kind() == std::io::ErrorKind::NotFound && self.config.follow => {}
                Err(error) => {
                    return Err(SourceError::io(codes::UNREADABLE, &format!("cannot list {}", error.path().display()), error.error()));
                }
            }
        }
        Ok(paths)
    }

    /// The largest size that a split's file was seen to have by anybody, given what a position says.
    pub(super) fn largest_size(&self, split: &SplitId, place: &Place) -> u64 {
        let found = self.config.memory.of(split).map_or(0, |found| found.largest);
        if place.compressed { place.seen } else { place.seen.max(found) }
    }

    /// Was everything read that a split's file was ever seen to hold?
    pub(super) fn read_to_the_end(&self, split: &SplitId, place: &Place) -> bool {
        place.read_to_the_end() && (place.compressed || place.offset >= self.largest_size(split, place))
    }

    pub(super) fn abandoned(&self, split: &SplitId) -> bool {
        self.config.abandon.iter().any(|given_up| given_up == split.as_str())
    }

    pub(super) fn is_csv(&self) -> bool {
        self.config.format == FileFormat::Csv
    }
}
