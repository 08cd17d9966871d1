//! Printing.

use std::io::{self, IsTerminal, Write};

use serde_json::json;

use super::Failure;
use crate::config::Report;
use crate::error::Exit;

/// Whether data and errors are JSON.
#[derive(Clone, Copy, Debug)]
pub(super) struct Output {
    pub(super) json: bool,
}

impl Output {
    /// Data, to stdout, with a line feed at its end.
    pub(super) fn data(self, text: &str) {
        // A reader that went away (`weir epochs orders | head`) has seen enough.
        let _ = writeln!(io::stdout().lock(), "{text}").and_then(|()| io::stdout().flush());
    }

    /// Text for people, to stderr.
    pub(super) fn tell(self, text: &str) {
        let _ = writeln!(io::stderr().lock(), "{text}");
    }

    /// Why a command failed.
    pub(super) fn failure(self, failure: &Failure) -> Exit {
        match failure {
            Failure::Config(report) => {
                self.report(report);
                Exit::ConfigRefused
            }
            Failure::Coded { code, message, exit } => {
                if self.json {
                    self.data(&json!({ "code": code, "message": message, "exit": exit.number() }).to_string());
                } else {
                    self.tell(&format!("error[{code}]: {message}"));
                }
                *exit
            }
        }
    }

    fn report(self, report: &Report) {
        if self.json {
            self.data(&report.json().to_string());
        } else if io::stderr().is_terminal() {
            self.tell(report.fancy().trim_end());
        } else {
            self.tell(report.plain().trim_end());
        }
    }
}

/// Rows under a header, in columns; all but the last column are padded. Numbers stand to the right.
pub(super) fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain(header.get(column).map(|title| title.chars().count())).max().unwrap_or_default()
    };
    let numeric = |column: usize| {
        !rows.is_empty() && rows.iter().filter_map(|row| row.get(column)).all(|cell| cell.bytes().all(|b| b.is_ascii_digit() || b == b'_'))
    };
    let line = |cells: Vec<&str>| {
        let padded = cells.iter().enumerate().map(|(column, cell)| {
            let width = width(column);
            if numeric(column) { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        });
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let mut lines = vec![line(header.to_vec())];
    lines.extend(rows.iter().map(|row| line(row.iter().map(String::as_str).collect())));
    lines.join("\n")
}

/// A number with an underscore between each three digits.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push('_');
        }
        out.push(digit);
    }
    out
}

/// A number of bytes with a unit.
pub(super) fn size(bytes: u64) -> String {
    bytesize::ByteSize::b(bytes).display().iec().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_numbers_stand_to_the_right() {
        let rows = vec![vec!["1".to_owned(), "a".to_owned(), "x".to_owned()], vec!["1_000".to_owned(), "long".to_owned(), String::new()]];
        assert_eq!(table(&["N", "WORD", "END"], &rows), "    N  WORD  END\n    1  a     x\n1_000  long");
    }

    #[test]
    fn digits_are_grouped_by_three() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1_000", "1_234_567"]);
    }
}
