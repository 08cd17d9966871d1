//! What this process knows of files beside the positions of the ledger.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use weir_protocol::SplitId;

use super::place::Place;

/// The largest size that each followed file was seen to have, by folder and split, for as long as the process lives. A pipeline that goes back to its last
/// decision forgets what it read after it; should the file be cut short meanwhile, only this tells that something is missing.
static SEEN: Mutex<BTreeMap<(PathBuf, SplitId), u64>> = Mutex::new(BTreeMap::new());

/// Notes that a file was seen to have that size.
pub(super) fn note_size(folder: &Path, split: &SplitId, size: u64) {
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = seen.entry((folder.to_owned(), split.clone())).or_default();
    *known = size.max(*known);
}

/// The largest size that a file was seen to have.
pub(super) fn largest_size(folder: &Path, split: &SplitId) -> u64 {
    let seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    seen.get(&(folder.to_owned(), split.clone())).copied().unwrap_or_default()
}

/// How far each split has been read in this generation, decided or not.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress(Arc<Mutex<BTreeMap<SplitId, Place>>>);

impl Progress {
    /// A reader has come that far. One that replays an older stretch changes nothing.
    pub(super) fn note(&self, split: &SplitId, place: &Place) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match all.get_mut(split) {
            Some(known) if known.offset > place.offset => {}
            Some(known) => known.clone_from(place),
            None => {
                all.insert(split.clone(), place.clone());
            }
        }
    }

    /// How far a split has been read.
    pub(super) fn of(&self, split: &SplitId) -> Option<Place> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(split).cloned()
    }
}
