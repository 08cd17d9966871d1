#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::sync::Arc;

use super::{Checker, is_datetime, key};
use crate::types::{ColumnType, CsvShape, RowFormat, TableSpec};

fn table() -> Arc<TableSpec> {
    let table = TableSpec::any("shop", "orders").column("id", ColumnType::Bigint).nullable("price", ColumnType::Double);
    Arc::new(table.nullable("at", ColumnType::Datetime).unique(&["id"]))
}

fn csv(columns: &[&str]) -> RowFormat {
    let columns = columns.iter().map(|&it| it.to_owned()).collect();
    RowFormat::Csv(CsvShape { column_separator: b",".to_vec(), enclose: None, escape: None, columns })
}

/// Whether a row is kept, strictly and not.
fn kept(format: &RowFormat, row: &str) -> (bool, bool) {
    let check = |strict| Checker::new(table(), format.clone(), strict).unwrap().check(row.as_bytes()).is_ok();
    (check(true), check(false))
}

#[test]
fn csv_values_must_fit_their_columns() {
    let format = csv(&[]);
    assert_eq!(kept(&format, "1,2.5,2024-02-29 23:59:59"), (true, true));
    assert_eq!(kept(&format, "1,\\N,\\N"), (true, true));
    assert_eq!(kept(&format, "1,2.5"), (false, false));
    assert_eq!(kept(&format, "1,2.5,2024-02-29,x"), (false, false));
    assert_eq!(kept(&format, "x,2.5,2024-02-29"), (false, false));
    assert_eq!(kept(&format, "\\N,2.5,2024-02-29"), (false, false));
    // What does not convert becomes NULL in a nullable column unless the load is strict.
    assert_eq!(kept(&format, "1,cheap,2024-02-29"), (false, true));
}

#[test]
fn json_values_must_fit_their_columns() {
    let format = RowFormat::Json;
    assert_eq!(kept(&format, r#"{"id": 1, "price": "2.5", "more": [1, {"x": null}]}"#), (true, true));
    assert_eq!(kept(&format, r#"{"id": "12"}"#), (true, true));
    assert_eq!(kept(&format, r#"{"price": 1}"#), (false, false));
    assert_eq!(kept(&format, r#"{"id": 1.5}"#), (false, false));
    assert_eq!(kept(&format, r#"{"id": 1, "at": "yesterday"}"#), (false, true));
    assert_eq!(kept(&format, r#"{"id": 1"#), (false, false));
    assert_eq!(kept(&format, r#"{"id": 1} {"id": 2}"#), (false, false));
    assert_eq!(kept(&format, "[1]"), (false, false));
}

#[test]
fn columns_name_the_fields() {
    let format = csv(&["unused", "at", "id"]);
    assert_eq!(kept(&format, "x,2024-01-01,7"), (true, true));
    assert_eq!(key(b"x,2024-01-01,7", &table(), &format), [Some(b"7".to_vec())]);
    assert_eq!(key(br#"{"id": 7}"#, &table(), &RowFormat::Json), [Some(b"7".to_vec())]);
    let missing = Checker::new(table(), csv(&["price"]), false).unwrap_err();
    assert_eq!(missing.to_string(), "Column has no default value, column=id");
}

#[test]
fn a_table_without_columns_takes_every_row_that_parses() {
    let any = Arc::new(TableSpec::any("shop", "any"));
    let json = Checker::new(any.clone(), RowFormat::Json, true).unwrap();
    assert!(json.check(br#"{"x": {"y": []}}"#).is_ok());
    assert!(json.check(br#"{"x": {"y": []}"#).is_err());
    let text = Checker::new(any, csv(&[]), true).unwrap();
    assert!(text.check(b"a,b").is_ok() && text.check(b"a").is_ok());
}

#[test]
fn datetimes_are_checked_to_the_day() {
    for good in ["2024-02-29", "2023-12-31 00:00:00", "2023-12-31T23:59:59.123456"] {
        assert!(is_datetime(good.as_bytes()), "{good}");
    }
    for bad in ["", "2023-02-29", "2023-13-01", "2023-12-31 24:00:00", "2023-12-31 00:00", "2023-12-31 00:00:00."] {
        assert!(!is_datetime(bad.as_bytes()), "{bad}");
    }
}
