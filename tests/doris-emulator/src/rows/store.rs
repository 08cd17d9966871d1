//! Rows on disk: one file a transaction, each row as a 32-bit little-endian length and its bytes as sent.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use crate::error::EmulatorError;

/// Bytes gathered before they are written; keeps memory flat whatever the size of a body.
const WRITE_BUFFER_BYTES: usize = 256 << 10;

/// The folder with the files of rows and, beside it, error logs and held bodies.
#[derive(Debug)]
pub(crate) struct RowStore {
    rows: PathBuf,
    errors: PathBuf,
    held: PathBuf,
    discard: bool,
}

impl RowStore {
    /// Opens the folders, creating them where needed. Held bodies of an earlier run are dropped: like a request on a
    /// wire that broke, they promised nothing.
    pub(crate) fn open(data: &Path, discard: bool) -> Result<Self, EmulatorError> {
        let store = Self { rows: data.join("rows"), errors: data.join("errors"), held: data.join("held"), discard };
        if store.held.exists() {
            fs::remove_dir_all(&store.held).map_err(EmulatorError::file("remove", &store.held))?;
        }
        for folder in [&store.rows, &store.errors, &store.held] {
            fs::create_dir_all(folder).map_err(EmulatorError::file("create", folder))?;
        }
        Ok(store)
    }

    /// Whether rows are only counted.
    pub(crate) fn discards(&self) -> bool {
        self.discard
    }

    /// Begins a transaction's file.
    pub(crate) fn create(&self, transaction: i64) -> io::Result<RowWriter> {
        if self.discard {
            return Ok(RowWriter { file: None, folder: self.rows.clone(), written: 0 });
        }
        let file = BufWriter::with_capacity(WRITE_BUFFER_BYTES, File::create(self.path(transaction))?);
        Ok(RowWriter { file: Some(file), folder: self.rows.clone(), written: 0 })
    }

    /// Opens a transaction's rows for reading, up to the bytes that were promised.
    pub(crate) fn read(&self, transaction: i64, stored_bytes: u64) -> io::Result<RowReader> {
        let file = File::open(self.path(transaction))?;
        Ok(RowReader { file: BufReader::with_capacity(WRITE_BUFFER_BYTES, file.take(stored_bytes)) })
    }

    /// Removes the rows of a transaction that will never be visible. A file that stays is removed at the next start.
    pub(crate) fn remove(&self, transaction: i64) {
        let path = self.path(transaction);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(path = %path.display(), %error, "cannot remove rows");
            }
            _ => {}
        }
    }

    /// Checks that every promised file is there in full, and removes all others.
    pub(crate) fn keep_only(&self, promised: &BTreeMap<i64, u64>) -> Result<(), EmulatorError> {
        for (&transaction, &expected) in promised.iter().filter(|&(_, &bytes)| bytes > 0) {
            let path = self.path(transaction);
            let found = fs::metadata(&path).map(|meta| meta.len()).unwrap_or(0);
            if found < expected {
                return Err(EmulatorError::Rows { transaction, path, expected, found });
            }
        }
        let entries = fs::read_dir(&self.rows).map_err(EmulatorError::file("list", &self.rows))?;
        for entry in entries {
            let path = entry.map_err(EmulatorError::file("list", &self.rows))?.path();
            let id = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse::<i64>().ok());
            if id.is_none_or(|id| !promised.contains_key(&id)) {
                fs::remove_file(&path).map_err(EmulatorError::file("remove", &path))?;
            }
        }
        Ok(())
    }

    /// Where the error log with this name is.
    pub(crate) fn error_log(&self, name: &str) -> PathBuf {
        self.errors.join(name)
    }

    /// Where the body of a held request is gathered.
    pub(crate) fn held_body(&self, id: u64) -> PathBuf {
        self.held.join(format!("{id}.body"))
    }

    fn path(&self, transaction: i64) -> PathBuf {
        self.rows.join(format!("{transaction}.rows"))
    }
}

/// A transaction's file while its body streams in.
#[derive(Debug)]
pub(crate) struct RowWriter {
    file: Option<BufWriter<File>>,
    folder: PathBuf,
    written: u64,
}

impl RowWriter {
    /// Appends one row.
    pub(crate) fn append(&mut self, row: &[u8]) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let length = u32::try_from(row.len()).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
        file.write_all(&length.to_le_bytes())?;
        file.write_all(row)?;
        self.written += 4 + u64::from(length);
        Ok(())
    }

    /// Makes the rows durable, name included, and says how many bytes they take.
    pub(crate) fn finish(self) -> io::Result<u64> {
        let Some(file) = self.file else { return Ok(0) };
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        File::open(&self.folder)?.sync_all()?;
        Ok(self.written)
    }
}

/// Reads a transaction's rows in the order they were sent.
#[derive(Debug)]
pub(crate) struct RowReader {
    file: BufReader<io::Take<File>>,
}

impl RowReader {
    /// Reads the next row into `row`; false after the last.
    pub(crate) fn next(&mut self, row: &mut Vec<u8>) -> io::Result<bool> {
        let mut length = [0_u8; 4];
        match self.file.read_exact(&mut length) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            other => other?,
        }
        row.clear();
        let length = u64::from(u32::from_le_bytes(length));
        let read = (&mut self.file).take(length).read_to_end(row)?;
        if read as u64 == length { Ok(true) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}
