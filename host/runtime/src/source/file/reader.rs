//! Reads one file, block by block: fetches a block where blocking is allowed, cuts it into records, and hands them on without copying them.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::task::JoinHandle;
use weir_engine::{Batch, Framing};
use weir_protocol::{Position, SplitId};

use super::blocks::{Blocks, Fetched, is_broken, remember};
use super::buffer::BLOCK_BYTES;
use super::config::FileFormat;
use super::cut::{Cut, CutLimits, Cutter, HeaderFound, Records, Window, find_header};
use super::identity::short_hash;
use super::place::Place;
use super::shared::Shared;
use super::{explain, header};
use crate::source::{BatchLimits, Read, SourceError, SplitReader, codes};

/// Reads one file in order.
pub(super) struct FileReader {
    split: SplitId,
    shared: Arc<Shared>,
    blocks: Held,
    cutter: Cutter,
    /// Where reading would go on after what was handed out.
    place: Place,
    /// The last bytes before the place.
    tail: Vec<u8>,
    /// A plain file that is not followed is read this far, and to the end of the record that lies across it.
    bound: Option<u64>,
    /// A CSV file whose header has not been read yet.
    wants_header: bool,
    /// Nothing more was there at the last look.
    dry: Option<Dry>,
}

/// The file, or the look for more of it that is under way.
enum Held {
    Here(Box<Blocks>),
    Fetching(JoinHandle<(Box<Blocks>, std::io::Result<Fetched>)>),
    /// There is nothing left to read, or no way.
    Gone,
}

/// Why nothing more is there.
#[derive(Clone, Copy, Debug)]
enum Dry {
    /// The file ends here, for now or for good. `links`: how many names it has.
    End { links: u64 },
    /// The file no longer holds what was read from it.
    Replaced { size: u64 },
}

impl FileReader {
    /// A reader of an open file that stands at a place.
    pub(super) fn new(split: SplitId, shared: Arc<Shared>, blocks: Blocks, place: Place, wants_header: bool) -> Self {
        let cutter = Cutter::new(&shared.config, shared.columns.len());
        let (tail, bound) = (blocks.recent().to_vec(), blocks.end);
        let blocks = Held::Here(Box::new(blocks));
        Self { split, shared, blocks, cutter, place, tail, bound, wants_header, dry: None }
    }

    /// A reader of a file that was read to its end before, and is gone.
    pub(super) fn ended(split: SplitId, shared: Arc<Shared>, place: Place) -> Self {
        let cutter = Cutter::new(&shared.config, shared.columns.len());
        Self { split, shared, blocks: Held::Gone, cutter, place, tail: Vec::new(), bound: None, wants_header: false, dry: None }
    }

    async fn read_next(&mut self, limits: CutLimits) -> Result<Read, SourceError> {
        if matches!(self.blocks, Held::Gone) {
            return Ok(Read::End);
        }
        self.dry = None;
        if self.wants_header && !self.read_header().await? {
            return self.nothing_left();
        }
        let mut limits = limits;
        let mut starved = false;
        loop {
            if self.bound.is_some_and(|bound| self.place.offset >= bound) {
                return Ok(self.end());
            }
            if starved && self.at_bound() {
                self.cross_bound();
            }
            if self.crosses_bound() {
                limits.records = 1;
            }
            let held = self.blocks().await?.buffer.window().len();
            if self.dry.is_none() && (starved || held < limits.bytes.min(BLOCK_BYTES)) && !self.at_bound() {
                self.fetch().await?;
            }
            if !self.go_past_late_line_feed()? {
                return self.nothing_left();
            }
            let cut = self.cut(&limits)?;
            starved = cut.taken == 0;
            if let Some(batch) = self.hand_out(cut) {
                return Ok(Read::Batch(batch));
            }
            if starved && self.dry.is_some() {
                return self.nothing_left();
            }
        }
    }

    /// The file, after a look that was under way has ended.
    async fn blocks(&mut self) -> Result<&mut Blocks, SourceError> {
        self.finish_fetch().await?;
        match &mut self.blocks {
            Held::Here(blocks) => Ok(blocks),
            Held::Fetching(_) | Held::Gone => {
                Err(SourceError::stop(codes::UNREADABLE, format!("{}: reading has ended before", self.place.path)))
            }
        }
    }

    async fn fetch(&mut self) -> Result<(), SourceError> {
        if let Held::Here(mut blocks) = std::mem::replace(&mut self.blocks, Held::Gone) {
            self.blocks = Held::Fetching(tokio::task::spawn_blocking(move || {
                let fetched = blocks.fetch();
                (blocks, fetched)
            }));
        }
        self.finish_fetch().await
    }

