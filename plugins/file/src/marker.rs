//! The hidden file that says which folder this is.
//!
//! `commit` takes a missing temporary file for a committed one. In another folder, or in the empty one under a missing mount, every
//! temporary file is missing; so the handle carries the id of the folder it was prepared in, and `commit` compares.

use serde::{Deserialize, Serialize};

use crate::error::{During, Error};
use crate::folder::{Cause, Folder, OutputFile, if_present, write_all};

/// The marker's file name.
pub const NAME: &str = ".weir-folder";
/// What the marker is called while it is made. Each attempt has a name of its own, with its id.
const UNFINISHED_PREFIX: &str = ".weir-folder.";
const UNFINISHED_SUFFIX: &str = ".new";
/// Far more than a marker has.
const LIMIT_BYTES: u64 = 4096;
const FORMAT: &str = "weir-folder-1";
const NOTE: &str =
    "Made by a Weir file sink. It tells this folder from an empty mount point. Do not remove it, and do not copy it into another folder.";

/// Which folder this is: 16 random bytes as 32 lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderId(String);

impl FolderId {
    /// An id from random bytes.
    pub fn new(random: [u8; 16]) -> Self {
        Self(random.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Nothing if it is no id.
    pub fn parse(text: &str) -> Option<Self> {
        let digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        (text.len() == 32 && text.bytes().all(digit)).then(|| Self(text.to_owned()))
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[derive(Serialize, Deserialize)]
struct Content {
    format: String,
    id: String,
    #[serde(default)]
    note: String,
}

/// The id of the folder, or nothing if no transaction was ever begun in it.
pub fn read(folder: &impl Folder) -> Result<Option<FolderId>, Error> {
    let Some(bytes) = folder.read(NAME, LIMIT_BYTES).during(|| format!("read the folder's marker {NAME}"))? else {
        return Ok(None);
    };
    let content: Content = serde_json::from_slice(&bytes).map_err(|_| Error::Marker(NAME))?;
    if content.format != FORMAT {
        return Err(Error::Marker(NAME));
    }
    FolderId::parse(&content.id).map(Some).ok_or(Error::Marker(NAME))
}

/// The id of the folder; where it has none, the marker is made from `random`. Two writers may do this at once, and get the same answer.
pub fn ensure(folder: &impl Folder, random: [u8; 16]) -> Result<FolderId, Error> {
    if let Some(id) = read(folder)? {
        return Ok(id);
    }
    make(folder, &FolderId::new(random))?;
    // Read back: another writer may have been first.
    read(folder)?.ok_or(Error::Marker(NAME))
}

/// Makes the marker appear whole or not at all, and never over another one: it is written under another name and then linked.
fn make(folder: &impl Folder, id: &FolderId) -> Result<(), Error> {
    let unfinished = format!("{UNFINISHED_PREFIX}{}{UNFINISHED_SUFFIX}", id.as_str());
    let content = Content { format: FORMAT.to_owned(), id: id.as_str().to_owned(), note: NOTE.to_owned() };
    let mut bytes = serde_json::to_vec(&content).map_err(|_| Error::Marker(NAME))?;
    bytes.push(b'\n');
    let step = || format!("make the folder's marker {NAME}");
    let mut file = folder.create(&unfinished).during(step)?;
    write_all(&mut file, &bytes, 0).during(step)?;
    file.sync().during(step)?;
    drop(file);
    match folder.link(&unfinished, NAME) {
        Err(fault) if fault.cause != Cause::Exists => return Err(fault).during(step),
        _ => {}
    }
    // The folder is not synced here: no handle has the id before `precommit` has done so.
    if_present(folder.remove(&unfinished)).during(step)?;
    Ok(())
}

/// Whether a name is a marker that somebody was making when it crashed, or is making now; removing it makes the latter try again.
pub fn is_unfinished(name: &str) -> bool {
    let id = name.strip_prefix(UNFINISHED_PREFIX).and_then(|rest| rest.strip_suffix(UNFINISHED_SUFFIX));
    id.is_some_and(|id| FolderId::parse(id).is_some())
}
