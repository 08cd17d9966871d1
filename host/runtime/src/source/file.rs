//! Files that a pattern names. A split is a file.
//!
//! Reading is block-wise: a block's bytes become the batch, and nothing is touched but to find where records end. What a file holds is trusted only as far
//! as it was read: a position carries a hash of the bytes before it, and a file that was cut short, overwritten or taken away before it was read to its end is a
//! coded stop that names what is missing. docs/sources.md says what becomes of every kind of bad input.
//!
//! Modules in reading order: [`config`]; `identity` what makes a file the same file; `place` where reading goes on; `discover` which files are which splits; `open`;
//! `reader`; `blocks` and `buffer` bytes, plain or decompressed; `cut` bytes into records; `header` of CSV files; `explain` what is wrong, for people; `watch` for changes; `memory`, `shared`.

mod blocks;
mod buffer;
pub mod config;
mod cut;
mod discover;
mod explain;
mod header;
mod identity;
mod memory;
mod open;
mod place;
mod reader;
mod shared;
mod watch;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use weir_engine::{Format, Input};
use weir_protocol::{Position, Positions, SplitId};

pub use config::{FileFormat, FileSourceConfig};

use discover::{Catalog, Known};
use open::Opening;
use place::Place;
use shared::Shared;
use watch::FileWatch;

use super::{Source, SourceError, SplitReader, codes};

/// Files that a pattern names.
pub struct FileSource {
    shared: Arc<Shared>,
    catalog: Arc<Mutex<Catalog>>,
    /// The decided positions, as the last discovery was told them.
    known: Known,
    watch: Option<FileWatch>,
}

impl FileSource {
    /// A source that opens nothing yet. A relative pattern counts from `base_folder`, the configuration file's.
    pub fn new(config: FileSourceConfig, base_folder: &Path) -> Result<Self, SourceError> {
        let shared = Shared::new(config, base_folder)?;
        Ok(Self { shared: Arc::new(shared), catalog: Arc::default(), known: Known::new(), watch: None })
    }

    /// The header of the first file that has one.
    async fn first_header(&self) -> Result<Option<Vec<String>>, SourceError> {
        let shared = self.shared.clone();
        let look = move || {
            for path in shared.paths()? {
                if !path.is_file() {
                    continue;
                }
                match header::read_header(&path, shared.config.max_record(), shared.config.follow) {
                    Ok(Some(header)) => return Ok(Some(header.columns)),
                    Ok(None) => {}
                    Err(_) if shared.config.follow && !path.exists() => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(None)
        };
        tokio::task::spawn_blocking(look).await.map_err(|error| SourceError::cut_off(&error))?
    }
}

#[async_trait]
impl Source for FileSource {
    fn identity(&self) -> String {
        format!("file {}", self.shared.config.path)
    }

    fn bounded(&self) -> bool {
        !self.shared.config.follow
    }

    async fn prepare(&mut self) -> Result<Input, SourceError> {
        let follow = self.shared.config.follow;
        if follow {
            self.watch = Some(FileWatch::new(&self.shared.pattern, self.shared.config.poll()));
        }
        let format = match self.shared.config.format {
            FileFormat::Lines => Format::Lines,
            FileFormat::Json => Format::Json,
            FileFormat::Csv => Format::Csv,
        };
        let mut columns = Vec::new();
        if self.shared.is_csv() {
            columns = loop {
                match self.first_header().await? {
                    Some(columns) => break columns,
                    None if follow => self.changed().await?,
                    None => {
                        let code = codes::NO_FILES;
                        return Err(SourceError::stop(
                            code,
                            format!("no file that matches {} has a header. {}", self.shared.pattern, code.remedy),
                        ));
                    }
                }
            };
            self.shared = Arc::new(Shared { columns: columns.clone(), ..(*self.shared).clone() });
        }
        Ok(Input { format, columns })
    }

    async fn discover(&mut self, known: &Positions) -> Result<Vec<SplitId>, SourceError> {
        let known = discover::decode(known)?;
        let (shared, catalog) = (self.shared.clone(), self.catalog.clone());
        let look = move || {
            let splits = catalog.lock().unwrap_or_else(PoisonError::into_inner).discover(&shared, &known);
            (known, splits)
        };
        let (known, splits) = tokio::task::spawn_blocking(look).await.map_err(|error| SourceError::cut_off(&error))?;
        self.known = known;
        splits
    }

    async fn open(&self, split: &SplitId, from: Option<&Position>) -> Result<Box<dyn SplitReader>, SourceError> {
        let from = from.map(|position| Place::decode(split, position)).transpose()?;
        let listing = self.catalog.lock().unwrap_or_else(PoisonError::into_inner).listing(split).cloned();
        let farthest = discover::farthest(split, &self.shared, &self.known);
        let opening = Opening { shared: self.shared.clone(), split: split.clone(), from, listing, farthest };
        let reader = tokio::task::spawn_blocking(|| opening.run()).await.map_err(|error| SourceError::cut_off(&error))??;
        Ok(Box::new(reader))
    }

    async fn changed(&self) -> Result<(), SourceError> {
        match &self.watch {
            Some(watch) => watch.changed().await,
            None => crate::clock::sleep(self.shared.config.poll()).await,
        }
        Ok(())
    }

    fn describe(&self, split: &SplitId, position: Option<&Position>) -> String {
        let place = position.and_then(|position| Place::decode(split, position).ok());
        let listing =
            self.catalog.lock().unwrap_or_else(PoisonError::into_inner).listing(split).map(|listing| listing.path.display().to_string());
        match (place, listing) {
            (Some(place), _) => format!("{}, line {}, byte {}", place.path, place.line + 1, place.offset),
            (None, Some(path)) => path,
            (None, None) => split.to_string(),
        }
    }
}
