//! Lines that hold one JSON value each, in UTF-8. A line of nothing but white space holds no value: it is no record, and has no number.

use memchr::memchr_iter;
use serde::de::IgnoredAny;

use super::{BYTE_ORDER_MARK, Cut, CutLimits, Problem, ProblemKind, Records, Window, line_feeds, too_long, unterminated};

pub(super) fn cut(window: Window<'_>, validate: bool, limits: &CutLimits) -> Result<Cut, Problem> {
    let begin = match mark_length(window) {
        Some(length) => length,
        None => return Ok(Cut::default()),
    };
    let bytes = window.bytes.get(begin..).unwrap_or_default();
    let window = Window { bytes, first: false, last: window.last };
    let shift = |problem: Problem| Problem { at: problem.at + begin, ..problem };
    let mut cut = cut_lines(window, validate, limits).map_err(shift)?;
    if let Records::Window(range) = &mut cut.records {
        *range = range.start + begin..range.end + begin;
    }
    cut.taken += begin;
    Ok(cut)
}

/// How long the byte order mark in front is. `None`: more must be seen to tell.
fn mark_length(window: Window<'_>) -> Option<usize> {
    let mark = window.bytes.iter().zip(BYTE_ORDER_MARK).take_while(|(a, b)| a == b).count();
    match (window.first, mark) {
        (true, 3) => Some(3),
        (true, _) if mark == window.bytes.len() && !window.last => None,
        (true | false, _) => Some(0),
    }
}

fn cut_lines(window: Window<'_>, validate: bool, limits: &CutLimits) -> Result<Cut, Problem> {
    let bytes = window.bytes;
    let fits = bytes.get(..limits.bytes).unwrap_or(bytes);
    let mut found = Found::new(limits.ends);
    let mut start = 0;
    for feed in memchr_iter(b'\n', fits) {
        let line = fits.get(start..feed).unwrap_or_default();
        if found.count == limits.records || feed + 1 - start > limits.record_bytes {
            break;
        }
        if is_blank(line) {
            found.leave_out(fits);
        } else {
            if validate {
                check_value(line, start)?;
            }
            found.add(start, feed + 1, fits);
        }
        start = feed + 1;
    }
    if start > 0 {
        check_utf8(fits.get(..start).unwrap_or(fits), 0)?;
        let (records, ends) = found.records_and_ends();
        let lines = line_feeds(fits.get(..start).unwrap_or(fits));
        return Ok(Cut { taken: start, lines, count: found.count, records, ends, unterminated: false });
    }
    without_feed(window, validate, limits)
}

/// The first line does not end within the limit, or not yet.
fn without_feed(window: Window<'_>, validate: bool, limits: &CutLimits) -> Result<Cut, Problem> {
    let bytes = window.bytes;
    if bytes.is_empty() {
        return Ok(Cut::default());
    }
    let ends_here = window.last && memchr::memchr(b'\n', bytes).is_none();
    if ends_here && is_blank(bytes) {
        return Ok(Cut { taken: bytes.len(), ..Cut::default() });
    }
    if let Some(problem) = too_long(bytes, limits, true) {
        return Err(problem);
    }
    if !ends_here {
        return Ok(Cut::default());
    }
    check_utf8(bytes, 0)?;
    if validate {
        check_value(bytes, 0)?;
    }
    Ok(unterminated(bytes, bytes.len(), 0, limits.ends))
}

/// The records found so far: a stretch of the window until a blank line lies between two of them.
struct Found {
    count: u32,
    stretch: std::ops::Range<usize>,
    copied: Option<Vec<u8>>,
    ends: Option<Vec<u32>>,
}

impl Found {
    fn new(ends: bool) -> Self {
        Self { count: 0, stretch: 0..0, copied: None, ends: ends.then(Vec::new) }
    }

    fn add(&mut self, start: usize, end: usize, window: &[u8]) {
        let length = match &mut self.copied {
            Some(copy) => {
                copy.extend_from_slice(window.get(start..end).unwrap_or_default());
                copy.len()
            }
            None => {
                if self.count == 0 {
                    self.stretch.start = start;
                }
                self.stretch.end = end;
                end - self.stretch.start
            }
        };
        self.count += 1;
        if let Some(ends) = &mut self.ends {
            ends.push(length as u32);
        }
    }

    /// Something in front is no part of the records, so what follows no longer lies behind them.
    fn leave_out(&mut self, window: &[u8]) {
        if self.count > 0 && self.copied.is_none() {
            self.copied = Some(window.get(self.stretch.clone()).unwrap_or_default().to_vec());
        }
    }

    fn records_and_ends(&mut self) -> (Records, Option<Vec<u32>>) {
        let records = match self.copied.take() {
            Some(copy) => Records::Copied(copy),
            None => Records::Window(self.stretch.clone()),
        };
        (records, self.ends.take())
    }
}

/// Most lines begin with something that is no white space, so this looks at one byte of them.
fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
}

fn check_utf8(bytes: &[u8], offset: usize) -> Result<(), Problem> {
    match std::str::from_utf8(bytes) {
        Ok(_) => Ok(()),
        Err(error) => Err(Problem { at: offset + error.valid_up_to(), kind: ProblemKind::NotUtf8 }),
    }
}

fn check_value(line: &[u8], start: usize) -> Result<(), Problem> {
    // Text that is no text is the graver problem, and the one with a byte to point at.
    check_utf8(line, start)?;
    match serde_json::from_slice::<IgnoredAny>(line) {
        Ok(_) => Ok(()),
        Err(error) => Err(Problem { at: start, kind: ProblemKind::NotJson { why: format!("{error}") } }),
    }
}
