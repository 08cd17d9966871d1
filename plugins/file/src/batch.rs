//! From a batch of records to the bytes of a text file, and to the records that have no form in one.

use crate::config::Separator;
use crate::error::Error;

/// The contract's `format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Bytes.
    Opaque,
    /// Text without structure.
    Lines,
    /// One JSON value a record.
    Json,
    /// One row a record.
    Csv,
}

impl Format {
    /// What file names end in where the config does not say.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Opaque => "bin",
            Self::Lines => "txt",
            Self::Json => "jsonl",
            Self::Csv => "csv",
        }
    }
}

/// The contract's `framing`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// The records' bytes and nothing else.
    Bare,
    /// Every record ends in its one line feed.
    LineFeed,
}

/// What this sink reads of a contract's `record-batch`.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    /// How the records end.
    pub framing: Framing,
    /// How many there are.
    pub count: u32,
    /// Their bytes back to back.
    pub bytes: &'a [u8],
    /// Where each ends. Empty with line-feed framing, as this sink does not ask for it.
    pub ends: &'a [u32],
    /// Rising indexes of null values.
    pub absent: &'a [u32],
}

/// A record that no file can hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// Its index in the batch.
    pub index: u32,
    /// Why.
    pub reason: &'static str,
}

/// The reason for a null value.
pub const NULL_VALUE: &str = "a null value has no form in a file of records";
/// The reason for a record that would become two.
pub const LINE_FEED_INSIDE: &str =
    "the record has a line feed inside, so it would be read as two; with `separator: none` it is written as it is";

/// Gives the batch's bytes to `out`, in as few pieces as possible, and returns the records that were left out.
pub fn write(
    batch: Batch<'_>,
    format: Format,
    separator: Separator,
    mut out: impl FnMut(&[u8]) -> Result<(), Error>,
) -> Result<Vec<Rejection>, Error> {
    if batch.count == 0 {
        return Ok(Vec::new());
    }
    if batch.framing == Framing::LineFeed {
        if batch.bytes.last() != Some(&b'\n') {
            return Err(Error::Contract("a batch with line feeds does not end in one".to_owned()));
        }
        if batch.absent.is_empty() {
            out(batch.bytes)?;
            return Ok(Vec::new());
        }
        // Without the ends a null value cannot be told from an empty one.
        if batch.ends.is_empty() {
            return Err(Error::Nulls);
        }
    }
    check_ends(&batch)?;
    let mut rejections = Vec::new();
    let mut absent = batch.absent.iter().copied().peekable();
    let mut start = 0;
    for (index, end) in (0..batch.count).zip(batch.ends.iter().map(|&end| end as usize)) {
        let record = batch.bytes.get(start..end).ok_or_else(|| Error::Contract("the ends of a batch do not rise".to_owned()))?;
        start = end;
        if absent.next_if_eq(&index).is_some() {
            rejections.push(Rejection { index, reason: NULL_VALUE });
        } else if batch.framing == Framing::LineFeed || separator == Separator::None {
            out(record)?;
        } else if format != Format::Csv && record.contains(&b'\n') {
            // A CSV row may have line feeds, inside quotes.
            rejections.push(Rejection { index, reason: LINE_FEED_INSIDE });
        } else {
            out(record)?;
            out(b"\n")?;
        }
    }
    match absent.next() {
        None => Ok(rejections),
        Some(index) => Err(Error::Contract(format!("the null value {index} is out of order or not in the batch"))),
    }
}

fn check_ends(batch: &Batch<'_>) -> Result<(), Error> {
    let all = batch.ends.len() as u64 == u64::from(batch.count);
    if all && batch.ends.last().is_some_and(|&end| end as usize == batch.bytes.len()) {
        return Ok(());
    }
    Err(Error::Contract(format!("a batch of {} records has {} ends, and {} bytes", batch.count, batch.ends.len(), batch.bytes.len())))
}

