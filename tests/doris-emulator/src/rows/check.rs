//! Checks rows against a table, as far as the emulator knows types, and reads the keys of UNIQUE tables.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::csv;
use crate::types::{Column, ColumnType, CsvShape, RowFormat, TableSpec};

/// Checks the rows of one load.
#[derive(Debug)]
pub(crate) struct Checker {
    spec: Arc<TableSpec>,
    format: RowFormat,
    strict: bool,
    /// For CSV: the column that each field goes to; `None` for a name that the table does not have.
    fields: Vec<Option<usize>>,
}

/// A column that a load must fill and does not name.
#[derive(Debug, thiserror::Error)]
#[error("Column has no default value, column={column}")]
pub(crate) struct MissingColumn {
    column: String,
}

impl Checker {
    /// For one load. In `strict` mode what does not convert is filtered in nullable columns too; otherwise it becomes NULL.
    pub(crate) fn new(spec: Arc<TableSpec>, format: RowFormat, strict: bool) -> Result<Self, MissingColumn> {
        let fields = match &format {
            RowFormat::Csv(shape) => csv_fields(&spec, shape)?,
            RowFormat::Json => Vec::new(),
        };
        Ok(Self { spec, format, strict, fields })
    }

    /// Why the row is filtered, in the words of an error log.
    pub(crate) fn check(&self, row: &[u8]) -> Result<(), String> {
        match &self.format {
            RowFormat::Csv(shape) => self.check_csv(row, shape),
            RowFormat::Json => self.check_json(row),
        }
    }

    fn check_csv(&self, row: &[u8], shape: &CsvShape) -> Result<(), String> {
        if self.spec.columns.is_empty() {
            return match shape.columns.len() {
                0 => Ok(()),
                expected => check_field_count(csv::count(row, shape), expected),
            };
        }
        let fields = csv::fields(row, shape);
        check_field_count(fields.len(), self.fields.len())?;
        for (value, column) in fields.iter().zip(&self.fields) {
            if let Some(column) = column.and_then(|at| self.spec.columns.get(at)) {
                let value = value.as_deref().map_or(Value::Null, |bytes| Value::Text(String::from_utf8_lossy(bytes)));
                self.check_value(column, &value)?;
            }
        }
        Ok(())
    }

    fn check_json(&self, row: &[u8]) -> Result<(), String> {
        let failed = |error: serde_json::Error| format!("Parse json data for JsonDoc failed. error info: {error}");
        let mut input = serde_json::Deserializer::from_slice(row);
        if self.spec.columns.is_empty() {
            // The shape alone: one object, well formed to its end.
            AnyObject.deserialize(&mut input).map_err(failed)?;
            return input.end().map_err(failed);
        }
        let values = Object { columns: &self.spec.columns }.deserialize(&mut input).map_err(failed)?;
        input.end().map_err(failed)?;
        let mut pairs = self.spec.columns.iter().zip(&values);
        pairs.try_for_each(|(column, value)| self.check_value(column, value))
    }

    fn check_value(&self, column: &Column, value: &Value<'_>) -> Result<(), String> {
        let converts = match value {
            Value::Null => {
                return if column.nullable { Ok(()) } else { Err(null_reason(&column.name)) };
            }
            Value::Text(text) => converts(text, column.kind),
            Value::Other(raw) => converts(raw, column.kind),
        };
        match (converts, column.nullable) {
            (true, _) => Ok(()),
            (false, true) if !self.strict => Ok(()),
            (false, true) => Err(format!("column({}) value is incorrect while strict mode is true, src value is {value}", column.name)),
            (false, false) => Err(format!("{}, src value is {value}", null_reason(&column.name))),
        }
    }
}

fn null_reason(column: &str) -> String {
    format!("column({column}) values is null while columns is not nullable")
}

fn check_field_count(found: usize, expected: usize) -> Result<(), String> {
    let relation = match found.cmp(&expected) {
        std::cmp::Ordering::Equal => return Ok(()),
        std::cmp::Ordering::Less => "less",
        std::cmp::Ordering::Greater => "more",
    };
    Err(format!(
        "actual column number in csv file is {relation} than schema column number.actual number: {found}, \
         schema column number: {expected}"
    ))
}

fn csv_fields(spec: &TableSpec, shape: &CsvShape) -> Result<Vec<Option<usize>>, MissingColumn> {
    if shape.columns.is_empty() {
        return Ok((0..spec.columns.len()).map(Some).collect());
    }
    let missing = spec.columns.iter().find(|column| !column.nullable && !shape.columns.contains(&column.name));
    if let Some(column) = missing {
        return Err(MissingColumn { column: column.name.clone() });
    }
    let position = |name: &String| spec.columns.iter().position(|column| column.name == *name);
    Ok(shape.columns.iter().map(position).collect())
}

