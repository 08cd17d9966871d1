//! What is wrong with a configuration: one error for each thing, with its place, what was found, and what to write instead.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use miette::{Diagnostic, GraphicalReportHandler, LabeledSpan, NamedSource, Severity, SourceCode};
use serde::Serialize;

use super::node::Place;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConfigError {
    /// Its kind; docs/errors has a page for each.
    pub code: &'static str,
    /// What is wrong, in a sentence.
    pub message: String,
    /// What to write instead.
    pub help: String,
    /// Where in the file; absent where the file itself could not be read.
    #[serde(flatten)]
    pub place: Option<Place>,
    /// The path of keys to the value, such as `pipelines.orders.lanes`; empty for the file itself.
    pub path: String,
}

/// Everything that is wrong with a file, ascending by place. Never empty.
#[derive(Clone, Debug)]
pub struct Report {
    file: PathBuf,
    text: String,
    errors: Vec<ConfigError>,
}

impl Report {
    pub(crate) fn new(file: &Path, text: &str, mut errors: Vec<ConfigError>) -> Self {
        errors.sort_by(|a, b| (a.place, &a.path, a.code, &a.message).cmp(&(b.place, &b.path, b.code, &b.message)));
        errors.dedup();
        Self { file: file.to_owned(), text: text.to_owned(), errors }
    }

    /// The errors, ascending by place.
    pub fn errors(&self) -> &[ConfigError] {
        &self.errors
    }

    /// For a log or a file: an error a line, `file:line:column: error[code]: message`, with the help below it.
    pub fn plain(&self) -> String {
        let mut out = String::new();
        for error in &self.errors {
            let _ = match error.place {
                Some(place) => write!(out, "{}:{}:{}: ", self.file.display(), place.line, place.column),
                None => write!(out, "{}: ", self.file.display()),
            };
            let _ = writeln!(out, "error[{}]: {}", error.code, error.message);
            let _ = writeln!(out, "  help: {}", error.help);
        }
        let _ = writeln!(out, "{}", self.summary());
        out
    }

    /// For a terminal: with the lines of the file, and the place marked in them.
    pub fn fancy(&self) -> String {
        let handler = GraphicalReportHandler::new();
        let source = NamedSource::new(self.file.display().to_string(), self.text.clone()).with_language("yaml");
        let mut out = String::new();
        for error in &self.errors {
            if handler.render_report(&mut out, &Shown { error, source: &source }).is_err() {
                // Rendering into a string fails only if a span lies outside the text; the plain form needs no span.
                return self.plain();
            }
            out.push('\n');
        }
        let _ = writeln!(out, "{}", self.summary());
        out
    }

    /// For a program.
    pub fn json(&self) -> serde_json::Value {
        serde_json::json!({ "file": self.file, "errors": self.errors })
    }

    fn summary(&self) -> String {
        let count = self.errors.len();
        let errors = if count == 1 { "1 error" } else { &format!("{count} errors") };
        format!("{errors}. Nothing was opened. Each code has a page: docs/errors/<code>.md")
    }
}

/// An error beside its file, as miette wants it.
#[derive(Debug)]
struct Shown<'a> {
    error: &'a ConfigError,
    source: &'a NamedSource<String>,
}

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.error.message)
    }
}

impl std::error::Error for Shown<'_> {}

impl Diagnostic for Shown<'_> {
    fn code<'a>(&'a self) -> Option<Box<dyn std::fmt::Display + 'a>> {
        Some(Box::new(self.error.code))
    }

    fn severity(&self) -> Option<Severity> {
        Some(Severity::Error)
    }

    fn help<'a>(&'a self) -> Option<Box<dyn std::fmt::Display + 'a>> {
        Some(Box::new(&self.error.help))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.error.place.map(|_| self.source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let place = self.error.place?;
        Some(Box::new(std::iter::once(LabeledSpan::underline((place.offset, place.length)))))
    }
}
