//! The transaction that is open in a writer: from `begin` over `invoke` to `precommit`.
//!
//! Its files have temporary names. At most [`BUFFER_BYTES`] are held back, to make writes large; whatever else was taken is in a file.
//! A transaction that failed is dropped, and its files stay until `abort`.

use crate::error::{During, Error};
use crate::folder::{Folder, OutputFile, write_all};
use crate::handle::Handle;
use crate::marker::FolderId;
use crate::name::{Label, Published};

/// The most bytes that wait in memory.
pub const BUFFER_BYTES: usize = 1 << 20;
/// Bytes that come in at least this many at once are not copied into the buffer but written from where they are.
const DIRECT_BYTES: usize = BUFFER_BYTES / 4;
/// The most files of a transaction: `commit` has to rename them all within one call.
pub const FILES: u32 = 10_000;

/// The open transaction.
pub struct Transaction<F: Folder> {
    label: Label,
    folder_id: FolderId,
    published: Published,
    /// What every file begins with.
    header: Vec<u8>,
    roll_bytes: Option<u64>,
    /// The file that is written; none between two files.
    current: Option<Output<F::File>>,
    /// The sizes of the files that are complete and synced.
    complete: Vec<u64>,
    records: u64,
}

struct Output<T> {
    name: String,
    file: T,
    /// Bytes in the file.
    written: u64,
    /// Bytes taken and not yet in the file.
    buffer: Vec<u8>,
}

impl<F: Folder> Transaction<F> {
    /// Claims the label with an empty file of its temporary name.
    pub fn begin(
        folder: &F,
        label: Label,
        folder_id: FolderId,
        published: Published,
        header: Vec<u8>,
        roll_bytes: Option<u64>,
    ) -> Result<Self, Error> {
        let mut transaction = Self { label, folder_id, published, header, roll_bytes, current: None, complete: Vec::new(), records: 0 };
        transaction.next_file(folder)?;
        Ok(transaction)
    }

    /// The label.
    pub fn label(&self) -> &Label {
        &self.label
    }

    /// Takes bytes; they are in a file or in the buffer.
    pub fn append(&mut self, folder: &F, bytes: &[u8]) -> Result<(), Error> {
        let output = match &mut self.current {
            Some(output) => output,
            None => self.next_file(folder)?,
        };
        output.append(bytes)
    }

    /// Counts the records of a batch whose bytes were taken, and ends the file if it is large enough. Files end between batches, because
    /// where records end inside one is not known.
    pub fn end_batch(&mut self, records: u64) -> Result<(), Error> {
        self.records += records;
        match (&self.current, self.roll_bytes) {
            (Some(output), Some(limit)) if output.size() >= limit => self.complete_file(),
            _ => Ok(()),
        }
    }

    /// Makes the files survive a crash under their temporary names, and says what `commit` needs and how many records there are.
    pub fn precommit(mut self, folder: &F) -> Result<(Handle, u64), Error> {
        self.complete_file()?;
        folder.sync().during(|| "sync the folder".to_owned())?;
        self.check_names(folder)?;
        let handle = Handle {
            folder: self.folder_id,
            published: self.published,
            // `next_file` keeps the number within FILES.
            files: u32::try_from(self.complete.len()).map_err(|_| Error::TooManyFiles { limit: FILES })?,
            bytes: self.complete.iter().sum(),
        };
        Ok((handle, self.records))
    }

    /// An open file takes writes also when its name is gone; but a name that is missing at `commit` means "committed". So a name that
    /// something removed meanwhile is noticed here, where the records can still be read again.
    fn check_names(&self, folder: &F) -> Result<(), Error> {
        for (number, &written) in (0..).zip(&self.complete) {
            let name = self.label.temporary(number);
            let found = folder.size(&name).during(|| format!("look at {name}"))?;
            if found != Some(written) {
                return Err(Error::Disturbed { name });
            }
        }
        Ok(())
    }

    fn next_file(&mut self, folder: &F) -> Result<&mut Output<F::File>, Error> {
        let number = u32::try_from(self.complete.len()).ok().filter(|&number| number < FILES);
        let name = self.label.temporary(number.ok_or(Error::TooManyFiles { limit: FILES })?);
        let file = match folder.create(&name) {
            Err(fault) if fault.cause == crate::folder::Cause::Exists => {
                return Err(Error::Taken { label: self.label.clone(), name });
            }
            created => created.during(|| format!("create {name}"))?,
        };
        let output = self.current.insert(Output { name, file, written: 0, buffer: Vec::new() });
        output.append(&self.header)?;
        Ok(output)
    }

    fn complete_file(&mut self) -> Result<(), Error> {
        if let Some(mut output) = self.current.take() {
            output.flush()?;
            output.file.sync().during(|| format!("sync {}", output.name))?;
            self.complete.push(output.written);
        }
        Ok(())
    }
}

impl<T: OutputFile> Output<T> {
    fn size(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if self.buffer.len() + bytes.len() > BUFFER_BYTES || bytes.len() >= DIRECT_BYTES {
            self.flush()?;
        }
        if bytes.len() >= DIRECT_BYTES {
            return self.write(bytes);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        let buffer = std::mem::take(&mut self.buffer);
        self.write(&buffer)?;
        self.buffer = buffer;
        self.buffer.clear();
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        write_all(&mut self.file, bytes, self.written).during(|| format!("write {}", self.name))?;
        self.written += bytes.len() as u64;
        Ok(())
    }
}
