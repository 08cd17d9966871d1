//! Cuts a body that arrives in chunks into rows, holding back only the unfinished last one.

use memchr::memmem;

/// Longest row, bytes; a body without row ends must not fill the memory.
const ROW_BYTES_MAX: usize = 100 << 20;

/// How rows follow each other in a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Ended by a delimiter; inside of `enclose` characters it means nothing.
    Lines { delimiter: Vec<u8>, enclose: Option<u8>, escape: Option<u8> },
    /// One JSON document: an object, or with `strip_outer_array` an array of rows.
    Document { strip_outer_array: bool },
}

/// A body that cannot be cut.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SplitError {
    #[error("JSON data is array-object, `strip_outer_array` must be TRUE.")]
    Array,
    #[error("JSON data is not an array-object, `strip_outer_array` must be FALSE.")]
    NotArray,
    #[error("Parse json data for array failed. code: 4, error info: The document is not complete")]
    Unfinished,
    #[error("Parse json data failed. code: 3, error info: Invalid value outside of rows")]
    Garbage,
    #[error("a row is longer than {} bytes", ROW_BYTES_MAX)]
    TooLong,
}

/// The unfinished end of a body, and how far it was looked at.
#[derive(Debug)]
pub(crate) struct Splitter {
    layout: Layout,
    pending: Vec<u8>,
    /// Bytes of `pending` already scanned.
    scanned: usize,
    quoted: bool,
    escaped: bool,
    json: JsonScan,
}

/// Where in a JSON document the scan is.
#[derive(Debug, Default)]
struct JsonScan {
    depth: usize,
    outer_open: bool,
    outer_closed: bool,
    rows: u64,
}

impl Splitter {
    pub(crate) fn new(layout: Layout) -> Self {
        Self { layout, pending: Vec::new(), scanned: 0, quoted: false, escaped: false, json: JsonScan::default() }
    }

    /// Takes the next chunk and hands every row that is complete now to `each`.
    pub(crate) fn feed(&mut self, chunk: &[u8], each: &mut dyn FnMut(&[u8])) -> Result<(), SplitError> {
        let mut pending = std::mem::take(&mut self.pending);
        pending.extend_from_slice(chunk);
        let used = self.cut(&pending, each)?;
        self.scanned -= used;
        pending.drain(..used);
        self.pending = pending;
        if self.pending.len() > ROW_BYTES_MAX { Err(SplitError::TooLong) } else { Ok(()) }
    }

    /// The body is complete: hands out a last row without delimiter.
    pub(crate) fn finish(&mut self, each: &mut dyn FnMut(&[u8])) -> Result<(), SplitError> {
        match &self.layout {
            Layout::Lines { .. } => {
                if !self.pending.is_empty() {
                    each(&self.pending);
                }
                Ok(())
            }
            Layout::Document { strip_outer_array } => {
                let rest_is_blank = self.pending.iter().all(u8::is_ascii_whitespace);
                let closed = !*strip_outer_array || self.json.outer_closed || self.json.rows == 0;
                let open = self.json.depth > 0 || self.json.outer_open && !self.json.outer_closed;
                if rest_is_blank && closed && !open { Ok(()) } else { Err(SplitError::Unfinished) }
            }
        }
    }

    /// Hands out rows and returns how many bytes of `pending` they took.
    fn cut(&mut self, pending: &[u8], each: &mut dyn FnMut(&[u8])) -> Result<usize, SplitError> {
        match self.layout.clone() {
            Layout::Lines { delimiter, enclose: None, .. } => Ok(self.cut_lines(pending, &delimiter, each)),
            Layout::Lines { delimiter, enclose: Some(enclose), escape } => {
                Ok(self.cut_enclosed(pending, &delimiter, enclose, escape, each))
            }
            Layout::Document { strip_outer_array } => self.cut_document(pending, strip_outer_array, each),
        }
    }

