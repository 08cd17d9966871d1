//! Lines of any bytes. An empty line is a record, and a carriage return is part of its record.

use memchr::{memchr_iter, memrchr};

use super::{Cut, CutLimits, Problem, Records, Window, too_long, unterminated};

pub(super) fn cut(window: Window<'_>, limits: &CutLimits) -> Result<Cut, Problem> {
    let bytes = window.bytes;
    let fits = bytes.get(..limits.bytes).unwrap_or(bytes);
    let Some(last_feed) = memrchr(b'\n', fits) else { return without_feed(window, limits) };
    // Lines between two line feeds need no look of their own unless something about each of them matters.
    if !limits.ends && limits.record_bytes >= fits.len() {
        let whole = bytes.get(..=last_feed).unwrap_or(bytes);
        let (taken, count) = first_lines(whole, limits.records);
        return Ok(Cut { taken, lines: u64::from(count), count, records: Records::Window(0..taken), ends: None, unterminated: false });
    }
    one_by_one(fits, limits)
}

/// How many bytes and lines there are, at most so many lines.
fn first_lines(whole: &[u8], most: u32) -> (usize, u32) {
    let count = memchr_iter(b'\n', whole).count();
    if count <= most as usize {
        return (whole.len(), count as u32);
    }
    let taken = memchr_iter(b'\n', whole).nth(most.saturating_sub(1) as usize).map_or(0, |feed| feed + 1);
    (taken, most)
}

fn one_by_one(fits: &[u8], limits: &CutLimits) -> Result<Cut, Problem> {
    let mut ends = Vec::new();
    let mut start = 0;
    let mut count = 0;
    for feed in memchr_iter(b'\n', fits).take(limits.records as usize) {
        if feed + 1 - start > limits.record_bytes {
            break;
        }
        start = feed + 1;
        count += 1;
        if limits.ends {
            ends.push(start as u32);
        }
    }
    if count == 0
        && let Some(problem) = too_long(fits, limits, false)
    {
        return Err(problem);
    }
    Ok(Cut {
        taken: start,
        lines: u64::from(count),
        count,
        records: Records::Window(0..start),
        ends: limits.ends.then_some(ends),
        unterminated: false,
    })
}

fn without_feed(window: Window<'_>, limits: &CutLimits) -> Result<Cut, Problem> {
    if window.bytes.is_empty() {
        return Ok(Cut::default());
    }
    match too_long(window.bytes, limits, true) {
        Some(problem) => Err(problem),
        None if window.last => Ok(unterminated(window.bytes, window.bytes.len(), 0, limits.ends)),
        None => Ok(Cut::default()),
    }
}
