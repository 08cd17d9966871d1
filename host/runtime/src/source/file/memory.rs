//! What this process knows of files beside the positions of the ledger.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use weir_protocol::SplitId;

use super::place::Place;

/// The files that a pipeline has found, for as long as the process lives. A pipeline that goes back to its last decision forgets what it read after it;
/// should a file be cut short or removed meanwhile, only this tells that something is missing. All clones are one memory, so it outlives a generation's source
/// with the configuration that the source is made of.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory(Arc<Mutex<BTreeMap<SplitId, Found>>>);

/// A file that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Where.
    pub(super) path: PathBuf,
    /// The largest size that it was seen to have.
    pub(super) largest: u64,
}

impl Memory {
    /// Notes that a file was found there, with that size.
    pub(super) fn note(&self, split: &SplitId, path: &Path, size: u64) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match all.get_mut(split) {
            Some(found) => {
                found.largest = found.largest.max(size);
                if found.path != path {
                    found.path = path.to_owned();
                }
            }
            None => {
                all.insert(split.clone(), Found { path: path.to_owned(), largest: size });
            }
        }
    }

    /// What is known of a split's file.
    pub(super) fn of(&self, split: &SplitId) -> Option<Found> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(split).cloned()
    }

    /// Every split that was ever found.
    pub(super) fn splits(&self) -> Vec<SplitId> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }
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
