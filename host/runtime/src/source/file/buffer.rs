//! Blocks of bytes. What is cut off a block becomes a batch without being copied; the rest is carried over into the next block.

use bytes::{Bytes, BytesMut};

/// How many bytes are read at a time, and held at most of what is not cut off yet, unless one record is longer.
pub(super) const BLOCK_BYTES: usize = 1024 * 1024;
/// Blocks that were cut up and are kept to be filled again, once the batches made of them are gone.
const MAX_USED_BLOCKS: usize = 2;

/// What was read and not cut off yet.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    block: Bytes,
    start: usize,
    end: usize,
    used: Vec<Bytes>,
}

impl Buffer {
    /// What was read and not cut off yet.
    pub(super) fn window(&self) -> &[u8] {
        self.block.get(self.start..self.end).unwrap_or_default()
    }

    /// Cuts off the first `length` bytes and gives a part of them.
    pub(super) fn take(&mut self, length: usize, part: std::ops::Range<usize>) -> Bytes {
        let end = (self.start + part.end).min(self.end);
        let begin = (self.start + part.start).min(end);
        let bytes = self.block.slice(begin..end);
        self.skip(length);
        bytes
    }

    /// Cuts off the first `length` bytes.
    pub(super) fn skip(&mut self, length: usize) {
        self.start = (self.start + length).min(self.end);
    }

    /// Forgets what was read last: all but the first `length` bytes.
    pub(super) fn keep(&mut self, length: usize) {
        self.end = self.end.min(self.start + length);
    }

    /// Reads at most `more` bytes behind what is there. `read` says how many it wrote into the space it was given.
    pub(super) fn fill<E>(&mut self, more: usize, read: impl FnOnce(&mut [u8]) -> Result<usize, E>) -> Result<usize, E> {
        let carried = self.window().len();
        let mut next = self.space(carried + more);
        let (front, back) = next.split_at_mut(carried);
        front.copy_from_slice(self.window());
        let space = back.len().min(more);
        let got = read(back.get_mut(..space).unwrap_or_default())?;
        let used = std::mem::replace(&mut self.block, next.freeze());
        if self.used.len() < MAX_USED_BLOCKS {
            self.used.push(used);
        }
        self.start = 0;
        self.end = carried + got.min(space);
        Ok(got)
    }

    /// Gives back everything that is not needed to hold what was not cut off yet. For readers that rest.
    pub(super) fn shrink(&mut self) {
        self.block = Bytes::copy_from_slice(self.window());
        self.start = 0;
        self.end = self.block.len();
        self.used = Vec::new();
    }

    /// A block of at least that size: a used one that no batch holds any more, or a new one.
    fn space(&mut self, size: usize) -> BytesMut {
        for used in std::mem::take(&mut self.used) {
            if used.len() >= size && used.len() / 2 <= size {
                match used.try_into_mut() {
                    Ok(block) => return block,
                    Err(held) => self.used.push(held),
                }
            }
        }
        BytesMut::zeroed(size)
    }
}
