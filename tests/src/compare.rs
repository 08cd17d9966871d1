//! Comparison by content: which records are missing at a target, and which are there more than once.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader};
use std::path::Path;

/// Records as a multiset. Each is kept as two independent 64-bit hashes, so that millions fit.
pub struct Records {
    hashers: (RandomState, RandomState),
    counts: HashMap<(u64, u64), u64>,
    total: u64,
}

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} records", self.total)
    }
}

/// What a target shows, held against what was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Records found at the target.
    pub found: u64,
    /// Records that were read and are not there, or not often enough.
    pub missing: u64,
    /// Records that are there and were never read, or are there too often.
    pub duplicated: u64,
}

impl Default for Records {
    fn default() -> Self {
        Self { hashers: (RandomState::new(), RandomState::new()), counts: HashMap::new(), total: 0 }
    }
}

impl Records {
    /// An empty set that can be compared with this one.
    #[must_use]
    pub fn same_hashes(&self) -> Self {
        Self { hashers: self.hashers.clone(), counts: HashMap::new(), total: 0 }
    }

    /// Adds one record, without its line feed.
    pub fn add(&mut self, record: &[u8]) {
        let key = (self.hashers.0.hash_one(record), self.hashers.1.hash_one(record));
        *self.counts.entry(key).or_default() += 1;
        self.total += 1;
    }

    /// Adds every line.
    pub fn add_lines(&mut self, lines: impl BufRead) {
        for line in lines.split(b'\n') {
            self.add(&line.unwrap());
        }
    }

    /// Adds the lines of every file in a folder that readers may look at: those without a leading dot. With `header`, each begins with that line.
    pub fn add_folder(&mut self, folder: &Path, header: Option<&[u8]>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let mut lines = BufReader::new(File::open(entry.path()).unwrap());
            if let Some(header) = header {
                let mut first = Vec::new();
                lines.read_until(b'\n', &mut first).unwrap();
                assert_eq!(first.strip_suffix(b"\n"), Some(header), "{} does not begin with the header", entry.path().display());
            }
            self.add_lines(lines);
        }
    }

    /// How many.
    pub fn len(&self) -> u64 {
        self.total
    }

    /// None at all?
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Holds what a target shows against this set, which was read.
    pub fn compare(&self, shown: &Self) -> Comparison {
        let mut comparison = Comparison { found: shown.total, ..Comparison::default() };
        for (key, read) in &self.counts {
            comparison.missing += read.saturating_sub(shown.counts.get(key).copied().unwrap_or_default());
        }
        for (key, found) in &shown.counts {
            comparison.duplicated += found.saturating_sub(self.counts.get(key).copied().unwrap_or_default());
        }
        comparison
    }
}

/// Files whose name begins with a dot and that are not a folder's marker: what an unfinished transaction leaves.
pub fn temporary_files(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with('.') && name.contains("-g")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_a_doubled_and_a_foreign_record_are_told_apart() {
        let mut read = Records::default();
        read.add_lines(&b"a\nb\nc\n"[..]);
        let mut shown = read.same_hashes();
        shown.add_lines(&b"a\na\nc\nx\n"[..]);
        assert_eq!(read.compare(&shown), Comparison { found: 4, missing: 1, duplicated: 2 });
        assert_eq!(read.compare(&read), Comparison { found: 3, missing: 0, duplicated: 0 });
    }
}
