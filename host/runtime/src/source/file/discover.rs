//! Which files there are, and which of them are which splits.
//!
//! A file that was seen before and has the same inode, size and time of change is taken for granted. Any other is opened and held against the splits with its
//! inode: its first bytes, and the bytes before the position that it was read to. What fits none of them is a new split.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};

use weir_protocol::{Positions, SplitId};

use super::blocks::Compression;
use super::explain;
use super::header::broken;
use super::identity::{FileId, Head, Stamp, born, read_at_most, short_hash};
use super::place::Place;
use super::shared::Shared;
use crate::source::{SourceError, codes};

/// The splits that have a decided position.
pub(super) type Known = BTreeMap<SplitId, (FileId, Place)>;

/// Takes the positions of the ledger apart.
pub(super) fn decode(positions: &Positions) -> Result<Known, SourceError> {
    let mut known = Known::new();
    for (split, position) in positions {
        known.insert(split.clone(), (file_id(split)?, Place::decode(split, position)?));
    }
    Ok(known)
}

/// The file that a split's id names.
pub(super) fn file_id(split: &SplitId) -> Result<FileId, SourceError> {
    split.as_str().parse().map_err(|_| {
        SourceError::stop(
            codes::BAD_POSITION,
            format!(
                "the ledger holds a position of split {split}, which is not a file's: this pipeline read from elsewhere before. {}",
                codes::BAD_POSITION.remedy
            ),
        )
    })
}

/// What earlier looks have found, in this generation.
#[derive(Debug, Default)]
pub(super) struct Catalog {
    stamps: BTreeMap<PathBuf, (Stamp, SplitId)>,
    listings: BTreeMap<SplitId, Listing>,
}

/// Where a split is.
#[derive(Clone, Debug)]
pub(super) struct Listing {
    id: FileId,
    pub(super) path: PathBuf,
    /// Its size when it was found first. A bounded file is read that far.
    pub(super) size: u64,
}

impl Catalog {
    pub(super) fn listing(&self, split: &SplitId) -> Option<&Listing> {
        self.listings.get(split)
    }

    /// Looks at the files, and gives the splits that may have something to read, in the order to read them.
    pub(super) fn discover(&mut self, shared: &Shared, known: &Known) -> Result<Vec<SplitId>, SourceError> {
        let paths = shared.paths()?;
        if paths.is_empty() && known.is_empty() && !shared.config.follow {
            return Err(SourceError::stop(codes::NO_FILES, format!("no file matches {}. {}", shared.pattern, codes::NO_FILES.remedy)));
        }
        let mut look = Look::new(shared, known, self);
        for path in paths {
            look.at(path)?;
        }
        let mut splits = look.for_the_missing()?;
        // A file that has been renamed since it was read was most likely rotated, and is older than what has its name now.
        let (renamed, others): (Vec<SplitId>, Vec<SplitId>) =
            look.found.into_iter().partition(|split| look.catalog.was_renamed(split, shared, known));
        splits.extend(renamed);
        splits.extend(others);
        splits.retain(|split| self.has_more(split, shared, known));
        Ok(splits)
    }

    fn was_renamed(&self, split: &SplitId, shared: &Shared, known: &Known) -> bool {
        let path = self.listings.get(split).map(|listing| &*listing.path);
        farthest(split, shared, known).is_some_and(|place| path != Some(Path::new(&place.path)))
    }

    /// May there be something to read?
    fn has_more(&self, split: &SplitId, shared: &Shared, known: &Known) -> bool {
        let Some(listing) = self.listings.get(split) else { return false };
        match farthest(split, shared, known) {
            None => true,
            Some(place) if place.compressed => !place.whole,
            Some(place) => listing.size > place.offset,
        }
    }
}

/// How far a split has been read, decided or not.
pub(super) fn farthest(split: &SplitId, shared: &Shared, known: &Known) -> Option<Place> {
    let decided = known.get(split).map(|(_, place)| place);
    let read = shared.progress.of(split);
    match (read, decided) {
        (Some(read), Some(decided)) if read.offset < decided.offset => Some(decided.clone()),
        (None, decided) => decided.cloned(),
        (read, _) => read,
    }
}

