//! Headers of a load and of a two-phase commit request.
//!
//! `group_commit` is never among them: on a chunked load it would make Doris drop the label (BE `stream_load.cpp`).

use crate::bindings::weir::sink::types::{Error, Format, Input};
use crate::config::{Config, check_value};
use crate::error::refused;

/// What a record is in the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowFormat {
    /// One JSON object a line.
    Json,
    /// One CSV row a line.
    Csv,
}

impl RowFormat {
    /// The pipeline's input format as rows, where records are rows.
    pub(crate) fn of(format: Format) -> Result<Self, Error> {
        match format {
            Format::Json => Ok(Self::Json),
            Format::Csv => Ok(Self::Csv),
            Format::Lines | Format::Opaque => Err(refused(
                "Doris loads rows, and records of the formats `lines` and `opaque` have no fields: set the source's format to `json` or `csv`",
            )),
        }
    }
}

/// Headers of every load of this sink, without label and identity.
pub(crate) fn load_headers(config: &Config, format: RowFormat, input: &Input) -> Result<Vec<(String, String)>, Error> {
    let mut headers: Vec<(String, String)> = vec![
        // A front end insists on it; a back end checks everything it can before it asks for the body.
        ("Expect".into(), "100-continue".into()),
        ("two_phase_commit".into(), "true".into()),
        ("timeout".into(), config.load_timeout_s.to_string()),
        ("strict_mode".into(), config.strict.to_string()),
        ("max_filter_ratio".into(), config.max_filter_ratio.to_string()),
    ];
    let mut add = |name: &str, value: &str| headers.push((name.to_owned(), value.to_owned()));
    match format {
        RowFormat::Json => {
            add("format", "json");
            // Always explicit: what holds without them changed with 4.0.
            add("read_json_by_line", "true");
            add("strip_outer_array", "false");
        }
        RowFormat::Csv => {
            add("format", "csv");
            for (name, value) in [("column_separator", ","), ("enclose", "\"")] {
                if !config.load_headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name)) {
                    add(name, value);
                }
            }
        }
    }
    if let Some(columns) = columns(config, format, input)? {
        headers.push(("columns".into(), columns));
    }
    headers.extend(config.load_headers.iter().cloned());
    Ok(headers)
}

/// The `columns` header: as given, else the names of a CSV header.
fn columns(config: &Config, format: RowFormat, input: &Input) -> Result<Option<String>, Error> {
    if config.columns.is_some() {
        return Ok(config.columns.clone());
    }
    if format != RowFormat::Csv || input.columns.is_empty() {
        return Ok(None);
    }
    let mut names = Vec::with_capacity(input.columns.len());
    for name in &input.columns {
        if name.is_empty() || name.contains('`') {
            return Err(refused(format!("the CSV column `{name}` cannot be a column of Doris: name the columns in the key `columns`")));
        }
        // Quoted, so that a name may be a word of SQL.
        names.push(format!("`{name}`"));
    }
    let columns = names.join(",");
    check_value("columns", &columns).map_err(|error| refused(error.to_string()))?;
    Ok(Some(columns))
}

/// Commit is by transaction id: by label, the answer to a repeat would not tell committed from aborted.
pub(crate) fn commit_headers(transaction_id: i64) -> Vec<(String, String)> {
    vec![("txn_id".into(), transaction_id.to_string()), ("txn_operation".into(), "commit".into())]
}

/// Abort is by label, which is all that the host has for a transaction that was not prepared.
pub(crate) fn abort_headers(label: &str) -> Vec<(String, String)> {
    vec![("label".into(), label.to_owned()), ("txn_operation".into(), "abort".into())]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;
    use crate::bindings::weir::sink::types::ErrorKind;

    fn config(more: &str) -> Config {
        Config::parse(&format!(r#"{{"fe":["http://fe:8030"],"database":"d","table":"t","user":"root"{more}}}"#)).unwrap()
    }

    fn input(format: Format, columns: &[&str]) -> Input {
        Input { format, columns: columns.iter().map(|name| (*name).to_owned()).collect() }
    }

    fn composed(more: &str, format: RowFormat, columns: &[&str]) -> Vec<String> {
        let input = input(Format::Csv, columns);
        let headers = load_headers(&config(more), format, &input).unwrap();
        headers.into_iter().map(|(name, value)| format!("{name}: {value}")).collect()
    }

    #[test]
    fn json_lines() {
        assert_eq!(
            composed("", RowFormat::Json, &["ignored"]),
            [
                "Expect: 100-continue",
                "two_phase_commit: true",
                "timeout: 600",
                "strict_mode: true",
                "max_filter_ratio: 0",
                "format: json",
                "read_json_by_line: true",
                "strip_outer_array: false",
            ]
        );
    }

    #[test]
    fn csv_with_a_header() {
        let more = r#","strict":false,"max_filter_ratio":0.25,"load_timeout":30"#;
        assert_eq!(
            composed(more, RowFormat::Csv, &["id", "order", "größe"]),
            [
                "Expect: 100-continue",
                "two_phase_commit: true",
                "timeout: 30",
                "strict_mode: false",
                "max_filter_ratio: 0.25",
                "format: csv",
                "column_separator: ,",
                "enclose: \"",
                "columns: `id`,`order`,`größe`",
            ]
        );
    }

    #[test]
    fn given_columns_and_separators_win() {
        let more = r#","columns":"a,b,c=a+b","load_headers":{"Column_Separator":"|","where":"a > 1"}"#;
        let headers = composed(more, RowFormat::Csv, &["x", "y"]);
        assert!(headers.contains(&"columns: a,b,c=a+b".to_owned()));
        assert!(headers.contains(&"Column_Separator: |".to_owned()));
        assert!(!headers.iter().any(|header| header.starts_with("column_separator")));
        assert!(headers.contains(&"where: a > 1".to_owned()));
    }

    #[test]
    fn nothing_composed_asks_for_group_commit() {
        for format in [RowFormat::Json, RowFormat::Csv] {
            assert!(!composed("", format, &["a"]).iter().any(|header| header.to_ascii_lowercase().starts_with("group_commit")));
        }
    }

    #[test]
    fn columns_that_cannot_be_quoted_are_refused() {
        for name in ["a`b", ""] {
            let error = load_headers(&config(""), RowFormat::Csv, &input(Format::Csv, &["ok", name])).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Refused);
        }
    }

    #[test]
    fn formats_without_fields_are_refused() {
        assert_eq!(RowFormat::of(Format::Json).unwrap(), RowFormat::Json);
        assert_eq!(RowFormat::of(Format::Csv).unwrap(), RowFormat::Csv);
        for format in [Format::Lines, Format::Opaque] {
            assert!(RowFormat::of(format).unwrap_err().message.contains("format"));
        }
    }
}
