//! Opens a split: finds its file, makes sure that it is the one that was read, and goes to where reading goes on.

use std::fs::{File, Metadata};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir_protocol::SplitId;

use super::blocks::{Blocks, Compression, is_broken};
use super::discover::{Listing, file_id, holds, inodes, unreadable};
use super::explain;
use super::header::{broken, check_same, read_header};
use super::identity::{FileId, born};
use super::place::Place;
use super::reader::FileReader;
use super::shared::Shared;
use crate::source::{SourceError, codes};

/// What is known of the split that is to be opened.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) shared: Arc<Shared>,
    pub(super) split: SplitId,
    /// Where reading goes on; `None`: at the beginning.
    pub(super) from: Option<Place>,
    /// Where a discovery has found it.
    pub(super) listing: Option<Listing>,
    /// How far it was read in any generation.
    pub(super) farthest: Option<Place>,
}

impl Opening {
    /// Opens it. Blocks.
    pub(super) fn run(self) -> Result<FileReader, SourceError> {
        let id = file_id(&self.split)?;
        let Some((path, file, meta)) = self.find(&id)? else { return self.not_found(&id) };
        let compression = Compression::of(&path);
        let compressed = compression != Compression::None;
        let size = self.listing.as_ref().map_or(meta.len(), |listing| listing.size);
        let end = (!self.shared.config.follow && !compressed).then_some(size);
        let mut blocks = Blocks::open(path.clone(), file, compression, end).map_err(|error| unreadable(&path, &error))?;
        let shown = path.display().to_string();
        let Some(from) = self.from.filter(|place| place.offset > 0) else {
            let place = Place::beginning(shown, meta.len(), born(&meta), compressed);
            let wants_header = self.shared.is_csv();
            return Ok(FileReader::new(self.split, self.shared, blocks, place, wants_header));
        };
        let there = blocks.go_to(from.offset, &from.tail, from.tail_bytes()).map_err(|error| match is_broken(&error) {
            true => broken(&path, &error),
            false => unreadable(&path, &error),
        })?;
        if !there {
            return Err(changed(&path, &from));
        }
        if self.shared.is_csv()
            && let Some(header) = read_header(&path, self.shared.config.max_record(), false)?
        {
            check_same(&header, &self.shared.columns, &path)?;
        }
        let seen = if compressed { from.seen } else { from.seen.max(meta.len()) };
        let place = Place { path: shown, born: born(&meta), seen, ..from };
        Ok(FileReader::new(self.split, self.shared, blocks, place, false))
    }

    /// The file: where it was last, under another name in that folder, or wherever the pattern finds it.
    fn find(&self, id: &FileId) -> Result<Option<(PathBuf, File, Metadata)>, SourceError> {
        let listed = self.listing.iter().map(|listing| listing.path.clone());
        let places = self.from.iter().chain(&self.farthest).map(|place| PathBuf::from(&place.path));
        let mut candidates: Vec<PathBuf> = listed.chain(places).collect();
        let mut folders: Vec<PathBuf> = candidates.iter().filter_map(|path| path.parent().map(Path::to_owned)).collect();
        folders.dedup();
        if let Some(found) = self.first_that_holds(&candidates, id)? {
            return Ok(Some(found));
        }
        candidates.clear();
        candidates.extend(folders.iter().filter_map(|folder| inodes(folder).remove(&id.inode)));
        candidates.extend(self.shared.paths()?);
        self.first_that_holds(&candidates, id)
    }

    fn first_that_holds(&self, candidates: &[PathBuf], id: &FileId) -> Result<Option<(PathBuf, File, Metadata)>, SourceError> {
        for path in candidates {
            let Ok(meta) = std::fs::metadata(path) else { continue };
            if !meta.is_file() {
                continue;
            }
            let file = match File::open(path) {
                Ok(file) => file,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(unreadable(path, &error)),
            };
            let meta = file.metadata().map_err(|error| unreadable(path, &error))?;
            let same = |place| holds(&file, &meta, path, id, place).map_err(|error| unreadable(path, &error));
            // The bytes before the farthest place must be there, too: what is read up to it is then what was read before.
            if same(self.from.as_ref())? && same(self.farthest.as_ref())? {
                return Ok(Some((path.clone(), file, meta)));
            }
        }
        Ok(None)
    }

    fn not_found(self, id: &FileId) -> Result<FileReader, SourceError> {
        let path = self.listing.as_ref().map(|listing| listing.path.clone());
        let beginning = Place::beginning(path.map_or_else(|| self.split.to_string(), |path| path.display().to_string()), 0, None, false);
        let from = self.from.unwrap_or(beginning);
        let newest = self.farthest.as_ref().unwrap_or(&from);
        let largest = self.shared.largest_size(&self.split, newest).max(from.seen);
        let ended = newest.offset <= from.offset && self.shared.read_to_the_end(&self.split, &from) && from.offset > 0;
        if ended {
            return Ok(FileReader::ended(self.split, self.shared, from));
        }
        let in_place = std::fs::metadata(&from.path).is_ok_and(|meta| std::os::unix::fs::MetadataExt::ino(&meta) == id.inode);
        if in_place {
            return Err(explain::unread(codes::CHANGED, "does not hold any more what was read from it", &from, from.offset..largest));
        }
        Err(explain::unread(codes::LOST_FILE, "is not there any more, nor under another name in its folder", &from, from.offset..largest))
    }
}

fn changed(path: &Path, from: &Place) -> SourceError {
    let code = codes::CHANGED;
    SourceError::stop(
        code,
        format!(
            "{} does not hold any more what was read from it before byte {}, record {}. {}",
            path.display(),
            from.offset,
            from.record,
            code.remedy
        ),
    )
}