/// One look at all files.
struct Look<'a> {
    shared: &'a Shared,
    known: &'a Known,
    catalog: &'a mut Catalog,
    /// The splits of each inode, newest incarnation first.
    by_inode: BTreeMap<u64, Vec<(FileId, SplitId)>>,
    found: Vec<SplitId>,
    seen: BTreeSet<SplitId>,
    /// The inodes of files that the pattern names.
    inodes: BTreeMap<u64, PathBuf>,
    /// The files themselves, since the pattern may name one twice.
    files: BTreeSet<(u64, u64)>,
    /// The files of folders that had to be searched, by inode.
    folders: BTreeMap<PathBuf, BTreeMap<u64, PathBuf>>,
}

impl<'a> Look<'a> {
    fn new(shared: &'a Shared, known: &'a Known, catalog: &'a mut Catalog) -> Self {
        let mut by_inode: BTreeMap<u64, Vec<(FileId, SplitId)>> = BTreeMap::new();
        let listed = catalog.listings.iter().filter(|(split, _)| !known.contains_key(*split)).map(|(split, listing)| (split, &listing.id));
        for (split, id) in known.iter().map(|(split, (id, _))| (split, id)).chain(listed) {
            by_inode.entry(id.inode).or_default().push((id.clone(), split.clone()));
        }
        // An earlier generation of this process may have found files whose reading was never decided.
        for split in shared.config.memory.splits() {
            if !known.contains_key(&split)
                && !catalog.listings.contains_key(&split)
                && let Ok(id) = split.as_str().parse::<FileId>()
            {
                by_inode.entry(id.inode).or_default().push((id, split));
            }
        }
        for splits in by_inode.values_mut() {
            splits.sort_by_key(|(id, _)| std::cmp::Reverse(id.incarnation));
        }
        Self {
            shared,
            known,
            catalog,
            by_inode,
            found: Vec::new(),
            seen: BTreeSet::new(),
            inodes: BTreeMap::new(),
            files: BTreeSet::new(),
            folders: BTreeMap::new(),
        }
    }