    /// Waits for the look that is under way. A caller that was dropped while it waited finds it here the next time.
    async fn finish_fetch(&mut self) -> Result<(), SourceError> {
        let Held::Fetching(job) = &mut self.blocks else { return Ok(()) };
        let (blocks, fetched) = job.await.map_err(|error| SourceError::cut_off(&error))?;
        self.blocks = Held::Here(blocks);
        let unreadable = |error| {
            SourceError::io(codes::UNREADABLE, &format!("cannot read {} after byte {}", self.place.path, self.place.offset), &error)
        };
        match fetched.map_err(unreadable)? {
            Fetched::More { size } => self.saw(size),
            Fetched::Nothing { size, links } => {
                self.saw(size);
                self.dry = Some(Dry::End { links });
            }
            Fetched::Replaced { size, unread } => {
                self.saw(unread);
                self.dry = Some(Dry::Replaced { size });
            }
            Fetched::Broken(error) if is_broken(&error) => return Err(explain::broken(&self.place, &error)),
            Fetched::Broken(error) => return Err(unreadable(error)),
        }
        Ok(())
    }

    /// Notes the file's size on disk. That of a compressed file is known from before.
    fn saw(&mut self, size: u64) {
        if !self.place.compressed {
            self.place.seen = self.place.seen.max(size);
            if let Held::Here(blocks) = &self.blocks {
                self.shared.config.memory.note(&self.split, &blocks.path, size);
            }
        }
    }

    fn here(&self) -> Option<&Blocks> {
        match &self.blocks {
            Held::Here(blocks) => Some(blocks),
            Held::Fetching(_) | Held::Gone => None,
        }
    }

    fn window(&self) -> &[u8] {
        self.here().map(|blocks| blocks.buffer.window()).unwrap_or_default()
    }

    /// Has everything been fetched that lies before the bound?
    fn at_bound(&self) -> bool {
        self.here().is_some_and(|blocks| blocks.end.is_some_and(|end| blocks.next() >= end))
    }

    /// A record lies across the bound: the file has grown since it was found, or its last line has no line feed. It is read to its end.
    fn cross_bound(&mut self) {
        if let Held::Here(blocks) = &mut self.blocks {
            blocks.end = None;
        }
    }

    fn crosses_bound(&self) -> bool {
        self.bound.is_some() && self.here().is_some_and(|blocks| blocks.end.is_none())
    }

    /// Takes the line feed that came after its record was taken without one. False: more must be seen to tell.
    fn go_past_late_line_feed(&mut self) -> Result<bool, SourceError> {
        if !self.place.unterminated {
            return Ok(true);
        }
        let length = match (self.shared.config.format, self.window()) {
            (_, []) => return Ok(true),
            (_, [b'\n', ..]) => 1,
            (FileFormat::Json | FileFormat::Csv, [b'\r', b'\n', ..]) => 2,
            (FileFormat::Json | FileFormat::Csv, [b'\r']) if self.shared.config.follow => return Ok(false),
            (FileFormat::Lines | FileFormat::Json | FileFormat::Csv, _) => return Err(explain::line_went_on(&self.place)),
        };
        self.place.unterminated = false;
        self.take(length, 1, Records::default());
        self.settle();
        Ok(true)
    }

    /// Nothing comes after what is in front.
    fn is_last(&self) -> bool {
        let bound = self.bound.unwrap_or_default();
        let whole = self.here().is_some_and(|blocks| blocks.next() >= bound);
        !self.shared.config.follow && matches!(self.dry, Some(Dry::End { .. })) && whole
    }

    fn cut(&mut self, limits: &CutLimits) -> Result<Cut, SourceError> {
        let (first, last) = (self.place.offset == 0, self.is_last());
        let Held::Here(blocks) = &self.blocks else { return Ok(Cut::default()) };
        let window = Window { bytes: blocks.buffer.window(), first, last };
        self.cutter.cut(window, limits).map_err(|problem| explain::problem(&problem, &self.place, window.bytes, &self.shared.config))
    }

    /// Takes what was cut off, and makes a batch of it if it holds records.
    fn hand_out(&mut self, cut: Cut) -> Option<Batch> {
        let bytes = self.take(cut.taken, cut.lines, cut.records);
        if cut.count == 0 {
            return None;
        }
        let first = self.place.record;
        self.place.record += u64::from(cut.count);
        self.place.unterminated = cut.unterminated;
        self.settle();
        Some(Batch::new(self.split.clone(), first, cut.count, Framing::LineFeed, bytes, cut.ends.map(Arc::from)))
    }

