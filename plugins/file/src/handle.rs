//! What a prepared transaction is, in bytes that another process can commit from.

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::marker::FolderId;
use crate::name::{Extension, Prefix, Published};

/// The format that this version writes, and the only one that it commits.
pub const FORMAT: &str = "file-1";

/// A prepared transaction, less its label, which the host gives back with it. Its size does not depend on the number of files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handle {
    /// The folder that has the temporary files.
    pub folder: FolderId,
    /// What they will be called.
    pub published: Published,
    /// How many there are, numbered from 0.
    pub files: u32,
    /// Their sizes together, in bytes.
    pub bytes: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    format: String,
    folder: String,
    prefix: String,
    extension: String,
    numbered: bool,
    files: u32,
    bytes: u64,
}

impl Handle {
    /// The bytes for the host: a JSON object.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let raw = Raw {
            format: FORMAT.to_owned(),
            folder: self.folder.as_str().to_owned(),
            prefix: self.published.prefix.as_str().to_owned(),
            extension: self.published.extension.as_str().to_owned(),
            numbered: self.published.numbered,
            files: self.files,
            bytes: self.bytes,
        };
        serde_json::to_vec(&raw).map_err(|error| Error::Handle(error.to_string()))
    }

    /// Reads the bytes back. They come from a ledger that may be damaged, so the names in them are held to the rules of the config.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let raw: Raw = serde_json::from_slice(bytes).map_err(|error| Error::Handle(error.to_string()))?;
        if raw.format != FORMAT {
            return Err(Error::Handle(format!("its format is {:?}, and this version knows {FORMAT:?}", raw.format)));
        }
        let bad = |what: &str| Error::Handle(format!("its {what} breaks the rules"));
        if raw.files == 0 || (raw.files > 1 && !raw.numbered) {
            return Err(bad("number of files"));
        }
        Ok(Self {
            folder: FolderId::parse(&raw.folder).ok_or_else(|| bad("folder"))?,
            published: Published {
                prefix: Prefix::parse(&raw.prefix).ok_or_else(|| bad("prefix"))?,
                extension: Extension::parse(&raw.extension).ok_or_else(|| bad("extension"))?,
                numbered: raw.numbered,
            },
            files: raw.files,
            bytes: raw.bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
    use super::*;

    const WRITTEN: &str = r#"{"format":"file-1","folder":"000102030405060708090a0b0c0d0e0f","prefix":"orders","extension":"jsonl","numbered":true,"files":3,"bytes":123456789012}"#;

    #[test]
    fn the_format_is_frozen_as_long_as_it_is_called_file_1() {
        let handle = Handle {
            folder: FolderId::new([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]),
            published: Published {
                prefix: Prefix::parse("orders").unwrap(),
                extension: Extension::parse("jsonl").unwrap(),
                numbered: true,
            },
            files: 3,
            bytes: 123_456_789_012,
        };
        assert_eq!(String::from_utf8(handle.to_bytes().unwrap()).unwrap(), WRITTEN);
        assert_eq!(Handle::parse(WRITTEN.as_bytes()).unwrap(), handle);
    }

    #[test]
    fn a_damaged_handle_is_refused_and_names_no_file_outside() {
        for (old, new) in [
            ("file-1", "file-2"),
            ("\"orders\"", "\"../orders\""),
            ("jsonl", "a/b"),
            ("000102", "xx0102"),
            ("\"files\":3", "\"files\":0"),
            ("\"files\":3", "\"files\":-1"),
            ("true", "false"),
            ("}", ",\"more\":1}"),
            ("}", ""),
        ] {
            let damaged = WRITTEN.replace(old, new);
            assert_ne!(damaged, WRITTEN);
            assert!(Handle::parse(damaged.as_bytes()).is_err(), "{damaged}");
        }
        assert!(Handle::parse(b"").is_err());
    }
}
