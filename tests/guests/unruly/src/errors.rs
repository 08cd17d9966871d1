//! The contract's error.

use std::io;

use contract::types::{Error, ErrorKind};

pub(crate) fn error(kind: ErrorKind, message: impl Into<String>) -> Error {
    Error { kind, message: message.into(), code: String::new(), retry_after_ms: 0 }
}

pub(crate) fn refused(message: impl Into<String>) -> Error {
    error(ErrorKind::Refused, message)
}

pub(crate) fn conflict(message: impl Into<String>) -> Error {
    error(ErrorKind::Conflict, message)
}

pub(crate) fn broken(message: impl Into<String>) -> Error {
    error(ErrorKind::Broken, message)
}

pub(crate) fn from_io(action: &str, found: &io::Error) -> Error {
    error(ErrorKind::Unavailable, format!("cannot {action}: {found}"))
}

/// The contract's word for a kind, for the log of calls.
pub(crate) fn word(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Unavailable => "unavailable",
        ErrorKind::Refused => "refused",
        ErrorKind::BadData => "bad-data",
        ErrorKind::Conflict => "conflict",
        ErrorKind::Broken => "broken",
    }
}
