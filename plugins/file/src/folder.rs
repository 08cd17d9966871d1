//! What the sink needs of a file system, and how it fails.
//!
//! The rest of the plugin is written against [`Folder`], so that its steps can be tested one by one against a file system that
//! crashes, forgets what was not synced, fills up, or is changed by somebody else. The one that is shipped is `wasi`.

#[cfg(target_family = "wasm")]
pub mod wasi;

/// The most bytes that one write hands to the file system. A longer write is cut here, because WASI hosts bound what one call lifts.
pub const WRITE_PIECE_BYTES: usize = 1 << 20;

/// One folder. Every name is a plain file name: no separator, never `.` or `..`.
///
/// Each method is one step that can be the last before a crash. None retries.
pub trait Folder {
    /// A file open for writing.
    type File: OutputFile;

    /// Makes a file and opens it. [`Cause::Exists`] if the name is taken, by whatever.
    fn create(&self, name: &str) -> Result<Self::File, Fault>;

    /// The size in bytes of what has this name, or nothing if nothing has.
    fn size(&self, name: &str) -> Result<Option<u64>, Fault>;

    /// Up to `limit` bytes of a file, or nothing if it is not there.
    fn read(&self, name: &str, limit: u64) -> Result<Option<Vec<u8>>, Fault>;

    /// Gives a file another name in one step; at no moment has it both or none. It replaces what has the new name.
    /// [`Cause::Missing`] if the old name is not there.
    fn rename(&self, from: &str, to: &str) -> Result<(), Fault>;

    /// Gives a file a second name. [`Cause::Exists`] if that is taken, [`Cause::Missing`] if the first is not there.
    fn link(&self, from: &str, to: &str) -> Result<(), Fault>;

    /// Removes a file. [`Cause::Missing`] if it is not there.
    fn remove(&self, name: &str) -> Result<(), Fault>;

    /// The names for which `wanted` holds. It reads the whole folder.
    fn names(&self, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<String>, Fault>;

    /// Makes every change of names so far survive a crash of the machine.
    fn sync(&self) -> Result<(), Fault>;

    /// Asks whether names may be changed here, without changing one: `absent` is a name that nothing has; `present` is, if there is
    /// one, a file. A file system that cannot be asked without writing answers yes.
    fn check_changeable(&self, absent: &str, present: Option<&str>) -> Result<(), Fault>;
}

/// A file open for writing.
pub trait OutputFile {
    /// Writes some of the bytes at an offset and says how many.
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> Result<usize, Fault>;

    /// Makes the bytes written so far survive a crash of the machine. The file's name is another matter: [`Folder::sync`].
    fn sync(&mut self) -> Result<(), Fault>;
}

/// Writes all bytes at an offset, in pieces of at most [`WRITE_PIECE_BYTES`], however few a write takes.
pub fn write_all(file: &mut impl OutputFile, bytes: &[u8], mut offset: u64) -> Result<(), Fault> {
    for piece in bytes.chunks(WRITE_PIECE_BYTES) {
        let mut rest = piece;
        while !rest.is_empty() {
            let taken = file.write_at(rest, offset)?;
            // A file system that takes nothing, or claims more than it was given, would be asked for ever.
            rest = match rest.get(taken..) {
                Some(left) if taken > 0 => left,
                _ => return Err(Fault::new(Cause::Failed, "short-write")),
            };
            offset += taken as u64;
        }
    }
    Ok(())
}

/// Turns "it is not there" into `false`, and success into `true`.
pub fn if_present(outcome: Result<(), Fault>) -> Result<bool, Fault> {
    match outcome {
        Ok(()) => Ok(true),
        Err(fault) if fault.cause == Cause::Missing => Ok(false),
        Err(fault) => Err(fault),
    }
}

/// Why the file system said no.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Nothing has the name.
    Missing,
    /// Something has the name.
    Exists,
    /// The device or the quota is full.
    Full,
    /// Permissions, the operator's grant, or a read-only file system.
    Denied,
    /// A file where a folder should be, or the reverse.
    WrongKind,
    /// The file system cannot do this at all: a file this large, a name this long, a second name for a file.
    Unsupported,
    /// Anything else: an input/output error, a busy or stale device, too little memory.
    Failed,
}

/// One step that failed, in words for people and with the file system's own code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} ({code})", self.words())]
pub struct Fault {
    /// What to make of it.
    pub cause: Cause,
    /// The code of WASI, such as `insufficient-space`.
    pub code: String,
}

impl Fault {
    /// A fault with the file system's code.
    pub fn new(cause: Cause, code: &str) -> Self {
        Self { cause, code: code.to_owned() }
    }

    fn words(&self) -> &'static str {
        match self.cause {
            Cause::Missing => "it is not there",
            Cause::Exists => "the name is taken",
            Cause::Full => "there is no space left",
            Cause::Denied => "it is not permitted, by the folder's permissions, its mount or the grant",
            Cause::WrongKind => "a file stands where a folder should be, or the reverse",
            Cause::Unsupported => "the file system cannot do this",
            // wasmtime-wasi 48 has no code for a read-only file system and for an exhausted quota, and reports both as this.
            Cause::Failed => "the file system failed, is read-only, or its quota is used up",
        }
    }
}
