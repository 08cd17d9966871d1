//! Records as the bytes of a load's body: one row a line.
//!
//! A batch framed by line feeds is such a body already and is passed on as it is, without a look at its records. What that can let through, a
//! blank line, shows at the end: Doris skips it, and its count of rows is not the number of records sent.

use crate::bindings::weir::sink::types::{Column, Error, Framing, RecordBatch, Rejection};
use crate::error::broken;
use crate::headers::RowFormat;

/// A batch's part of the body.
#[derive(Debug)]
pub(crate) struct Rows {
    pub(crate) bytes: Vec<u8>,
    /// Rows in `bytes`: the batch's records less the rejections.
    pub(crate) count: u32,
    pub(crate) rejections: Vec<Rejection>,
}

/// Why a record can never be a row.
const NO_VALUE: &str = "the record has no value (null), and a row needs one";
const EMPTY: &str = "the record is empty, and Doris skips empty lines";

/// Makes rows of a batch.
pub(crate) fn rows(format: RowFormat, batch: RecordBatch) -> Result<Rows, Error> {
    let RecordBatch { count, framing, values, .. } = batch;
    let lines = framing == Framing::LineFeed;
    if lines && values.absent.is_empty() && !has_blank_line(&values)? {
        if count > 0 && values.bytes.last() != Some(&b'\n') {
            return Err(broken("a batch framed by line feeds does not end in one"));
        }
        return Ok(Rows { bytes: values.bytes, count, rejections: vec![] });
    }
    let ends = if lines && values.ends.is_empty() { line_ends(&values.bytes) } else { values.ends.clone() };
    if ends.len() != count as usize {
        return Err(broken(format!("a batch of {count} records has {} ends", ends.len())));
    }
    let mut rows = Rows { bytes: Vec::with_capacity(values.bytes.len() + ends.len()), count: 0, rejections: vec![] };
    let mut absent = values.absent.iter().copied().peekable();
    let mut start = 0;
    for (index, end) in (0..count).zip(ends) {
        let record = slice(&values.bytes, start, end)?;
        start = end;
        let record = if lines { record.strip_suffix(b"\n").unwrap_or(record) } else { record };
        if absent.next_if_eq(&index).is_some() {
            rows.rejections.push(Rejection { index, reason: NO_VALUE.into() });
        } else if is_blank(record) {
            rows.rejections.push(Rejection { index, reason: EMPTY.into() });
        } else {
            push_row(&mut rows.bytes, format, record);
            rows.count += 1;
        }
    }
    Ok(rows)
}

/// Appends one record as one line.
fn push_row(bytes: &mut Vec<u8>, format: RowFormat, record: &[u8]) {
    match format {
        // Outside of strings a line feed is white space, and inside of one JSON does not allow it: a space means the same.
        RowFormat::Json if record.contains(&b'\n') => bytes.extend(record.iter().map(|byte| if *byte == b'\n' { b' ' } else { *byte })),
        // In CSV a line feed stands between quotes, where Doris takes it as part of the value.
        RowFormat::Json | RowFormat::Csv => bytes.extend_from_slice(record),
    }
    bytes.push(b'\n');
}

/// Whether a batch that came with ends has a record without content. Without ends nobody looks.
fn has_blank_line(values: &Column) -> Result<bool, Error> {
    let mut start = 0;
    for end in values.ends.iter().copied() {
        // A record longer than a line break cannot be blank but for white space, which Doris refuses by itself.
        if end.saturating_sub(start) <= 2 && is_blank(slice(&values.bytes, start, end)?) {
            return Ok(true);
        }
        start = end;
    }
    Ok(false)
}

fn is_blank(record: &[u8]) -> bool {
    record.iter().all(|byte| matches!(byte, b'\r' | b'\n'))
}

fn line_ends(bytes: &[u8]) -> Vec<u32> {
    bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at as u32 + 1).collect()
}