    /// Looks at one file that the pattern names.
    fn at(&mut self, path: PathBuf) -> Result<(), SourceError> {
        let Some(meta) = self.stat(&path)? else { return Ok(()) };
        if !self.files.insert((meta.dev(), meta.ino())) {
            return Ok(());
        }
        self.inodes.entry(meta.ino()).or_insert_with(|| path.clone());
        let stamp = Stamp::of(&meta);
        if let Some((known, split)) = self.catalog.stamps.get(&path)
            && *known == stamp
        {
            let split = split.clone();
            return self.add(split, None, path, stamp);
        }
        let compression = Compression::of(&path);
        if compression != Compression::None {
            if self.shared.config.follow {
                let code = codes::COMPRESSED_FOLLOW;
                return Err(SourceError::stop(
                    code,
                    format!("{} is compressed, and the pattern is followed. {}", path.display(), code.remedy),
                ));
            }
            if meta.len() == 0 {
                return Err(broken(&path, &std::io::Error::new(ErrorKind::UnexpectedEof, "it is empty")));
            }
        }
        if meta.len() == 0 {
            return Ok(());
        }
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound && self.shared.config.follow => return Ok(()),
            Err(error) => return Err(unreadable(&path, &error)),
        };
        let meta = file.metadata().map_err(|error| unreadable(&path, &error))?;
        let stamp = Stamp::of(&meta);
        match self.identify(&path, &file, &meta, compression)? {
            Some((id, split)) => self.add(split, Some(id), path, stamp),
            None => Ok(()),
        }
    }

    /// What the path leads to, if it is a file. `None`: it went away since the folder was listed.
    fn stat(&self, path: &Path) -> Result<Option<Metadata>, SourceError> {
        match std::fs::metadata(path) {
            Ok(meta) if meta.is_file() => Ok(Some(meta)),
            Ok(meta) => {
                let what = if meta.is_dir() { "a folder" } else { "no regular file" };
                Err(SourceError::stop(codes::NOT_A_FILE, format!("{} is {what}. {}", path.display(), codes::NOT_A_FILE.remedy)))
            }
            Err(error) if error.kind() == ErrorKind::NotFound && self.shared.config.follow && std::fs::symlink_metadata(path).is_err() => {
                Ok(None)
            }
            Err(error) => Err(unreadable(path, &error)),
        }
    }

    /// Which split a file is. `None`: it has no whole line yet.
    fn identify(
        &mut self,
        path: &Path,
        file: &File,
        meta: &Metadata,
        compression: Compression,
    ) -> Result<Option<(FileId, SplitId)>, SourceError> {
        for (id, split) in self.by_inode.get(&meta.ino()).into_iter().flatten() {
            if !self.seen.contains(split) && self.fits(path, file, meta, id, split)? {
                return Ok(Some((id.clone(), split.clone())));
            }
        }
        let whole = |file| Head::of_whole(file).map(Some);
        let head = match (compression, self.shared.config.follow) {
            (Compression::Gzip | Compression::Zstd, _) => whole(file),
            (Compression::None, true) => Head::of_plain(file),
            (Compression::None, false) => Head::of_plain(file).and_then(|head| head.map_or_else(|| whole(file), |head| Ok(Some(head)))),
        };
        let Some(head) = head.map_err(|error| unreadable(path, &error))? else { return Ok(None) };
        let namesakes = self.by_inode.entry(meta.ino()).or_default();
        let incarnation = namesakes.iter().filter(|(id, _)| id.head == head).map(|(id, _)| id.incarnation + 1).max().unwrap_or(0);
        let id = FileId { inode: meta.ino(), head, incarnation };
        let split = SplitId::try_from(id.to_string())
            .map_err(|error| SourceError::stop(codes::UNREADABLE, format!("{}: {error}", path.display())))?;
        namesakes.insert(0, (id.clone(), split.clone()));
        Ok(Some((id, split)))
    }

    /// Is the file what the split was read from?
    fn fits(&self, path: &Path, file: &File, meta: &Metadata, id: &FileId, split: &SplitId) -> Result<bool, SourceError> {
        let place = farthest(split, self.shared, self.known);
        if !holds(file, meta, path, id, place.as_ref()).map_err(|error| unreadable(path, &error))? {
            return Ok(false);
        }
        if let Some(place) = place.filter(|place| !place.compressed) {
            let largest = self.shared.largest_size(split, &place);
            if meta.len() < largest && !self.shared.abandoned(split) {
                return Err(name(split, explain::unread(codes::TRUNCATED, "was cut short", &place, meta.len()..largest)));
            }
        }
        Ok(true)
    }

    fn add(&mut self, split: SplitId, id: Option<FileId>, path: PathBuf, stamp: Stamp) -> Result<(), SourceError> {
        if !self.seen.insert(split.clone()) {
            return Ok(());
        }
        self.catalog.stamps.insert(path.clone(), (stamp, split.clone()));
        self.shared.config.memory.note(&split, &path, stamp.size);
        match self.catalog.listings.entry(split.clone()) {
            Entry::Occupied(mut listed) => {
                listed.get_mut().path = path;
                if self.shared.config.follow {
                    listed.get_mut().size = stamp.size;
                }
            }
            Entry::Vacant(free) => {
                let id = id.map_or_else(|| file_id(&split), Ok)?;
                free.insert(Listing { id, path, size: stamp.size });
            }
        }
        self.found.push(split);
        Ok(())
    }

    /// Looks for the splits that were there before and are no longer named by the pattern. Gives those that have been found under another name.
    fn for_the_missing(&mut self) -> Result<Vec<SplitId>, SourceError> {
        let missing: Vec<(SplitId, FileId)> = self
            .by_inode
            .values()
            .flatten()
            .filter(|(_, split)| !self.seen.contains(split))
            .map(|(id, split)| (split.clone(), id.clone()))
            .collect();
        let mut moved = Vec::new();
        for (split, id) in missing {
            let place = farthest(&split, self.shared, self.known);
            let ended = place.as_ref().is_some_and(|place| self.shared.read_to_the_end(&split, place));
            if ended && !self.shared.config.follow {
                continue;
            }
            let found = self.shared.config.memory.of(&split).map(|found| found.path);
            let Some(last_path) = found.or_else(|| place.as_ref().map(|place| PathBuf::from(&place.path))) else { continue };
            if let Some((path, stamp)) = self.find_moved(&last_path, &split, &id)? {
                self.add(split.clone(), Some(id), path, stamp)?;
                self.found.pop();
                moved.push(split);
            } else if !ended {
                self.judge_missing(&split, &id, place.as_ref(), &last_path)?;
            }
        }
        Ok(moved)
    }

    /// The split's file under another name in its folder.
    fn find_moved(&mut self, last_path: &Path, split: &SplitId, id: &FileId) -> Result<Option<(PathBuf, Stamp)>, SourceError> {
        let Some(path) = self.in_folder_of(last_path, id.inode) else { return Ok(None) };
        let Ok(file) = File::open(&path) else { return Ok(None) };
        let meta = file.metadata().map_err(|error| unreadable(&path, &error))?;
        let same = meta.is_file() && meta.ino() == id.inode && self.fits(&path, &file, &meta, id, split)?;
        Ok(same.then(|| (path, Stamp::of(&meta))))
    }

    fn in_folder_of(&mut self, path: &Path, inode: u64) -> Option<PathBuf> {
        let folder = path.parent()?;
        let files = self.folders.entry(folder.to_owned()).or_insert_with(|| inodes(folder));
        files.get(&inode).cloned()
    }

    /// A split that was not read to its end and is not there: an error, unless somebody has given it up.
    fn judge_missing(&self, split: &SplitId, id: &FileId, place: Option<&Place>, last_path: &Path) -> Result<(), SourceError> {
        if self.shared.abandoned(split) {
            tracing::warn!(%split, path = %last_path.display(), "the unread rest of this split is given up, as configured");
            return Ok(());
        }
        let at_same_path = self.inodes.get(&id.inode).is_some_and(|path| path == last_path);
        let (code, what) = if at_same_path {
            (codes::TRUNCATED, "was cut short or overwritten in place")
        } else {
            (codes::LOST_FILE, "is not there any more, nor under another name in its folder")
        };
        let beginning = Place::beginning(last_path.display().to_string(), 0, None, false);
        let place = place.unwrap_or(&beginning);
        let largest = self.shared.largest_size(split, place);
        Err(name(split, explain::unread(code, what, place, place.offset..largest)))
    }
}

