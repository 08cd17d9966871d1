//! Whole files, through the source as a driver uses it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod bad_input;
mod compressed;
mod follow;
mod histories;
mod incarnations;
mod many;
mod reading;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;
use tokio::time::timeout;
use weir_engine::Batch;
use weir_protocol::{Position, Positions, SplitId};

use super::{FileFormat, FileSource, FileSourceConfig};
use crate::source::codes::{self, Code};
use crate::source::{BatchLimits, Read, Source, SourceError, SplitReader};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);
const LIMITS: BatchLimits = BatchLimits { bytes: 1024 * 1024, records: 65_536, ends: false };

/// A folder with files, and what a ledger would know of them.
struct Folder {
    dir: TempDir,
    config: FileSourceConfig,
    limits: BatchLimits,
    /// What is decided.
    known: Positions,
}

/// A source that is being read, as a driver does.
struct Run {
    source: FileSource,
    limits: BatchLimits,
    /// Where each split stands, decided or not.
    positions: Positions,
    readers: BTreeMap<SplitId, Box<dyn SplitReader>>,
}

/// The records of each split, by number.
type Records = BTreeMap<(SplitId, u64), Vec<u8>>;

impl Folder {
    fn new(format: FileFormat) -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { dir, config: FileSourceConfig::new("in*", format), limits: LIMITS, known: Positions::new() }
    }

    fn followed(format: FileFormat) -> Self {
        let mut folder = Self::new(format);
        folder.config = folder.config.followed();
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).unwrap();
    }

    fn append(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::OpenOptions::new().append(true).open(self.path(name)).unwrap().write_all(bytes.as_ref()).unwrap();
    }

    fn rename(&self, from: &str, to: &str) {
        fs::rename(self.path(from), self.path(to)).unwrap();
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.path(name)).unwrap();
    }

    /// A new generation: everything that was read and not decided is forgotten.
    async fn start(&self) -> Result<Run, SourceError> {
        let mut source = FileSource::new(self.config.clone(), self.dir.path())?;
        timeout(PATIENCE, source.prepare()).await.unwrap()?;
        Ok(Run { source, limits: self.limits, positions: self.known.clone(), readers: BTreeMap::new() })
    }

    /// Reads all there is and decides it.
    async fn read(&mut self) -> Result<Vec<String>, SourceError> {
        let mut run = self.start().await?;
        let records = run.read(&self.known).await?;
        self.decide(&run);
        Ok(texts(&records))
    }

    async fn refused(&mut self) -> SourceError {
        match self.read().await {
            Ok(records) => panic!("expected an error, read {records:?}"),
            Err(error) => error,
        }
    }

    fn decide(&mut self, run: &Run) {
        self.known = run.positions.clone();
    }
}

impl Run {
    /// Reads everything that is there now.
    async fn read(&mut self, known: &Positions) -> Result<Records, SourceError> {
        let mut records = Records::new();
        for split in timeout(PATIENCE, self.source.discover(known)).await.unwrap()? {
            self.read_split(&split, &mut records).await?;
        }
        Ok(records)
    }

    async fn read_split(&mut self, split: &SplitId, records: &mut Records) -> Result<(), SourceError> {
        let mut reader = match self.readers.remove(split) {
            Some(reader) => reader,
            None => self.source.open(split, self.positions.get(split)).await?,
        };
        loop {
            let read = timeout(PATIENCE, reader.read(&self.limits)).await.unwrap()?;
            self.positions.insert(split.clone(), reader.position());
            match read {
                Read::Batch(batch) => collect(&batch, records),
                Read::Idle => {
                    self.readers.insert(split.clone(), reader);
                    return Ok(());
                }
                Read::End => return Ok(()),
            }
        }
    }

    async fn changed(&self) {
        timeout(PATIENCE, self.source.changed()).await.unwrap().unwrap();
    }
}

/// Takes a batch apart, and checks that it is what it says.
fn collect(batch: &Batch, records: &mut Records) {
    let feeds: Vec<u32> = memchr::memchr_iter(b'\n', &batch.bytes).map(|feed| feed as u32 + 1).collect();
    let ends = batch.ends.as_deref().unwrap_or(&feeds);
    assert_eq!(ends.len(), batch.count as usize);
    assert_eq!(ends.last().copied().unwrap() as usize, batch.bytes.len());
    let mut start = 0;
    for (index, end) in ends.iter().enumerate() {
        let record = batch.bytes.slice(start..*end as usize);
        let record = record.strip_suffix(b"\n").expect("a line feed behind every record");
        let twice = records.insert((batch.split.clone(), batch.first + index as u64), record.to_vec());
        assert!(twice.is_none(), "one number twice");
        start = *end as usize;
    }
}

fn texts(records: &Records) -> Vec<String> {
    records.values().map(|record| String::from_utf8_lossy(record).into_owned()).collect()
}

#[track_caller]
fn assert_error(error: &SourceError, code: Code, parts: &[&str]) {
    assert_eq!(error.code, code.text, "{error}");
    for part in parts {
        assert!(error.message.contains(part), "`{part}` is not in: {error}");
    }
}

fn place(position: &Position) -> serde_json::Value {
    serde_json::from_slice(&position.0).unwrap()
}
