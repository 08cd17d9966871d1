//! How a transaction ends: `commit` and `abort`, from any process, any number of times, two at once.
//!
//! A file is published by renaming it, because that is one step: before it, the temporary name is there and the published one is not;
//! after it, the reverse, until a reader takes the file away. So the temporary name alone tells whether a file still has to be published,
//! whoever crashed when. The other way, linking the published name and then removing the temporary one, never overwrites, but has a
//! moment between: a reader that takes the file away in that moment finds it there again after the next attempt, and reads it twice.
//! What renaming could overwrite is a file that is there beside the temporary one, which is looked for first; only somebody
//! who makes a file of exactly this name between that look and the renaming loses it.

use crate::config::Directory;
use crate::error::{During, Error};
use crate::folder::{Folder, if_present};
use crate::handle::Handle;
use crate::marker;
use crate::name::{Label, Prefix};

/// The verdicts of the contract that this sink can give. Never `lost`, for it cannot know, and never `unknown`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// This call made the transaction, or the rest of it, visible.
    Committed,
    /// There was nothing left to do.
    AlreadyCommitted,
}

/// What is to be done about one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Rename it.
    Publish,
    /// Nothing: it was published.
    Nothing,
    /// Stop: renaming would overwrite.
    Stop,
}

/// The whole table. The published name has to be looked at first: if another committer renames between the two looks, the temporary
/// name is gone at the second.
fn next(published: bool, temporary: bool) -> Next {
    match (published, temporary) {
        (false, true) => Next::Publish,
        (true, false) => Next::Nothing,
        // A reader took it away.
        (false, false) => Next::Nothing,
        (true, true) => Next::Stop,
    }
}

/// Publishes the files of a prepared transaction that are not published yet.
pub fn commit(folder: &impl Folder, directory: &Directory, label: &Label, handle: &Handle) -> Result<Verdict, Error> {
    check_folder(folder, directory, handle)?;
    check_sizes(folder, label, handle)?;
    let mut verdict = Verdict::AlreadyCommitted;
    for number in 0..handle.files {
        if publish(folder, label, handle, number)? {
            verdict = Verdict::Committed;
        }
    }
    // Also when there was nothing to do: whoever did it may have crashed before its renaming was durable, and the host forgets the
    // transaction after this answer.
    folder.sync().during(|| "sync the folder".to_owned())?;
    Ok(verdict)
}

fn check_folder(folder: &impl Folder, directory: &Directory, handle: &Handle) -> Result<(), Error> {
    let found = marker::read(folder)?;
    if found.as_ref() == Some(&handle.folder) {
        return Ok(());
    }
    Err(Error::OtherFolder {
        directory: directory.clone(),
        marker: marker::NAME,
        expected: handle.folder.as_str().to_owned(),
        found: found.map(|id| id.as_str().to_owned()),
    })
}

/// While none is published, the files together have to be what was prepared; a part of them cannot be compared with anything.
fn check_sizes(folder: &impl Folder, label: &Label, handle: &Handle) -> Result<(), Error> {
    let mut found = 0;
    for number in 0..handle.files {
        let name = label.temporary(number);
        match folder.size(&name).during(|| format!("look at {name}"))? {
            Some(bytes) => found += bytes,
            None => return Ok(()),
        }
    }
    if found == handle.bytes { Ok(()) } else { Err(Error::Changed { label: label.clone(), expected: handle.bytes, found }) }
}

/// Whether this call published the file.
fn publish(folder: &impl Folder, label: &Label, handle: &Handle, number: u32) -> Result<bool, Error> {
    let (temporary, published) = (label.temporary(number), handle.published.name(label, number));
    let is_there = |name: &str| folder.size(name).during(|| format!("look at {name}")).map(|size| size.is_some());
    let (published_is_there, temporary_is_there) = (is_there(&published)?, is_there(&temporary)?);
    match next(published_is_there, temporary_is_there) {
        // Not there any more: another committer was faster.
        Next::Publish => if_present(folder.rename(&temporary, &published)).during(|| format!("rename {temporary} to {published}")),
        Next::Nothing => Ok(false),
        Next::Stop => Err(Error::Both { temporary, published }),
    }
}

/// Removes what a transaction that no decision names has left. It reads the whole folder, since after a crash any of the files may be
/// missing; aborts are rare.
pub fn abort(folder: &impl Folder, prefix: &Prefix, label: &Label) -> Result<(), Error> {
    let is_published = |name: &str| prefix.owns_published(label, name);
    let wanted = |name: &str| is_published(name) || label.owns_temporary(name) || marker::is_unfinished(name);
    let names = folder.names(&wanted).during(|| "read the folder".to_owned())?;
    if let Some(name) = names.iter().find(|name| is_published(name)) {
        return Err(Error::Committed { label: label.clone(), name: name.clone() });
    }
    for name in &names {
        if_present(folder.remove(name)).during(|| format!("remove {name}"))?;
    }
    // Also when there was nothing to do: whoever did it may have crashed before this.
    folder.sync().during(|| "sync the folder".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_temporary_file_alone_is_published() {
        for (published, temporary, expected) in
            [(false, true, Next::Publish), (true, false, Next::Nothing), (false, false, Next::Nothing), (true, true, Next::Stop)]
        {
            assert_eq!(next(published, temporary), expected);
        }
    }
}