/// The line with the names of the columns, quoted where CSV needs it (RFC 4180), with its line feed.
pub fn header_line(columns: &[String]) -> Vec<u8> {
    let mut writer = csv_core::Writer::new();
    let mut line = Vec::new();
    // A field becomes at most its length twice and two quotes; delimiter and line feed come on top.
    let mut space = vec![0; columns.iter().map(|name| 2 * name.len() + 3).sum::<usize>() + 3];
    let mut keep = |written: usize, space: &[u8]| line.extend_from_slice(space.get(..written).unwrap_or_default());
    for (index, name) in columns.iter().enumerate() {
        if index > 0 {
            let (_, written) = writer.delimiter(&mut space);
            keep(written, &space);
        }
        let (_, _, written) = writer.field(name.as_bytes(), &mut space);
        keep(written, &space);
    }
    let (_, written) = writer.terminator(&mut space);
    keep(written, &space);
    line
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
    use super::*;

    fn text(batch: Batch<'_>, format: Format, separator: Separator) -> Result<(String, Vec<Rejection>), Error> {
        let mut bytes = Vec::new();
        let rejections = write(batch, format, separator, |piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        })?;
        Ok((String::from_utf8(bytes).unwrap(), rejections))
    }

    fn bare<'a>(bytes: &'a str, ends: &'a [u32], absent: &'a [u32]) -> Batch<'a> {
        Batch { framing: Framing::Bare, count: ends.len() as u32, bytes: bytes.as_bytes(), ends, absent }
    }

    #[test]
    fn lines_are_forwarded_in_one_piece() {
        let bytes = "a\n\nc\n";
        let batch = Batch { framing: Framing::LineFeed, count: 3, bytes: bytes.as_bytes(), ends: &[], absent: &[] };
        let mut pieces = Vec::new();
        for separator in [Separator::LineFeed, Separator::None] {
            write(batch, Format::Lines, separator, |piece| {
                pieces.push(piece.to_vec());
                Ok(())
            })
            .unwrap();
        }
        assert_eq!(pieces, [bytes.as_bytes(), bytes.as_bytes()]);
    }

    #[test]
    fn bare_records_get_a_line_feed_or_nothing() {
        let batch = bare("abc", &[1, 1, 3], &[]);
        assert_eq!(text(batch, Format::Json, Separator::LineFeed).unwrap(), ("a\n\nbc\n".to_owned(), Vec::new()));
        assert_eq!(text(batch, Format::Opaque, Separator::None).unwrap(), ("abc".to_owned(), Vec::new()));
    }

    #[test]
    fn a_null_value_is_rejected_and_an_empty_one_is_not() {
        let rejected = |index| vec![Rejection { index, reason: NULL_VALUE }];
        let batch = bare("ab", &[1, 1, 1, 2], &[2]);
        assert_eq!(text(batch, Format::Json, Separator::LineFeed).unwrap(), ("a\n\nb\n".to_owned(), rejected(2)));
        let framed = Batch { framing: Framing::LineFeed, count: 3, bytes: b"a\n\nb\n", ends: &[2, 3, 5], absent: &[1] };
        assert_eq!(text(framed, Format::Json, Separator::LineFeed).unwrap(), ("a\nb\n".to_owned(), rejected(1)));
        let blind = Batch { ends: &[], ..framed };
        assert!(matches!(text(blind, Format::Json, Separator::LineFeed), Err(Error::Nulls)));
    }

    #[test]
    fn a_record_that_would_be_read_as_two_is_rejected_except_in_csv() {
        let batch = bare("a\nbc", &[3, 4], &[]);
        for format in [Format::Opaque, Format::Lines, Format::Json] {
            let (bytes, rejections) = text(batch, format, Separator::LineFeed).unwrap();
            assert_eq!((bytes.as_str(), rejections), ("c\n", vec![Rejection { index: 0, reason: LINE_FEED_INSIDE }]));
            assert_eq!(text(batch, format, Separator::None).unwrap(), ("a\nbc".to_owned(), Vec::new()));
        }
        assert_eq!(text(batch, Format::Csv, Separator::LineFeed).unwrap(), ("a\nb\nc\n".to_owned(), Vec::new()));
    }

    #[test]
    fn a_batch_that_breaks_the_contract_writes_no_record_twice_and_none_halved() {
        let broken = [
            bare("abc", &[1, 2], &[]),
            bare("abc", &[2, 1, 3], &[]),
            bare("abc", &[4], &[]),
            bare("abc", &[1, 3], &[5]),
            bare("abc", &[1, 3], &[1, 0]),
            Batch { count: 3, ..bare("abc", &[1, 3], &[]) },
            Batch { framing: Framing::LineFeed, ..bare("a\nb", &[], &[]) },
        ];
        for batch in broken {
            let batch = if batch.framing == Framing::LineFeed { Batch { count: 2, ..batch } } else { batch };
            assert!(matches!(text(batch, Format::Json, Separator::LineFeed), Err(Error::Contract(_))), "{batch:?}");
        }
        let nothing = Batch { framing: Framing::LineFeed, count: 0, bytes: b"", ends: &[], absent: &[] };
        assert_eq!(text(nothing, Format::Json, Separator::LineFeed).unwrap(), (String::new(), Vec::new()));
    }

    #[test]
    fn a_header_is_quoted_where_csv_needs_it() {
        let line = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            String::from_utf8(header_line(&names)).unwrap()
        };
        assert_eq!(line(&["id", "name"]), "id,name\n");
        assert_eq!(line(&["a,b", "say \"hi\"", "two\nlines", "ä"]), "\"a,b\",\"say \"\"hi\"\"\",\"two\nlines\",ä\n");
        assert_eq!(line(&[""]), "\"\"\n");
        assert_eq!(line(&["\"\"\"\"", ""]), "\"\"\"\"\"\"\"\"\"\",\n");
    }
}
