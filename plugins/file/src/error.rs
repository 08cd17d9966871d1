//! Everything that can go wrong, with whose fault it is and whether trying again helps.

use crate::config::Directory;
use crate::folder::{Cause, Fault};
use crate::name::Label;

/// The contract's `error-kind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Try again.
    Unavailable,
    /// The config, the grant, the permissions or the mount need a person.
    Refused,
    /// The transaction has records that cannot be written.
    BadData,
    /// The host's records and the folder disagree.
    Conflict,
    /// A bug, of this plugin or of its host.
    Broken,
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The config breaks a rule. The host has checked the schema, so this is a rule that the schema cannot express, or no schema was used.
    #[error("config: {0}")]
    Config(String),

    /// No granted folder holds the directory.
    #[error("no granted folder holds {directory}: add it under `grant: {{ folders: … }}` of this sink")]
    NotGranted {
        /// The directory of the config.
        directory: Directory,
    },

    /// The directory cannot be opened. It is never made: a missing folder is most often a missing mount.
    #[error("cannot open the folder {directory}: {fault}")]
    NoFolder {
        /// The directory of the config.
        directory: Directory,
        /// What the file system said.
        fault: Fault,
    },

    /// A probe found that no file can be made in the folder.
    #[error("the folder {directory} cannot be written: {fault}")]
    NotWritable {
        /// The directory of the config.
        directory: Directory,
        /// What the file system said.
        fault: Fault,
    },

    /// The folder is there, but not the one that the transaction was prepared in.
    #[error(
        "{directory} is not the folder that this transaction was prepared in: its marker {marker} {found}, and should say {expected}; \
         is a file system not mounted, or another one?",
        found = .found.as_ref().map_or("is missing".to_owned(), |id| format!("says {id}"))
    )]
    OtherFolder {
        /// The directory of the config.
        directory: Directory,
        /// The marker's file name.
        marker: &'static str,
        /// The id in the handle.
        expected: String,
        /// The id in the folder, if it has one.
        found: Option<String>,
    },

    /// A step on the file system failed.
    #[error("cannot {step}: {fault}")]
    Step {
        /// A verb and its object.
        step: String,
        /// What the file system said.
        fault: Fault,
    },

    /// The marker is there and cannot be read.
    #[error("the folder's marker {0} has been changed and has no id any more")]
    Marker(&'static str),

    /// `begin` found a file of the label.
    #[error("the label {label} is taken: the folder has {name}")]
    Taken {
        /// The label of the transaction.
        label: Label,
        /// The file.
        name: String,
    },

    /// `abort` found a published file of the label.
    #[error("the transaction {label} is committed: the folder has {name}")]
    Committed {
        /// The label of the transaction.
        label: Label,
        /// The file.
        name: String,
    },

    /// A published file of the name is there beside the temporary one. Renaming would overwrite it, and nothing tells whose it is.
    #[error("both {temporary} and {published} are there: somebody copied or made one of them; keep the right one and remove the other")]
    Both {
        /// The temporary name.
        temporary: String,
        /// The published name.
        published: String,
    },

    /// A prepared file has another size than when it was prepared.
    #[error("the prepared files of {label} have {found} bytes, and {expected} were prepared: somebody changed them")]
    Changed {
        /// The label of the transaction.
        label: Label,
        /// The bytes that the handle says.
        expected: u64,
        /// The bytes that are there.
        found: u64,
    },

    /// A file that was written is not there at `precommit`, or has another size. Nothing is decided yet, so the records are read again.
    #[error("{name} was removed or changed while it was written: does something clean the folder's hidden files?")]
    Disturbed {
        /// The temporary name.
        name: String,
    },

    /// `roll_bytes` is too small for the epoch.
    #[error("a transaction has at most {limit} files: raise roll_bytes, or make checkpoints more often")]
    TooManyFiles {
        /// The limit.
        limit: u32,
    },

    /// Null values that cannot be told from the others.
    #[error("the batch has null values, which a text file cannot hold, and does not say where the values end")]
    Nulls,

    /// A handle that no version of this plugin wrote.
    #[error("the handle is not of this plugin: {0}")]
    Handle(String),

    /// The host broke the contract.
    #[error("the host broke the contract: {0}")]
    Contract(String),
}

impl Error {
    /// Whose fault it is.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Config(_)
            | Self::NotGranted { .. }
            | Self::NoFolder { .. }
            | Self::NotWritable { .. }
            | Self::OtherFolder { .. }
            | Self::Marker(_)
            | Self::Both { .. }
            | Self::Changed { .. }
            | Self::TooManyFiles { .. } => Kind::Refused,
            Self::Step { fault, .. } => match fault.cause {
                Cause::Denied | Cause::WrongKind | Cause::Unsupported => Kind::Refused,
                Cause::Missing | Cause::Exists | Cause::Full | Cause::Failed => Kind::Unavailable,
            },
            Self::Disturbed { .. } => Kind::Unavailable,
            Self::Taken { .. } | Self::Committed { .. } => Kind::Conflict,
            Self::Nulls => Kind::BadData,
            Self::Handle(_) | Self::Contract(_) => Kind::Broken,
        }
    }

    /// The file system's code, or nothing.
    pub fn code(&self) -> &str {
        match self {
            Self::Step { fault, .. } | Self::NoFolder { fault, .. } | Self::NotWritable { fault, .. } => &fault.code,
            _ => "",
        }
    }
}

/// Says which step failed.
pub trait During<T> {
    /// `step`: a verb and its object, as in "cannot …".
    fn during(self, step: impl FnOnce() -> String) -> Result<T, Error>;
}

impl<T> During<T> for Result<T, Fault> {
    fn during(self, step: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|fault| Error::Step { step: step(), fault })
    }
}
