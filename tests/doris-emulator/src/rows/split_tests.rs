#![allow(clippy::unwrap_used, reason = "tests may panic")]

use super::{Layout, SplitError, Splitter};

fn lines(delimiter: &str, enclose: Option<u8>) -> Layout {
    Layout::Lines { delimiter: delimiter.as_bytes().to_vec(), enclose, escape: Some(b'\\') }
}

/// Cuts the body at every possible pair of chunk borders; all must give the same rows.
fn rows(layout: &Layout, body: &str) -> Result<Vec<String>, SplitError> {
    let cut = |sizes: &[usize]| {
        let mut splitter = Splitter::new(layout.clone());
        let mut rows = Vec::new();
        let mut each = |row: &[u8]| rows.push(String::from_utf8_lossy(row).into_owned());
        let mut rest = body.as_bytes();
        for &size in sizes {
            let (chunk, after) = rest.split_at(size.min(rest.len()));
            splitter.feed(chunk, &mut each)?;
            rest = after;
        }
        splitter.feed(rest, &mut each)?;
        splitter.finish(&mut each)?;
        Ok(rows)
    };
    let whole = cut(&[]);
    for first in 0..=body.len() {
        for second in 0..=body.len() - first {
            assert_eq!(cut(&[first, second]), whole, "chunks of {first}, {second} and the rest of {body:?}");
        }
    }
    whole
}

#[test]
fn lines_end_at_the_delimiter_and_at_the_end_of_the_body() {
    assert_eq!(rows(&lines("\n", None), "a\nb\n\nc").unwrap(), ["a", "b", "", "c"]);
    assert_eq!(rows(&lines("\n", None), "a\n").unwrap(), ["a"]);
    assert_eq!(rows(&lines("\r\r\n", None), "a\r\r\nb\rc\r\r\n\r").unwrap(), ["a", "b\rc", "\r"]);
}

#[test]
fn a_delimiter_inside_of_quotes_ends_no_row() {
    assert_eq!(rows(&lines("\n", Some(b'"')), "1,\"a\nb\"\n2,\"c\\\"\nd\"\n").unwrap(), ["1,\"a\nb\"", "2,\"c\\\"\nd\""]);
    assert_eq!(rows(&lines("||", Some(b'"')), "1|\"||\"||2").unwrap(), ["1|\"||\"", "2"]);
}

#[test]
fn an_array_gives_its_elements() {
    let array = Layout::Document { strip_outer_array: true };
    let body = " [ {\"a\": \"}],\\\"\"} ,\n {\"a\": [1, {}]} ] \n";
    assert_eq!(rows(&array, body).unwrap(), ["{\"a\": \"}],\\\"\"}", "{\"a\": [1, {}]}"]);
    assert_eq!(rows(&array, "[]").unwrap(), Vec::<String>::new());
    assert_eq!(rows(&array, "").unwrap(), Vec::<String>::new());
    assert_eq!(rows(&array, "{\"a\":1}"), Err(SplitError::NotArray));
    assert_eq!(rows(&array, "[{\"a\":1}"), Err(SplitError::Unfinished));
    assert_eq!(rows(&array, "[{\"a\":1}] [{\"a\":1}]"), Err(SplitError::Garbage));
    assert_eq!(rows(&array, "[1]"), Err(SplitError::Garbage));
}

#[test]
fn a_document_without_stripping_is_one_row() {
    let object = Layout::Document { strip_outer_array: false };
    assert_eq!(rows(&object, "{\"a\":\n 1}\n").unwrap(), ["{\"a\":\n 1}"]);
    assert_eq!(rows(&object, "[{\"a\":1}]"), Err(SplitError::Array));
    assert_eq!(rows(&object, "{\"a\":"), Err(SplitError::Unfinished));
}
