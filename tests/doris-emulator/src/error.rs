//! What can go wrong with the emulator itself; what Doris would answer to a client is in `transactions::refusal`.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why an emulator could not start or could not keep a promise to disk.
///
/// None of them is worth a retry without changing something first.
#[derive(Debug, thiserror::Error)]
pub enum EmulatorError {
    /// The operating system refused a file operation under the data folder.
    #[error("cannot {action} {}", path.display())]
    File {
        /// What was tried, as a verb.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// Another emulator has this data folder open.
    #[error("the data folder {} is in use by another emulator", path.display())]
    Locked {
        /// The folder.
        path: PathBuf,
    },
    /// A listener could not be opened.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// The system's answer.
        source: io::Error,
    },
    /// The journal holds a line, other than a torn last one, that is not a record.
    #[error("the journal {} is damaged at byte {offset}", path.display())]
    Journal {
        /// The journal's file.
        path: PathBuf,
        /// Where the bad line begins.
        offset: u64,
        /// What the parser says.
        source: serde_json::Error,
    },
    /// A transaction that was promised has lost its rows.
    #[error("the rows of transaction {transaction} are damaged: {found} bytes in {}, {expected} were promised", path.display())]
    Rows {
        /// The transaction.
        transaction: i64,
        /// Its file.
        path: PathBuf,
        /// Bytes that the journal promises.
        expected: u64,
        /// Bytes found.
        found: u64,
    },
    /// The threads that serve the listeners could not be started.
    #[error("cannot start the server's threads")]
    Threads {
        /// The system's answer.
        source: io::Error,
    },
    /// No FE or no BE listener was asked for.
    #[error("an emulator needs at least one {what} listener")]
    NoListener {
        /// `FE` or `BE`.
        what: &'static str,
    },
}

impl EmulatorError {
    /// A closure for `map_err` that says what was tried on which path.
    pub(crate) fn file(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { action, path, source }
    }
}
