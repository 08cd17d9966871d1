//! What makes a file the same file: its inode and a hash of its first bytes. The device's number is not part of it, because a remount changes it.

use std::fmt;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::str::FromStr;
use std::time::UNIX_EPOCH;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// Most bytes at a file's beginning that its identity is over.
pub(super) const MAX_HEAD_BYTES: usize = 1024;
/// Most bytes before a position that the position's hash is over.
pub(super) const MAX_TAIL_BYTES: usize = 256;

/// The first 8 bytes of a SHA-256, in hexadecimal. Enough to tell two contents of one inode apart.
pub(super) fn short_hash(bytes: &[u8]) -> String {
    HEXLOWER.encode(Sha256::digest(bytes).get(..8).unwrap_or_default())
}

/// The name of a split: `file:<inode>:<bytes hashed>:<hash>`, and `:<n>` for the n-th file with the same three after the first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct FileId {
    pub(super) inode: u64,
    pub(super) head: Head,
    pub(super) incarnation: u32,
}

/// A file's beginning.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Head {
    bytes: u32,
    hash: String,
}

impl Head {
    /// The beginning of a plain file: its first line, or as much of that as [`MAX_HEAD_BYTES`] allows. It stays the same while the file grows, so the
    /// split has the same id before and after. `None`: there is no whole line yet.
    pub(super) fn of_plain(file: &File) -> io::Result<Option<Self>> {
        let bytes = read_at_most(file, 0, MAX_HEAD_BYTES)?;
        let line = memchr::memchr(b'\n', &bytes).map(|at| at + 1);
        let whole = line.or((bytes.len() == MAX_HEAD_BYTES).then_some(MAX_HEAD_BYTES));
        Ok(whole.map(|length| Self::of(bytes.get(..length).unwrap_or(&bytes))))
    }

    /// The beginning of a file that does not grow.
    pub(super) fn of_whole(file: &File) -> io::Result<Self> {
        Ok(Self::of(&read_at_most(file, 0, MAX_HEAD_BYTES)?))
    }

    fn of(bytes: &[u8]) -> Self {
        Self { bytes: bytes.len() as u32, hash: short_hash(bytes) }
    }

    /// Does the file begin like this?
    pub(super) fn matches(&self, file: &File) -> io::Result<bool> {
        let bytes = read_at_most(file, 0, self.bytes as usize)?;
        Ok(bytes.len() == self.bytes as usize && short_hash(&bytes) == self.hash)
    }
}

/// Reads a stretch of a file; less where it ends.
pub(super) fn read_at_most(file: &File, from: u64, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; most];
    let got = read_full_at(file, from, &mut bytes)?;
    bytes.truncate(got);
    Ok(bytes)
}

/// Fills a buffer from a place in a file, as far as the file goes.
pub(super) fn read_full_at(file: &File, from: u64, into: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while let Some(rest) = into.get_mut(got..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, from + got as u64) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

/// When the file was made, in nanoseconds since 1970, where its file system says so.
pub(super) fn born(meta: &Metadata) -> Option<u64> {
    let time = meta.created().ok()?.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(time.as_nanos()).ok()
}

/// What tells cheaply that a file has not changed since the last look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) inode: u64,
    pub(super) size: u64,
    modified: (i64, i64),
}

impl Stamp {
    pub(super) fn of(meta: &Metadata) -> Self {
        Self { inode: meta.ino(), size: meta.len(), modified: (meta.mtime(), meta.mtime_nsec()) }
    }
}

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "file:{}:{}:{}", self.inode, self.head.bytes, self.head.hash)?;
        if self.incarnation > 0 {
            write!(f, ":{}", self.incarnation)?;
        }
        Ok(())
    }
}

/// The text is not the id of a file's split.
#[derive(Debug)]
pub(super) struct NotAFileId;

impl FromStr for FileId {
    type Err = NotAFileId;

    fn from_str(text: &str) -> Result<Self, NotAFileId> {
        let mut parts = text.strip_prefix("file:").ok_or(NotAFileId)?.split(':');
        let mut next = || parts.next().ok_or(NotAFileId);
        let inode = next()?.parse().map_err(|_| NotAFileId)?;
        let bytes = next()?.parse().map_err(|_| NotAFileId)?;
        let hash = next()?.to_owned();
        let incarnation = match next() {
            Ok(number) => number.parse().map_err(|_| NotAFileId)?,
            Err(NotAFileId) => 0,
        };
        if hash.len() != 16 || parts.next().is_some() {
            return Err(NotAFileId);
        }
        Ok(Self { inode, head: Head { bytes, hash }, incarnation })
    }
}