    fn cut_lines(&mut self, pending: &[u8], delimiter: &[u8], each: &mut dyn FnMut(&[u8])) -> usize {
        let mut start = 0;
        let mut row_ends_at = |end: usize| {
            each(pending.get(start..end).unwrap_or_default());
            start = end + delimiter.len();
        };
        let rest = pending.get(self.scanned..).unwrap_or_default();
        match delimiter {
            [byte] => memchr::memchr_iter(*byte, rest).for_each(|at| row_ends_at(self.scanned + at)),
            _ => memmem::find_iter(rest, delimiter).for_each(|at| row_ends_at(self.scanned + at)),
        }
        // A delimiter of several bytes may have begun at the very end.
        self.scanned = (pending.len() + 1).saturating_sub(delimiter.len()).max(start);
        start
    }

    fn cut_enclosed(&mut self, pending: &[u8], delimiter: &[u8], enclose: u8, escape: Option<u8>, each: &mut dyn FnMut(&[u8])) -> usize {
        let (mut start, mut at) = (0, self.scanned);
        while let Some(rest) = pending.get(at..).filter(|rest| !rest.is_empty()) {
            if !self.quoted && !self.escaped && rest.starts_with(delimiter) {
                each(pending.get(start..at).unwrap_or_default());
                at += delimiter.len();
                start = at;
                continue;
            }
            // Wait for the rest of what may be a delimiter.
            if !self.quoted && rest.len() < delimiter.len() && delimiter.starts_with(rest) {
                break;
            }
            let byte = rest.first().copied();
            if self.escaped {
                self.escaped = false;
            } else if self.quoted && byte == escape {
                self.escaped = true;
            } else if byte == Some(enclose) {
                self.quoted = !self.quoted;
            }
            at += 1;
        }
        self.scanned = at;
        start
    }

    fn cut_document(&mut self, pending: &[u8], strip_outer_array: bool, each: &mut dyn FnMut(&[u8])) -> Result<usize, SplitError> {
        let row_depth = usize::from(strip_outer_array);
        let mut start = 0;
        for (at, &byte) in pending.iter().enumerate().skip(self.scanned) {
            self.scanned = at + 1;
            if self.quoted {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.quoted = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' if self.json.depth > row_depth => self.quoted = true,
                b'[' if self.json.depth == 0 && strip_outer_array && !self.json.outer_open => {
                    (self.json.outer_open, self.json.depth, start) = (true, 1, at + 1);
                }
                b'{' | b'[' => {
                    self.open(byte, row_depth)?;
                    if self.json.depth == row_depth + 1 {
                        start = at;
                    }
                }
                b'}' | b']' => {
                    self.json.depth = self.json.depth.checked_sub(1).ok_or(SplitError::Garbage)?;
                    if self.json.depth == row_depth {
                        each(pending.get(start..=at).unwrap_or_default());
                        self.json.rows += 1;
                        start = at + 1;
                    } else if self.json.depth < row_depth {
                        (self.json.outer_closed, start) = (true, at + 1);
                    }
                }
                // Between rows only blanks and commas; what is no object or array is left for the end to complain of.
                b',' if self.json.depth == row_depth && strip_outer_array => start = at + 1,
                _ if self.json.depth == row_depth && !byte.is_ascii_whitespace() => return Err(SplitError::Garbage),
                _ => {}
            }
        }
        Ok(start)
    }

    fn open(&mut self, byte: u8, row_depth: usize) -> Result<(), SplitError> {
        if self.json.depth == 0 && row_depth == 1 {
            return Err(if self.json.outer_closed { SplitError::Garbage } else { SplitError::NotArray });
        }
        if self.json.depth == 0 && byte == b'[' {
            return Err(SplitError::Array);
        }
        if self.json.depth == 0 && self.json.rows > 0 {
            return Err(SplitError::Garbage);
        }
        self.json.depth += 1;
        Ok(())
    }
}

#[cfg(test)]
#[path = "split_tests.rs"]
mod tests;