    /// Takes bytes off the front, and moves the place behind them.
    fn take(&mut self, length: usize, lines: u64, records: Records) -> Bytes {
        let Held::Here(blocks) = &mut self.blocks else { return Bytes::new() };
        let taken = blocks.buffer.window().get(..length).unwrap_or_default();
        remember(&mut self.tail, taken);
        self.place.offset += taken.len() as u64;
        self.place.line += lines;
        match records {
            Records::Window(range) => blocks.buffer.take(length, range),
            Records::Copied(copy) => {
                blocks.buffer.skip(length);
                Bytes::from(copy)
            }
        }
    }

    /// Makes the place true, after it was moved.
    fn settle(&mut self) {
        self.place.tail = short_hash(&self.tail);
        self.shared.progress.note(&self.split, &self.place);
    }

    /// There are no records left in front, and nothing more to fetch.
    fn nothing_left(&mut self) -> Result<Read, SourceError> {
        let follow = self.shared.config.follow;
        match self.dry {
            Some(Dry::Replaced { size }) => self.after_replacement(size),
            Some(Dry::End { links: 0 }) if follow && !self.window().is_empty() => Err(explain::unread(
                codes::LOST_FILE,
                "was removed before its last line was written to its end",
                &self.place,
                self.place.offset..self.place.seen,
            )),
            Some(Dry::End { links: 0 }) if follow => Ok(self.end()),
            Some(Dry::End { .. }) | None if follow => Ok(self.pause()),
            Some(Dry::End { .. }) | None => match self.bound {
                Some(bound) if self.place.offset < bound => {
                    Err(explain::unread(codes::TRUNCATED, "became smaller while it was read", &self.place, self.place.offset..bound))
                }
                Some(_) | None => Ok(self.end()),
            },
        }
    }

    /// The file was cut short or overwritten. What was read from it and handed out is safe; what was there beyond that is lost.
    fn after_replacement(&mut self, size: u64) -> Result<Read, SourceError> {
        let seen = self.place.seen.max(self.place.offset + self.window().len() as u64);
        if self.shared.config.follow && self.place.offset >= seen {
            tracing::warn!(
                file = %self.place.path, split = %self.split, read = self.place.offset, size,
                "a followed file was cut short or overwritten after everything that was seen of it had been read; it begins anew. \
                 What was appended and never seen cannot be known: rotate by rename instead"
            );
            return Ok(self.end());
        }
        Err(explain::unread(codes::TRUNCATED, "was cut short or overwritten while it was read", &self.place, self.place.offset..seen))
    }

    fn end(&mut self) -> Read {
        self.place.whole = self.place.compressed;
        self.settle();
        self.blocks = Held::Gone;
        Read::End
    }

    fn pause(&mut self) -> Read {
        self.settle();
        if let Held::Here(blocks) = &mut self.blocks {
            blocks.buffer.shrink();
        }
        Read::Idle
    }

    /// Goes past the header of a CSV file. False: there is none, or it has not been written to its end.
    async fn read_header(&mut self) -> Result<bool, SourceError> {
        let limit = self.shared.config.max_record();
        loop {
            let ended = self.dry.is_some();
            let last = ended && !self.shared.config.follow;
            let path = self.blocks().await?.path.clone();
            let found = find_header(self.window(), last, limit).map_err(|problem| header::explain(&path, &problem))?;
            match found {
                HeaderFound::Header(found) => {
                    header::check_same(&header::usable(found.clone(), &path)?, &self.shared.columns, &path)?;
                    self.take(found.length, found.lines, Records::default());
                    self.wants_header = false;
                    return Ok(true);
                }
                HeaderFound::Empty => {
                    let rest = self.window().len();
                    self.take(rest, 0, Records::default());
                    return Ok(false);
                }
                HeaderFound::Open if ended => return Ok(false),
                HeaderFound::Open => self.fetch().await?,
            }
        }
    }
}

#[async_trait]
impl SplitReader for FileReader {
    async fn read(&mut self, limits: &BatchLimits) -> Result<Read, SourceError> {
        let limits = CutLimits {
            bytes: limits.bytes,
            records: limits.records.max(1),
            record_bytes: limits.bytes.min(self.shared.config.max_record()),
            ends: limits.ends,
        };
        self.read_next(limits).await
    }

    fn position(&self) -> Position {
        self.place.encode()
    }

    fn next_record(&self) -> u64 {
        self.place.record
    }
}
