//! What a reader of a table would see, as a stream.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use super::check::{Key, key};
use super::store::RowStore;
use crate::transactions::Load;
use crate::types::{KeyType, TableSpec};

/// How rows are written out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum RowsAs {
    /// As sent, each followed by a line feed.
    #[default]
    Lines,
    /// Each row as a JSON string on a line; tells a line feed inside of a row from the end of one.
    Json,
}

/// Where a row is: its transaction, and its number among that transaction's rows.
type Place = (i64, u64);

/// Looks at one row: its load, its number in there, its bytes.
type Visit<'a> = dyn FnMut(&Load, u64, &[u8]) -> io::Result<()> + 'a;

/// The visible rows of a table at one moment.
pub(crate) struct View {
    pub(crate) store: Arc<RowStore>,
    pub(crate) spec: Arc<TableSpec>,
    pub(crate) loads: Vec<Load>,
    pub(crate) rows_as: RowsAs,
}

impl View {
    /// Writes all rows in commit order. A UNIQUE table shows only the last row of each key, for which all keys are held
    /// in memory.
    pub(crate) fn write(&self, each: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let winners = match self.spec.key_type {
            KeyType::Duplicate => None,
            KeyType::Unique => Some(self.winners()?),
        };
        let mut line = Vec::new();
        self.walk(&mut |load, at, row| {
            if let Some(winners) = &winners
                && winners.get(&key(row, &self.spec, &load.format)) != Some(&(load.transaction, at))
            {
                return Ok(());
            }
            line.clear();
            match self.rows_as {
                RowsAs::Lines => line.extend_from_slice(row),
                RowsAs::Json => serde_json::to_writer(&mut line, &String::from_utf8_lossy(row))?,
            }
            line.push(b'\n');
            each(&line)
        })
    }

    fn winners(&self) -> io::Result<HashMap<Key, Place>> {
        let mut winners = HashMap::new();
        self.walk(&mut |load, at, row| {
            winners.insert(key(row, &self.spec, &load.format), (load.transaction, at));
            Ok(())
        })?;
        Ok(winners)
    }

    fn walk(&self, each: &mut Visit<'_>) -> io::Result<()> {
        let mut row = Vec::new();
        for load in self.loads.iter().filter(|load| load.stored_bytes > 0) {
            let mut reader = self.store.read(load.transaction, load.stored_bytes)?;
            let mut at = 0;
            while reader.next(&mut row)? {
                each(load, at, &row)?;
                at += 1;
            }
        }
        Ok(())
    }
}
