//! The bytes of one file in order, plain or decompressed. Everything here blocks, and runs where that is allowed.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use super::buffer::{BLOCK_BYTES, Buffer};
use super::identity::{MAX_TAIL_BYTES, read_at_most, read_full_at, short_hash};

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    None,
    Gzip,
    Zstd,
}

impl Compression {
    /// By the end of the file's name.
    pub(super) fn of(path: &Path) -> Self {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("gz") => Self::Gzip,
            Some("zst") => Self::Zstd,
            _ => Self::None,
        }
    }
}

/// Where bytes come from.
enum Input {
    Plain(File),
    Gzip(Box<MultiGzDecoder<BufReader<File>>>),
    Zstd(Box<zstd::stream::read::Decoder<'static, BufReader<File>>>),
}

/// A file that is being read, with what was read and not cut off yet.
pub(super) struct Blocks {
    input: Input,
    pub(super) path: PathBuf,
    pub(super) buffer: Buffer,
    /// The first byte that has not been read.
    next: u64,
    /// Where reading ends; `None`: wherever the file does.
    pub(super) end: Option<u64>,
    /// The last bytes before `next`, as they were read.
    recent: Vec<u8>,
}

/// What a look for more bytes found.
#[derive(Debug)]
pub(super) enum Fetched {
    /// More. The file has that size on disk.
    More { size: u64 },
    /// None, for now or for good. The file has that size on disk, and so many names.
    Nothing { size: u64, links: u64 },
    /// The file no longer holds what was read from it: it was cut short, or overwritten. It has that size now, and was seen to have had `unread` before.
    Replaced { size: u64, unread: u64 },
    /// The compressed data ends too early or is damaged.
    Broken(io::Error),
}

impl Blocks {
    /// Opens a file at its beginning.
    pub(super) fn open(path: PathBuf, file: File, compression: Compression, end: Option<u64>) -> io::Result<Self> {
        let input = match compression {
            Compression::None => Input::Plain(file),
            Compression::Gzip => Input::Gzip(Box::new(MultiGzDecoder::new(BufReader::with_capacity(128 * 1024, file)))),
            Compression::Zstd => Input::Zstd(Box::new(zstd::stream::read::Decoder::new(file)?)),
        };
        Ok(Self { input, path, buffer: Buffer::default(), next: 0, end, recent: Vec::new() })
    }

    /// Goes to a place that was read up to before. False: what lies before it is not what was read then.
    pub(super) fn go_to(&mut self, offset: u64, tail: &str, tail_bytes: usize) -> io::Result<bool> {
        let before = match &mut self.input {
            Input::Plain(file) => read_at_most(file, offset.saturating_sub(tail_bytes as u64), tail_bytes)?,
            Input::Gzip(decoder) => skip(decoder, offset, tail_bytes)?,
            Input::Zstd(decoder) => skip(decoder, offset, tail_bytes)?,
        };
        if before.len() != tail_bytes || short_hash(&before) != tail {
            return Ok(false);
        }
        self.next = offset;
        self.recent = before;
        Ok(true)
    }

    /// The last bytes before what was read last.
    pub(super) fn recent(&self) -> &[u8] {
        &self.recent
    }

    /// The first byte that has not been read.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Reads on, at most as much as makes up a block with what is there, or twice as much where that is not enough.
    pub(super) fn fetch(&mut self) -> io::Result<Fetched> {
        let held = self.buffer.window().len();
        let room = if held < BLOCK_BYTES { BLOCK_BYTES - held } else { held };
        match &mut self.input {
            Input::Plain(_) => self.fetch_plain(room),
            Input::Gzip(decoder) => Ok(Self::fetched(&mut self.buffer, &mut self.next, room, decoder)),
            Input::Zstd(decoder) => Ok(Self::fetched(&mut self.buffer, &mut self.next, room, decoder)),
        }
    }

    fn fetch_plain(&mut self, room: usize) -> io::Result<Fetched> {
        let Input::Plain(file) = &self.input else { return Ok(Fetched::Nothing { size: 0, links: 0 }) };
        let intact = follows(file, self.next, &self.recent)?;
        let meta = file.metadata()?;
        let size = meta.len();
        if !intact || size < self.next {
            return Ok(Fetched::Replaced { size, unread: 0 });
        }
        let there = self.end.unwrap_or(u64::MAX).min(size).saturating_sub(self.next);
        let more = room.min(usize::try_from(there).unwrap_or(usize::MAX));
        let next = self.next;
        let held = self.buffer.window().len();
        let bytes = if more > 0 { self.buffer.fill(more, |space| read_full_at(file, next, space))? } else { 0 };
        // Once more: what was just read is worth nothing if the file was overwritten meanwhile, and what was there before that is lost.
        if !follows(file, next, &self.recent)? {
            self.buffer.keep(held);
            return Ok(Fetched::Replaced { size, unread: size });
        }
        self.next += bytes as u64;
        remember(&mut self.recent, self.buffer.window().get(held..).unwrap_or_default());
        Ok(if bytes > 0 { Fetched::More { size } } else { Fetched::Nothing { size, links: meta.nlink() } })
    }

    fn fetched(buffer: &mut Buffer, next: &mut u64, room: usize, decoder: &mut impl Read) -> Fetched {
        let read = buffer.fill(room, |space| {
            let mut got = 0;
            while let Some(rest) = space.get_mut(got..).filter(|rest| !rest.is_empty()) {
                match decoder.read(rest) {
                    Ok(0) => break,
                    Ok(more) => got += more,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(got)
        });
        match read {
            Ok(0) => Fetched::Nothing { size: 0, links: 1 },
            Ok(bytes) => {
                *next += bytes as u64;
                Fetched::More { size: 0 }
            }
            Err(error) => Fetched::Broken(error),
        }
    }
}

/// Do these bytes still lie before that place?
fn follows(file: &File, place: u64, before: &[u8]) -> io::Result<bool> {
    Ok(read_at_most(file, place.saturating_sub(before.len() as u64), before.len())? == before)
}

/// Decompresses up to a place, and gives the last bytes before it; fewer where the data ends before.
fn skip(decoder: &mut impl Read, offset: u64, tail_bytes: usize) -> io::Result<Vec<u8>> {
    let far = offset.saturating_sub(tail_bytes as u64);
    let skipped = io::copy(&mut decoder.take(far), &mut io::sink())?;
    let mut before = Vec::new();
    if skipped == far {
        decoder.take(tail_bytes as u64).read_to_end(&mut before)?;
    }
    Ok(before)
}

/// Notes bytes that follow on the ones noted before, and forgets all but the last.
pub(super) fn remember(recent: &mut Vec<u8>, bytes: &[u8]) {
    let news = bytes.get(bytes.len().saturating_sub(MAX_TAIL_BYTES)..).unwrap_or(bytes);
    let keep = MAX_TAIL_BYTES - news.len();
    recent.drain(..recent.len().saturating_sub(keep));
    recent.extend_from_slice(news);
}

/// Whether an error of a decoder is about the data, not about the disk.
pub(super) fn is_broken(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof};
    // zstd's own errors carry no code of the system.
    error.raw_os_error().is_none() && matches!(error.kind(), InvalidData | InvalidInput | Other | UnexpectedEof)
}
