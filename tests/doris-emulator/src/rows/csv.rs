//! Cuts one CSV row into fields.

use memchr::memmem;

use crate::types::CsvShape;

/// The fields of a row, quotes and escapes taken off; `None` is NULL, written `\N`.
pub(crate) fn fields(row: &[u8], shape: &CsvShape) -> Vec<Option<Vec<u8>>> {
    let mut fields = Vec::new();
    let mut rest = Some(row);
    while let Some(bytes) = rest {
        let (field, after) = match shape.enclose.filter(|&enclose| bytes.first() == Some(&enclose)) {
            Some(enclose) => enclosed(bytes.get(1..).unwrap_or_default(), enclose, shape),
            None => plain(bytes, &shape.column_separator),
        };
        fields.push(field);
        rest = after;
    }
    fields
}

/// The number of fields, without taking them apart; for rows whose values are not checked.
pub(crate) fn count(row: &[u8], shape: &CsvShape) -> usize {
    match shape.enclose {
        Some(_) => fields(row, shape).len(),
        None => memmem::find_iter(row, &shape.column_separator).count() + 1,
    }
}

type FieldAndRest<'a> = (Option<Vec<u8>>, Option<&'a [u8]>);

fn plain<'a>(bytes: &'a [u8], separator: &[u8]) -> FieldAndRest<'a> {
    let (field, after) = match memmem::find(bytes, separator) {
        Some(at) => (bytes.get(..at).unwrap_or_default(), bytes.get(at + separator.len()..)),
        None => (bytes, None),
    };
    ((field != b"\\N").then(|| field.to_vec()), after)
}

fn enclosed<'a>(mut bytes: &'a [u8], enclose: u8, shape: &CsvShape) -> FieldAndRest<'a> {
    let mut field = Vec::new();
    while let Some((&byte, after)) = bytes.split_first() {
        bytes = after;
        if shape.escape == Some(byte) {
            if let Some((&literal, after)) = bytes.split_first() {
                field.push(literal);
                bytes = after;
            }
        } else if byte != enclose {
            field.push(byte);
        } else if bytes.first() == Some(&enclose) {
            // Two of them mean one.
            field.push(enclose);
            bytes = bytes.get(1..).unwrap_or_default();
        } else {
            break;
        }
    }
    // What stands between the closing quote and the separator belongs to the field, as it does in Doris.
    let (trailing, after) = match memmem::find(bytes, &shape.column_separator) {
        Some(at) => (bytes.get(..at).unwrap_or_default(), bytes.get(at + shape.column_separator.len()..)),
        None => (bytes, None),
    };
    field.extend_from_slice(trailing);
    (Some(field), after)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]

    use super::{count, fields};
    use crate::types::CsvShape;

    fn check(row: &str, separator: &str, enclose: Option<u8>, expected: &[Option<&str>]) {
        let escape = enclose.map(|_| b'\\');
        let shape = CsvShape { column_separator: separator.as_bytes().to_vec(), enclose, escape, columns: Vec::new() };
        let found = fields(row.as_bytes(), &shape);
        let found: Vec<Option<String>> = found.into_iter().map(|it| it.map(|it| String::from_utf8(it).unwrap())).collect();
        let found: Vec<Option<&str>> = found.iter().map(Option::as_deref).collect();
        assert_eq!(found, expected, "fields of {row:?}");
        assert_eq!(count(row.as_bytes(), &shape), expected.len());
    }

    #[test]
    fn fields_are_cut_at_separators_outside_of_quotes() {
        check("a\tb\t", "\t", None, &[Some("a"), Some("b"), Some("")]);
        check("a||\\N||c", "||", None, &[Some("a"), None, Some("c")]);
        check("1,\"a,\"\"b\\\"\",\"\"", ",", Some(b'"'), &[Some("1"), Some("a,\"b\""), Some("")]);
        check("\"\\\\N\",\\N", ",", Some(b'"'), &[Some("\\N"), None]);
        check("", ",", None, &[Some("")]);
    }
}