/// A value as far as it matters here.
#[derive(Debug)]
enum Value<'a> {
    Null,
    Text(Cow<'a, str>),
    /// A JSON number, boolean, object or array as written.
    Other(&'a str),
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Text(text) => f.write_str(text),
            Self::Other(raw) => f.write_str(raw),
        }
    }
}

fn converts(text: &str, kind: ColumnType) -> bool {
    match kind {
        ColumnType::String => true,
        ColumnType::Int => text.trim().parse::<i32>().is_ok(),
        ColumnType::Bigint => text.trim().parse::<i64>().is_ok(),
        ColumnType::Double => text.trim().parse::<f64>().is_ok(),
        ColumnType::Datetime => is_datetime(text.trim().as_bytes()),
    }
}

/// `YYYY-MM-DD`, then optionally a blank or `T`, `HH:MM:SS` and a fraction.
fn is_datetime(text: &[u8]) -> bool {
    let number = |from: usize, to: usize| -> Option<u32> {
        let digits = text.get(from..to).filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
        std::str::from_utf8(digits).ok()?.parse().ok()
    };
    let in_range = |from, to, range: std::ops::RangeInclusive<u32>| number(from, to).is_some_and(|it| range.contains(&it));
    let at = |index: usize, one_of: &[u8]| text.get(index).is_some_and(|byte| one_of.contains(byte));
    let days = match (number(0, 4), number(5, 7)) {
        (Some(year), Some(2)) if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        (_, Some(2)) => 28,
        (_, Some(4 | 6 | 9 | 11)) => 30,
        _ => 31,
    };
    let date = in_range(0, 4, 0..=9999) && at(4, b"-") && in_range(5, 7, 1..=12) && at(7, b"-") && in_range(8, 10, 1..=days);
    let time = || {
        at(10, b" T") && in_range(11, 13, 0..=23) && at(13, b":") && in_range(14, 16, 0..=59) && at(16, b":") && in_range(17, 19, 0..=59)
    };
    let fraction = || at(19, b".") && text.get(20..).is_some_and(|it| !it.is_empty() && it.iter().all(u8::is_ascii_digit));
    date && (text.len() == 10 || time() && (text.len() == 19 || fraction()))
}

/// The values of a JSON object's columns, by position in the table; the last of equal names wins.
struct Object<'a> {
    columns: &'a [Column],
}

impl<'de> DeserializeSeed<'de> for Object<'_> {
    type Value = Vec<Value<'de>>;

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<Self::Value, D::Error> {
        input.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Object<'_> {
    type Value = Vec<Value<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut values: Vec<Value<'de>> = self.columns.iter().map(|_| Value::Null).collect();
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            let position = self.columns.iter().position(|column| column.name == name);
            match position.and_then(|at| values.get_mut(at)) {
                Some(value) => *value = value_of(map.next_value()?),
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(values)
    }
}

fn value_of(raw: &RawValue) -> Value<'_> {
    match raw.get() {
        "null" => Value::Null,
        text if text.starts_with('"') => match serde_json::from_str::<String>(text) {
            Ok(text) => Value::Text(Cow::Owned(text)),
            Err(_) => Value::Other(text),
        },
        other => Value::Other(other),
    }
}

/// An object of which only the syntax matters.
struct AnyObject;

impl<'de> DeserializeSeed<'de> for AnyObject {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        input.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for AnyObject {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

/// The values of a row's key columns; `None` is NULL.
pub(crate) type Key = Vec<Option<Vec<u8>>>;

/// The key of a row of a UNIQUE table; rows that were kept always have one.
pub(crate) fn key(row: &[u8], spec: &TableSpec, format: &RowFormat) -> Key {
    match format {
        RowFormat::Csv(shape) => {
            let values = csv::fields(row, shape);
            let position = |key: &String| match shape.columns.is_empty() {
                true => spec.columns.iter().position(|column| column.name == *key),
                false => shape.columns.iter().position(|name| name == key),
            };
            let value = |key| position(key).and_then(|at| values.get(at).cloned().flatten());
            spec.keys.iter().map(value).collect()
        }
        RowFormat::Json => {
            let column = |key: &String| Column { name: key.clone(), kind: ColumnType::String, nullable: true };
            let columns: Vec<Column> = spec.keys.iter().map(column).collect();
            let mut input = serde_json::Deserializer::from_slice(row);
            let values = Object { columns: &columns }.deserialize(&mut input).unwrap_or_default();
            let bytes = |value: Value<'_>| match value {
                Value::Null => None,
                other => Some(other.to_string().into_bytes()),
            };
            values.into_iter().map(bytes).collect()
        }
    }
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
