//! The append-only file behind every promise: one JSON record a line, synced before the promise is made.
//!
//! Records are whole snapshots, so replaying is "the last one wins". PREPARE transactions are not in it, as they are
//! not in Doris's edit log: a restart loses them.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::EmulatorError;
use crate::types::{TableSpec, Transaction};

/// One durable fact.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Record {
    /// A table exists; the numbers are the ids of its database and of itself.
    Table { spec: TableSpec, db_id: i64, table_id: i64 },
    /// A table is gone.
    DropTable { db: String, table: String },
    /// Ids below this may have been given away.
    Ids(i64),
    /// The clock is this far ahead of the machine's.
    Clock(u64),
    /// The transaction's state from here on; never PREPARE.
    Transaction(Box<Transaction>),
    /// Transactions that are not remembered any more.
    Forget { db: String, ids: Vec<i64> },
}

/// The open journal.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    path: PathBuf,
}

impl Journal {
    /// Opens or creates the journal in the data folder and returns its records. A torn last line, which is all that a
    /// kill can leave, is cut off: nothing that it says was promised.
    pub(crate) fn open(data: &Path) -> Result<(Self, Vec<Record>), EmulatorError> {
        let path = data.join("journal.jsonl");
        let mut options = OpenOptions::new();
        let file = options.read(true).append(true).create(true).open(&path);
        let file = file.map_err(EmulatorError::file("open", &path))?;
        let (records, whole) = read(&file, &path)?;
        file.set_len(whole).map_err(EmulatorError::file("cut", &path))?;
        file.sync_all().map_err(EmulatorError::file("sync", &path))?;
        sync_folder(data)?;
        Ok((Self { file, path }, records))
    }

    /// Appends records and returns once they are on disk.
    pub(crate) fn append(&mut self, records: &[Record]) -> Result<(), EmulatorError> {
        if records.is_empty() {
            return Ok(());
        }
        let mut lines = Vec::new();
        for record in records {
            serde_json::to_writer(&mut lines, record).map_err(|source| EmulatorError::Journal {
                path: self.path.clone(),
                offset: 0,
                source,
            })?;
            lines.push(b'\n');
        }
        self.file.write_all(&lines).map_err(EmulatorError::file("append to", &self.path))?;
        self.file.sync_data().map_err(EmulatorError::file("sync", &self.path))
    }
}

/// Reads all whole records and says how many bytes they take.
fn read(file: &File, path: &Path) -> Result<(Vec<Record>, u64), EmulatorError> {
    let mut reader = BufReader::new(file);
    let (mut records, mut whole, mut line) = (Vec::new(), 0_u64, Vec::new());
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line).map_err(EmulatorError::file("read", path))?;
        if read == 0 || line.last() != Some(&b'\n') {
            return Ok((records, whole));
        }
        match serde_json::from_slice(&line) {
            Ok(record) => records.push(record),
            // A file system may tear a line in its middle and still show its end; only the last line can be torn.
            Err(_) if reader.fill_buf().map_err(EmulatorError::file("read", path))?.is_empty() => {
                return Ok((records, whole));
            }
            Err(source) => return Err(EmulatorError::Journal { path: path.to_owned(), offset: whole, source }),
        }
        whole += read as u64;
    }
}

/// Makes names created or removed in a folder durable.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), EmulatorError> {
    let opened = File::open(folder).map_err(EmulatorError::file("open", folder))?;
    opened.sync_all().map_err(EmulatorError::file("sync", folder))
}
