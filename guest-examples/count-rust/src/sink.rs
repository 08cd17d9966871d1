//! What each call of the contract does for a count.

use crate::bindings::weir::sink::types::{Error, Prepared, Profile, RecordBatch, Rejection, Setup, Verdict};
use crate::config::Config;
use crate::error;
use crate::folder::Folder;

/// The handle is the count as decimal digits. Another form of handle gets another name.
pub(crate) const HANDLE_FORMAT: &str = "count/1";

pub(crate) struct Sink {
    folder: Folder,
    /// Between `begin` and `precommit`.
    open: Option<OpenTransaction>,
}

struct OpenTransaction {
    label: String,
    records: u64,
}

impl Sink {
    /// Writers, committers and probes need the same: a folder that is there.
    pub(crate) fn open(setup: &Setup) -> Result<(Self, Profile), Error> {
        let config = Config::parse(&setup.config)?;
        let folder = Folder::open(&config.directory)?;
        let profile = Profile {
            target: format!("folder {}", config.directory),
            // Counting needs no record's bytes, so no column is asked for beyond what a batch always has.
            ends: false,
            keys: false,
            timestamps: false,
            headers: false,
            max_batch_bytes: 0,
            max_batch_records: 0,
            // A file stays until somebody removes it, and a write ends with the process that makes it.
            prepared_lifetime_s: None,
            settle_ms: 0,
        };
        Ok((Self { folder, open: None }, profile))
    }

    /// Nothing is written yet; only a label that is taken is found out now rather than at the end.
    pub(crate) fn begin(&mut self, label: &str) -> Result<(), Error> {
        if let Some(open) = &self.open {
            return Err(error::broken(format!("begin of {label} while {} is open", open.label)));
        }
        if self.folder.knows(label)? {
            return Err(error::conflict(format!("{label} is taken")));
        }
        self.open = Some(OpenTransaction { label: label.to_owned(), records: 0 });
        Ok(())
    }

    pub(crate) fn invoke(&mut self, label: &str, batch: &RecordBatch) -> Result<Vec<Rejection>, Error> {
        match &mut self.open {
            Some(open) if open.label == label => {
                open.records += u64::from(batch.count);
                Ok(Vec::new())
            }
            _ => Err(error::broken(format!("invoke of {label}, which is not open"))),
        }
    }

    pub(crate) fn precommit(&mut self, label: &str) -> Result<Prepared, Error> {
        let Some(open) = self.open.take_if(|open| open.label == label) else {
            return Err(error::broken(format!("precommit of {label}, which is not open")));
        };
        self.folder.prepare(label, &content(open.records))?;
        Ok(Prepared {
            handle: open.records.to_string().into_bytes(),
            // A count beyond 32 bits is not said rather than said wrongly.
            records: u32::try_from(open.records).ok(),
        })
    }

    pub(crate) fn commit(&mut self, label: &str, handle: &[u8]) -> Result<Verdict, Error> {
        let records = std::str::from_utf8(handle).ok().and_then(|digits| digits.parse().ok());
        let records = records.ok_or_else(|| error::broken(format!("the handle of {label} is not a {HANDLE_FORMAT}")))?;
        self.folder.commit(label, &content(records))
    }

    /// The label is all there is: the transaction may be one of a writer that died.
    pub(crate) fn abort(&mut self, label: &str) -> Result<(), Error> {
        self.open.take_if(|open| open.label == label);
        self.folder.abort(label)
    }
}

fn content(records: u64) -> String {
    format!("{records}\n")
}

#[cfg(test)]
mod tests;
