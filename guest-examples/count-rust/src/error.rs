//! The contract's error, by who has to act on it.

use std::io;

use crate::bindings::weir::sink::types::{Error, ErrorKind};

/// The operator has to change something: configuration, grants, rights.
pub(crate) fn refused(message: impl Into<String>) -> Error {
    error(ErrorKind::Refused, message)
}

/// The label is not in the state that the host believes it to be in.
pub(crate) fn conflict(message: impl Into<String>) -> Error {
    error(ErrorKind::Conflict, message)
}

/// A mistake of this plugin, or calls in an order that the contract excludes.
pub(crate) fn broken(message: impl Into<String>) -> Error {
    error(ErrorKind::Broken, message)
}

/// What a failed access to a file means: nobody but the operator mends missing rights, and a full disk may be mended by time.
pub(crate) fn from_io(action: &str, error: &io::Error) -> Error {
    let kind = match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::NotFound => ErrorKind::Refused,
        io::ErrorKind::AlreadyExists => ErrorKind::Conflict,
        _ => ErrorKind::Unavailable,
    };
    Error { kind, message: format!("cannot {action}: {error}"), code: error.kind().to_string(), retry_after_ms: 0 }
}

fn error(kind: ErrorKind, message: impl Into<String>) -> Error {
    Error { kind, message: message.into(), code: String::new(), retry_after_ms: 0 }
}
