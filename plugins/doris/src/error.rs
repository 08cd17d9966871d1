//! The errors that the sink answers with: whose fault, whether to try again, and the target's own words.
//!
//! The contract's `error` record is used as it is; these functions are the only places that make one, so that every kind has one meaning.

use crate::bindings::weir::sink::types::{Error, ErrorKind};

/// Longest piece of a target's own text that goes into a message, in bytes. A stack trace of Doris 2.0 is longer than anybody reads.
const WORDS_LIMIT: usize = 2_000;

/// The target cannot be reached or cannot now: the host tries again.
pub(crate) fn unavailable(message: impl Into<String>) -> Error {
    error(ErrorKind::Unavailable, message)
}

/// Config, credentials, grants or schema: a person must change something.
pub(crate) fn refused(message: impl Into<String>) -> Error {
    error(ErrorKind::Refused, message)
}

/// Some of the transaction's records cannot be rows, and Doris does not say which.
pub(crate) fn bad_data(message: impl Into<String>) -> Error {
    error(ErrorKind::BadData, message)
}

/// The host's records and the target disagree.
pub(crate) fn conflict(message: impl Into<String>) -> Error {
    error(ErrorKind::Conflict, message)
}

/// The contract was broken, by this plugin or by its caller.
pub(crate) fn broken(message: impl Into<String>) -> Error {
    error(ErrorKind::Broken, message)
}

fn error(kind: ErrorKind, message: impl Into<String>) -> Error {
    Error { kind, message: message.into(), code: String::new(), retry_after_ms: 0 }
}

/// Small changes to an error that exists.
pub(crate) trait ErrorExt {
    /// Adds the target's own code (its `Status`, or an HTTP status).
    fn with_code(self, code: impl Into<String>) -> Self;
    /// Puts what was being done in front.
    fn while_doing(self, what: &str) -> Self;
}

impl ErrorExt for Error {
    fn with_code(mut self, code: impl Into<String>) -> Self {
        self.code = code.into();
        self
    }

    fn while_doing(mut self, what: &str) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }
}

/// A target's text on one line and of bounded length.
pub(crate) fn words(text: &str) -> String {
    let mut line = String::with_capacity(text.len().min(WORDS_LIMIT));
    for word in text.split_whitespace() {
        if line.len() + word.len() > WORDS_LIMIT {
            line.push_str(" …");
            break;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_one_bounded_line() {
        assert_eq!(words("  a\n\tb \r\n c"), "a b c");
        let long = "word ".repeat(10_000);
        assert!(words(&long).len() <= WORDS_LIMIT + " …".len());
        assert!(words(&long).ends_with('…'));
    }
}
