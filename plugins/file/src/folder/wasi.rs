//! A folder reached through `wasi:filesystem`.
//!
//! Not through `std::fs`: that writes through a stream in pieces of 64 KiB, each of them a task of its own in the host, while
//! `descriptor.write` takes a megabyte in one call (wasmtime-wasi 48, `p2/host/filesystem.rs`).

use wasip2::filesystem::preopens;
use wasip2::filesystem::types::{Descriptor, DescriptorFlags, ErrorCode, OpenFlags, PathFlags};

use super::{Cause, Fault, Folder, OutputFile};
use crate::config::Directory;
use crate::error::Error;

/// No symbolic link is followed at the end of a name.
const NO_FOLLOW: PathFlags = PathFlags::empty();

/// A folder that the operator granted, or one inside it.
pub struct WasiFolder(Descriptor);

impl WasiFolder {
    /// Opens a folder inside the granted ones. Changes nothing.
    pub fn open(directory: &Directory) -> Result<Self, Error> {
        let (root, rest) = preopens::get_directories()
            .into_iter()
            .filter_map(|(descriptor, granted)| Some((descriptor, directory.inside(&granted)?)))
            .min_by_key(|(_, rest)| rest.len())
            .ok_or_else(|| Error::NotGranted { directory: directory.clone() })?;
        if rest.is_empty() {
            return Ok(Self(root));
        }
        let flags = DescriptorFlags::READ | DescriptorFlags::MUTATE_DIRECTORY;
        match root.open_at(PathFlags::SYMLINK_FOLLOW, &rest, OpenFlags::DIRECTORY, flags) {
            Ok(folder) => Ok(Self(folder)),
            Err(code) => Err(Error::NoFolder { directory: directory.clone(), fault: fault(code) }),
        }
    }
}

impl Folder for WasiFolder {
    type File = Descriptor;

    fn create(&self, name: &str) -> Result<Descriptor, Fault> {
        let how = OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
        self.0.open_at(NO_FOLLOW, name, how, DescriptorFlags::WRITE).map_err(fault)
    }

    fn size(&self, name: &str) -> Result<Option<u64>, Fault> {
        match self.0.stat_at(NO_FOLLOW, name) {
            Ok(stat) => Ok(Some(stat.size)),
            Err(ErrorCode::NoEntry) => Ok(None),
            Err(code) => Err(fault(code)),
        }
    }

    fn read(&self, name: &str, limit: u64) -> Result<Option<Vec<u8>>, Fault> {
        let file = match self.0.open_at(NO_FOLLOW, name, OpenFlags::empty(), DescriptorFlags::READ) {
            Ok(file) => file,
            Err(ErrorCode::NoEntry) => return Ok(None),
            Err(code) => return Err(fault(code)),
        };
        let mut bytes = Vec::new();
        loop {
            let at = bytes.len() as u64;
            let (piece, ended) = file.read(limit.saturating_sub(at), at).map_err(fault)?;
            bytes.extend_from_slice(&piece);
            if ended || piece.is_empty() || bytes.len() as u64 >= limit {
                return Ok(Some(bytes));
            }
        }
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), Fault> {
        self.0.rename_at(from, &self.0, to).map_err(fault)
    }

    fn link(&self, from: &str, to: &str) -> Result<(), Fault> {
        self.0.link_at(NO_FOLLOW, from, &self.0, to).map_err(fault)
    }

    fn remove(&self, name: &str) -> Result<(), Fault> {
        self.0.unlink_file_at(name).map_err(fault)
    }

    fn names(&self, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<String>, Fault> {
        let entries = self.0.read_directory().map_err(fault)?;
        let mut names = Vec::new();
        while let Some(entry) = entries.read_directory_entry().map_err(fault)? {
            if wanted(&entry.name) {
                names.push(entry.name);
            }
        }
        Ok(names)
    }

    fn sync(&self) -> Result<(), Fault> {
        self.0.sync().map_err(fault)
    }

    fn check_changeable(&self, absent: &str, present: Option<&str>) -> Result<(), Fault> {
        let flags = self.0.get_flags().map_err(fault)?;
        if !flags.contains(DescriptorFlags::MUTATE_DIRECTORY) {
            return Err(fault(ErrorCode::ReadOnly));
        }
        // Linux reports a read-only file system before it looks for the name.
        match self.0.unlink_file_at(absent) {
            Ok(()) | Err(ErrorCode::NoEntry) => {}
            Err(code) => return Err(fault(code)),
        }
        // ... and asks for the permission to change the folder before it finds that a file is no folder, so this removes nothing
        // and still tells. WASI 0.2 has no `access`.
        match present.map(|file| self.0.remove_directory_at(file)) {
            Some(Err(code @ (ErrorCode::Access | ErrorCode::NotPermitted | ErrorCode::ReadOnly))) => Err(fault(code)),
            _ => Ok(()),
        }
    }
}

impl OutputFile for Descriptor {
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> Result<usize, Fault> {
        // More than fits a usize is more than was given; the caller refuses that.
        self.write(bytes, offset).map(|taken| usize::try_from(taken).unwrap_or(usize::MAX)).map_err(fault)
    }

    fn sync(&mut self) -> Result<(), Fault> {
        Descriptor::sync(self).map_err(fault)
    }
}

fn fault(code: ErrorCode) -> Fault {
    let cause = match code {
        ErrorCode::NoEntry => Cause::Missing,
        ErrorCode::Exist => Cause::Exists,
        ErrorCode::InsufficientSpace | ErrorCode::Quota => Cause::Full,
        ErrorCode::Access | ErrorCode::NotPermitted | ErrorCode::ReadOnly => Cause::Denied,
        ErrorCode::NotDirectory | ErrorCode::IsDirectory | ErrorCode::NotEmpty | ErrorCode::Loop => Cause::WrongKind,
        ErrorCode::FileTooLarge | ErrorCode::NameTooLong | ErrorCode::TooManyLinks | ErrorCode::Unsupported | ErrorCode::CrossDevice => {
            Cause::Unsupported
        }
        _ => Cause::Failed,
    };
    Fault::new(cause, code.name())
}