/// Is the file what the split was read from, up to that place?
pub(super) fn holds(file: &File, meta: &Metadata, path: &Path, id: &FileId, place: Option<&Place>) -> std::io::Result<bool> {
    if meta.ino() != id.inode || !id.head.matches(file)? {
        return Ok(false);
    }
    let Some(place) = place else { return Ok(true) };
    // A new file often gets the inode of one that was removed. Under another name it must be as old as the one that was read, where that is known.
    let other_age = matches!((place.born, born(meta)), (Some(then), Some(now)) if then != now);
    if other_age && path != Path::new(&place.path) {
        return Ok(false);
    }
    if place.compressed {
        return Ok(meta.len() == place.seen);
    }
    let tail = read_at_most(file, place.offset.saturating_sub(place.tail_bytes() as u64), place.tail_bytes())?;
    Ok(meta.len() >= place.offset && short_hash(&tail) == place.tail)
}

/// The files of a folder by inode. A folder that cannot be read has none.
pub(super) fn inodes(folder: &Path) -> BTreeMap<u64, PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| (entry.ino(), entry.path())).collect()
}

pub(super) fn unreadable(path: &Path, error: &std::io::Error) -> SourceError {
    SourceError::io(codes::UNREADABLE, &format!("cannot read {}", path.display()), error)
}

/// Says which split an error is about: `abandon` wants to know.
fn name(split: &SplitId, error: SourceError) -> SourceError {
    SourceError { message: format!("{} (split {split})", error.message), ..error }
}
