//! The sink that behaves: a transaction is the hidden file `.<label>.part`, committed it is `<label>.data`, with one line for each record.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use contract::types::{Error, Framing, Prepared, RecordBatch, Verdict};

use crate::errors;

/// The handle is the number of records as decimal digits.
pub(crate) const HANDLE_FORMAT: &str = "mirror/1";

pub(crate) struct Mirror {
    directory: PathBuf,
    open: Option<OpenTransaction>,
}

struct OpenTransaction {
    label: String,
    file: File,
    records: u64,
}

impl Mirror {
    pub(crate) fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), open: None }
    }

    pub(crate) fn begin(&mut self, label: &str) -> Result<(), Error> {
        if let Some(open) = &self.open {
            return Err(errors::broken(format!("begin of {label} while {} is open", open.label)));
        }
        if self.data(label).exists() {
            return Err(errors::conflict(format!("{label} is taken")));
        }
        let file = OpenOptions::new().write(true).create_new(true).open(self.part(label));
        let file = file.map_err(|found| match found.kind() {
            io::ErrorKind::AlreadyExists => errors::conflict(format!("{label} is taken")),
            _ => errors::from_io("begin", &found),
        })?;
        self.open = Some(OpenTransaction { label: label.to_owned(), file, records: 0 });
        Ok(())
    }

    /// Writes the first `taken` records of the batch.
    pub(crate) fn invoke(&mut self, label: &str, batch: &RecordBatch, taken: u32) -> Result<(), Error> {
        let open = self.open.as_mut().filter(|open| open.label == label);
        let open = open.ok_or_else(|| errors::broken(format!("invoke of {label}, which is not open")))?;
        open.records += u64::from(taken);
        open.file.write_all(&lines(batch, taken)?).map_err(|found| errors::from_io("write", &found))
    }

    pub(crate) fn precommit(&mut self, label: &str) -> Result<Prepared, Error> {
        let open = self.open.take_if(|open| open.label == label);
        let open = open.ok_or_else(|| errors::broken(format!("precommit of {label}, which is not open")))?;
        open.file.sync_all().and_then(|()| self.sync()).map_err(|found| errors::from_io("sync", &found))?;
        Ok(Prepared { handle: open.records.to_string().into_bytes(), records: u32::try_from(open.records).ok() })
    }

    pub(crate) fn commit(&mut self, label: &str) -> Result<Verdict, Error> {
        let verdict = match fs::rename(self.part(label), self.data(label)) {
            Ok(()) => Verdict::Committed,
            Err(found) if found.kind() == io::ErrorKind::NotFound && self.data(label).exists() => Verdict::AlreadyCommitted,
            Err(found) if found.kind() == io::ErrorKind::NotFound => return Ok(Verdict::Unknown),
            Err(found) => return Err(errors::from_io("commit", &found)),
        };
        self.sync().map_err(|found| errors::from_io("sync", &found))?;
        Ok(verdict)
    }

    pub(crate) fn abort(&mut self, label: &str) -> Result<(), Error> {
        self.open.take_if(|open| open.label == label);
        if self.data(label).exists() {
            return Err(errors::conflict(format!("{label} is committed")));
        }
        match fs::remove_file(self.part(label)) {
            Err(found) if found.kind() != io::ErrorKind::NotFound => Err(errors::from_io("abort", &found)),
            _ => Ok(()),
        }
    }

    fn part(&self, label: &str) -> PathBuf {
        self.directory.join(format!(".{label}.part"))
    }

    fn data(&self, label: &str) -> PathBuf {
        self.directory.join(format!("{label}.data"))
    }

    fn sync(&self) -> io::Result<()> {
        File::open(&self.directory)?.sync_all()
    }
}

/// The first `taken` records, each with its line feed.
fn lines(batch: &RecordBatch, taken: u32) -> Result<Vec<u8>, Error> {
    let bytes = &batch.values.bytes;
    let taken = taken as usize;
    if batch.framing == Framing::LineFeed {
        return Ok(bytes.split_inclusive(|byte| *byte == b'\n').take(taken).flatten().copied().collect());
    }
    let mut lines = Vec::with_capacity(bytes.len() + taken);
    let mut from = 0;
    for end in batch.values.ends.iter().take(taken) {
        let to = *end as usize;
        lines.extend_from_slice(bytes.get(from..to).ok_or_else(|| errors::broken("the batch's ends do not fit its bytes"))?);
        lines.push(b'\n');
        from = to;
    }
    Ok(lines)
}
