//! A folder whose files are the state of every transaction.
//!
//! | files of a label | the transaction is |
//! | --- | --- |
//! | neither | unknown here: never prepared, or aborted |
//! | `.<label>.count` | prepared: durable, and invisible to everything that passes over hidden files |
//! | `<label>.count` | committed |
//!
//! One rename takes it from prepared to committed, so there is no moment with both or with half a file. A rename survives a crash
//! of the machine only once the folder is synced; that happens before any answer that the host may rely on.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::PathBuf;

use crate::bindings::weir::sink::types::{Error, Verdict};
use crate::error;

pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Fails when the folder is not granted, or is not a folder. Changes nothing.
    pub(crate) fn open(path: &str) -> Result<Self, Error> {
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => Ok(Self { path: path.into() }),
            Ok(_) => Err(error::refused(format!("{path} is not a folder"))),
            Err(found) if found.kind() == io::ErrorKind::NotFound => Err(error::refused(format!(
                "no folder {path} was granted; a grant looks like `grant: {{ folders: {{ {path}: ./counts }} }}`"
            ))),
            Err(found) => Err(error::from_io(&format!("open {path}"), &found)),
        }
    }

    /// Whether the folder knows the label, prepared or committed.
    pub(crate) fn knows(&self, label: &str) -> Result<bool, Error> {
        Ok(exists(self.prepared(label))? || exists(self.committed(label))?)
    }

    /// Makes the content durable and leaves it invisible.
    pub(crate) fn prepare(&self, label: &str, content: &str) -> Result<(), Error> {
        let write = || {
            // `create_new`: whoever prepared this label before, his file is not overwritten.
            let mut file = File::create_new(self.prepared(label))?;
            file.write_all(content.as_bytes())?;
            file.sync_all()
        };
        write().map_err(|found| error::from_io(&format!("write the count of {label}"), &found))?;
        self.sync()
    }

    /// Makes a prepared content visible. Safe to repeat, and safe from two processes at once: only one of them renames.
    pub(crate) fn commit(&self, label: &str, content: &str) -> Result<Verdict, Error> {
        let verdict = match fs::rename(self.prepared(label), self.committed(label)) {
            Ok(()) => Verdict::Committed,
            Err(found) if found.kind() == io::ErrorKind::NotFound => match fs::read(self.committed(label)) {
                Ok(found) if found == content.as_bytes() => Verdict::AlreadyCommitted,
                Ok(_) => return Err(error::conflict(format!("{label} was committed with another content"))),
                Err(found) if found.kind() == io::ErrorKind::NotFound => return Ok(Verdict::Unknown),
                Err(found) => return Err(error::from_io(&format!("read the count of {label}"), &found)),
            },
            Err(found) => return Err(error::from_io(&format!("commit {label}"), &found)),
        };
        // Also for `already-committed`: whoever renamed it may have died before its sync.
        self.sync()?;
        Ok(verdict)
    }

    /// Removes a prepared content. Safe to repeat; a label that was never prepared is fine.
    pub(crate) fn abort(&self, label: &str) -> Result<(), Error> {
        if exists(self.committed(label))? {
            return Err(error::conflict(format!("{label} is committed")));
        }
        match fs::remove_file(self.prepared(label)) {
            Ok(()) => self.sync(),
            Err(found) if found.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(found) => Err(error::from_io(&format!("abort {label}"), &found)),
        }
    }

    fn prepared(&self, label: &str) -> PathBuf {
        self.path.join(format!(".{label}.count"))
    }

    fn committed(&self, label: &str) -> PathBuf {
        self.path.join(format!("{label}.count"))
    }

    fn sync(&self) -> Result<(), Error> {
        File::open(&self.path).and_then(|folder| folder.sync_all()).map_err(|found| error::from_io("sync the folder", &found))
    }
}

fn exists(path: PathBuf) -> Result<bool, Error> {
    path.try_exists().map_err(|found| error::from_io(&format!("look for {}", path.display()), &found))
}
