//! The sink: an instance with its config, its folder and the transaction that is open.

use crate::batch::{self, Batch, Format, Rejection};
use crate::config::Config;
use crate::error::{During, Error};
use crate::folder::Folder;
use crate::handle::Handle;
use crate::marker;
use crate::name::{Extension, Label, Published};
use crate::settle::{self, Verdict};
use crate::transaction::Transaction;

/// The contract's `role`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Begins, invokes, precommits, aborts.
    Writer,
    /// Commits, aborts.
    Committer,
    /// Is asked once, and writes nothing.
    Probe,
}

/// Records that are ready to be committed.
#[derive(Debug, PartialEq, Eq)]
pub struct Prepared {
    /// For `commit`.
    pub handle: Vec<u8>,
    /// How many records the files have, if that fits the contract's number.
    pub records: Option<u32>,
}

/// One instance.
pub struct Sink<F: Folder> {
    config: Config,
    format: Format,
    role: Role,
    folder: F,
    published: Published,
    header: Vec<u8>,
    transaction: Option<Transaction<F>>,
}

impl<F: Folder> Sink<F> {
    /// Takes the config and the opened folder. Changes nothing in it. `random` names the file that a probe looks for in vain.
    pub fn open(config: Config, format: Format, columns: &[String], role: Role, folder: F, random: [u8; 16]) -> Result<Self, Error> {
        let by_format = || Extension::parse(format.extension()).ok_or_else(|| Error::Config("extension".to_owned()));
        let published = Published {
            prefix: config.prefix.clone(),
            extension: config.extension.clone().map_or_else(by_format, Ok)?,
            numbered: config.roll_bytes.is_some(),
        };
        let with_header = config.header && format == Format::Csv && !columns.is_empty();
        let header = if with_header { batch::header_line(columns) } else { Vec::new() };
        let sink = Self { config, format, role, folder, published, header, transaction: None };
        if role == Role::Probe {
            sink.probe(random)?;
        }
        Ok(sink)
    }

    fn probe(&self, random: [u8; 16]) -> Result<(), Error> {
        let marker = marker::read(&self.folder)?.map(|_| marker::NAME);
        let absent = format!("{}.{}.probe", marker::NAME, marker::FolderId::new(random).as_str());
        self.folder
            .check_changeable(&absent, marker)
            .map_err(|fault| Error::NotWritable { directory: self.config.directory.clone(), fault })
    }

    /// Begins a transaction; `random` becomes the folder's id if it has none.
    pub fn begin(&mut self, label: &str, random: [u8; 16]) -> Result<(), Error> {
        self.expect(Role::Writer, "begin")?;
        let label = parse(label)?;
        if let Some(open) = &self.transaction {
            return Err(Error::Contract(format!("begin of {label} while {} is open", open.label())));
        }
        self.check_not_published(&label)?;
        let folder_id = marker::ensure(&self.folder, random)?;
        let (published, header) = (self.published.clone(), self.header.clone());
        self.transaction = Some(Transaction::begin(&self.folder, label, folder_id, published, header, self.config.roll_bytes)?);
        Ok(())
    }

    /// Takes the records of a batch and returns those that it cannot take.
    pub fn invoke(&mut self, label: &str, batch: Batch<'_>) -> Result<Vec<Rejection>, Error> {
        let mut transaction = self.take(label, "invoke")?;
        let rejections = batch::write(batch, self.format, self.config.separator, |bytes| transaction.append(&self.folder, bytes))?;
        transaction.end_batch(u64::from(batch.count).saturating_sub(rejections.len() as u64))?;
        // After an error the transaction is gone: what was written of the batch is not known any more.
        self.transaction = Some(transaction);
        Ok(rejections)
    }

    /// Ends the writing; afterwards nothing of the transaction is in memory.
    pub fn precommit(&mut self, label: &str) -> Result<Prepared, Error> {
        let (handle, records) = self.take(label, "precommit")?.precommit(&self.folder)?;
        Ok(Prepared { handle: handle.to_bytes()?, records: u32::try_from(records).ok() })
    }

    /// Makes a prepared transaction visible.
    pub fn commit(&mut self, label: &str, handle: &[u8]) -> Result<Verdict, Error> {
        self.expect(Role::Committer, "commit")?;
        settle::commit(&self.folder, &self.config.directory, &parse(label)?, &Handle::parse(handle)?)
    }

    /// Makes sure that a transaction never becomes visible.
    pub fn abort(&mut self, label: &str) -> Result<(), Error> {
        if self.role == Role::Probe {
            return Err(Error::Contract("abort in a probe".to_owned()));
        }
        let label = parse(label)?;
        self.transaction.take_if(|open| *open.label() == label);
        settle::abort(&self.folder, &self.config.prefix, &label)
    }

    fn check_not_published(&self, label: &Label) -> Result<(), Error> {
        for numbered in [false, true] {
            let name = Published { numbered, ..self.published.clone() }.name(label, 0);
            if self.folder.size(&name).during(|| format!("look at {name}"))?.is_some() {
                return Err(Error::Taken { label: label.clone(), name });
            }
        }
        Ok(())
    }

    fn take(&mut self, label: &str, call: &str) -> Result<Transaction<F>, Error> {
        self.expect(Role::Writer, call)?;
        self.transaction
            .take_if(|open| parse(label).is_ok_and(|label| *open.label() == label))
            .ok_or_else(|| Error::Contract(format!("{call} of {label:?}, which is not open here")))
    }

    fn expect(&self, role: Role, call: &str) -> Result<(), Error> {
        if self.role == role { Ok(()) } else { Err(Error::Contract(format!("{call} in a {:?}", self.role))) }
    }
}

fn parse(label: &str) -> Result<Label, Error> {
    Label::parse(label).ok_or_else(|| Error::Contract(format!("{label:?} is no label")))
}