fn slice(bytes: &[u8], start: u32, end: u32) -> Result<&[u8], Error> {
    bytes.get(start as usize..end as usize).ok_or_else(|| broken("a batch's ends do not fit its bytes"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;
    use crate::bindings::weir::sink::types::ErrorKind;

    fn batch(framing: Framing, records: &[&str], with_ends: bool, absent: &[u32]) -> RecordBatch {
        let mut bytes = Vec::new();
        let mut ends = Vec::new();
        for record in records {
            bytes.extend_from_slice(record.as_bytes());
            ends.push(bytes.len() as u32);
        }
        let values = Column { bytes, ends: if with_ends { ends } else { vec![] }, absent: absent.to_vec() };
        RecordBatch {
            split: "s".into(),
            first: 0,
            count: records.len() as u32,
            framing,
            values,
            keys: None,
            timestamps: None,
            headers: None,
        }
    }

    fn text(rows: &Rows) -> &str {
        std::str::from_utf8(&rows.bytes).unwrap()
    }

    #[test]
    fn lines_are_passed_on_in_their_own_buffer() {
        let batch = batch(Framing::LineFeed, &["{}\n", "\n", "[1]\r\n"], false, &[]);
        let before = batch.values.bytes.as_ptr();
        let rows = rows(RowFormat::Json, batch).unwrap();
        assert_eq!((text(&rows), rows.count), ("{}\n\n[1]\r\n", 3));
        assert_eq!(rows.bytes.as_ptr(), before, "the buffer was copied");
    }

    #[test]
    fn blank_lines_are_rejected_where_ends_tell() {
        for format in [RowFormat::Json, RowFormat::Csv] {
            let rows = rows(format, batch(Framing::LineFeed, &["a\n", "\n", "\r\n", "b\n"], true, &[])).unwrap();
            assert_eq!((text(&rows), rows.count), ("a\nb\n", 2));
            assert_eq!(rows.rejections.iter().map(|rejection| rejection.index).collect::<Vec<_>>(), [1, 2]);
        }
    }

    #[test]
    fn bare_records_become_lines() {
        let rows = rows(RowFormat::Json, batch(Framing::Bare, &["{\n \"a\": 1\n}", "", "2"], true, &[])).unwrap();
        assert_eq!((text(&rows), rows.count), ("{  \"a\": 1 }\n2\n", 2));
        assert_eq!(rows.rejections.iter().map(|rejection| rejection.index).collect::<Vec<_>>(), [1]);
        let rows = super::rows(RowFormat::Csv, batch(Framing::Bare, &["1,\"two\nlines\"", "2,x"], true, &[])).unwrap();
        assert_eq!((text(&rows), rows.count), ("1,\"two\nlines\"\n2,x\n", 2));
    }

    #[test]
    fn records_without_a_value_are_rejected() {
        for (framing, records) in [(Framing::Bare, ["1", "", "3"]), (Framing::LineFeed, ["1\n", "\n", "3\n"])] {
            for with_ends in [true, framing == Framing::Bare] {
                let rows = rows(RowFormat::Json, batch(framing, &records, with_ends, &[1])).unwrap();
                assert_eq!((text(&rows), rows.count), ("1\n3\n", 2));
                assert_eq!(rows.rejections.len(), 1);
                assert_eq!((rows.rejections[0].index, rows.rejections[0].reason.as_str()), (1, NO_VALUE));
            }
        }
    }

    #[test]
    fn no_records_are_no_bytes() {
        let rows = rows(RowFormat::Csv, batch(Framing::LineFeed, &[], false, &[])).unwrap();
        assert_eq!((rows.bytes.len(), rows.count), (0, 0));
    }

    #[test]
    fn batches_that_do_not_fit_together_are_broken() {
        let mut long = batch(Framing::Bare, &["a"], true, &[]);
        long.values.ends = vec![9];
        let mut falling = batch(Framing::Bare, &["a", "b"], true, &[]);
        falling.values.ends = vec![2, 1];
        let mut short = batch(Framing::Bare, &["a", "b"], true, &[]);
        short.values.ends.pop();
        let open = batch(Framing::LineFeed, &["a"], false, &[]);
        for bad in [long, falling, short, open] {
            assert_eq!(rows(RowFormat::Json, bad).unwrap_err().kind, ErrorKind::Broken);
        }
    }
}
