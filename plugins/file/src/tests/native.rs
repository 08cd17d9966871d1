//! A real folder, through `std::fs`.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use crate::folder::{Cause, Fault, Folder, OutputFile};

#[derive(Clone)]
pub(super) struct NativeFolder(pub(super) PathBuf);

impl Folder for NativeFolder {
    type File = File;

    fn create(&self, name: &str) -> Result<File, Fault> {
        OpenOptions::new().write(true).create_new(true).open(self.0.join(name)).map_err(fault)
    }

    fn size(&self, name: &str) -> Result<Option<u64>, Fault> {
        match fs::symlink_metadata(self.0.join(name)) {
            Ok(metadata) => Ok(Some(metadata.len())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(fault(error)),
        }
    }

    fn read(&self, name: &str, limit: u64) -> Result<Option<Vec<u8>>, Fault> {
        let file = match File::open(self.0.join(name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(fault)?,
        };
        let mut bytes = Vec::new();
        file.take(limit).read_to_end(&mut bytes).map_err(fault)?;
        Ok(Some(bytes))
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), Fault> {
        fs::rename(self.0.join(from), self.0.join(to)).map_err(fault)
    }

    fn link(&self, from: &str, to: &str) -> Result<(), Fault> {
        fs::hard_link(self.0.join(from), self.0.join(to)).map_err(fault)
    }

    fn remove(&self, name: &str) -> Result<(), Fault> {
        fs::remove_file(self.0.join(name)).map_err(fault)
    }

    fn names(&self, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<String>, Fault> {
        let entries = fs::read_dir(&self.0).map_err(fault)?;
        let names = entries.map(|entry| Ok(entry.map_err(fault)?.file_name().into_string().unwrap()));
        names.filter(|name| name.as_ref().map_or(true, |name| wanted(name))).collect()
    }

    fn sync(&self) -> Result<(), Fault> {
        File::open(&self.0).and_then(|folder| folder.sync_all()).map_err(fault)
    }

    fn check_changeable(&self, absent: &str, present: Option<&str>) -> Result<(), Fault> {
        match fs::remove_file(self.0.join(absent)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(fault(error)),
            _ => {}
        }
        match present.map(|file| fs::remove_dir(self.0.join(file))) {
            Some(Err(error)) if error.kind() != ErrorKind::NotADirectory => Err(fault(error)),
            _ => Ok(()),
        }
    }
}

impl OutputFile for File {
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> Result<usize, Fault> {
        FileExt::write_at(self, bytes, offset).map_err(fault)
    }

    fn sync(&mut self) -> Result<(), Fault> {
        self.sync_all().map_err(fault)
    }
}

fn fault(error: std::io::Error) -> Fault {
    let cause = match error.kind() {
        ErrorKind::NotFound => Cause::Missing,
        ErrorKind::AlreadyExists => Cause::Exists,
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Cause::Denied,
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Cause::Full,
        ErrorKind::NotADirectory | ErrorKind::IsADirectory => Cause::WrongKind,
        _ => Cause::Failed,
    };
    Fault::new(cause, &error.to_string())
}
