//! The life of a transaction, natively: in a real folder, and in one in memory that crashes at every step, loses what was not synced,
//! fails at every step, and is used by several at once.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may stop at the first surprise")]

mod memory;
mod native;

mod crashes;
mod lifecycle;
mod races;
mod schedules;

use crate::batch::{Batch, Format, Framing};
use crate::config::Config;
use crate::error::Error;
use crate::folder::Folder;
use crate::marker;
use crate::sink::{Prepared, Role, Sink};

/// A config that rolls after every batch.
const ROLLING: &str = r#"{"directory":"/out","prefix":"orders","roll_bytes":1}"#;
/// A config with one file a transaction.
const PLAIN: &str = r#"{"directory":"/out","prefix":"orders"}"#;

fn open<F: Folder>(config: &str, role: Role, folder: F) -> Sink<F> {
    Sink::open(Config::parse(config).unwrap(), Format::Json, &[], role, folder, [9; 16]).unwrap()
}

fn lines(text: &str) -> Batch<'_> {
    let count = text.lines().count() as u32;
    Batch { framing: Framing::LineFeed, count, bytes: text.as_bytes(), ends: &[], absent: &[] }
}

/// Everything up to a prepared transaction.
fn prepare<F: Folder>(sink: &mut Sink<F>, label: &str, batches: &[&str]) -> Result<Prepared, Error> {
    sink.begin(label, [1; 16])?;
    for batch in batches {
        assert_eq!(sink.invoke(label, lines(batch))?, []);
    }
    sink.precommit(label)
}

/// What a reader of the folder sees: the files that are not hidden, by name.
fn visible<F: Folder>(folder: &F) -> Vec<(String, String)> {
    let mut names = folder.names(&|name| !name.starts_with('.')).unwrap();
    names.sort();
    let read = |name: String| {
        let bytes = folder.read(&name, u64::MAX).unwrap().unwrap();
        (name, String::from_utf8(bytes).unwrap())
    };
    names.into_iter().map(read).collect()
}

/// What the sink keeps from readers, but for the marker.
fn hidden<F: Folder>(folder: &F) -> Vec<String> {
    folder.names(&|name| name.starts_with('.') && name != marker::NAME).unwrap()
}

fn contents(files: &[(String, String)]) -> Vec<&str> {
    files.iter().map(|(_, content)| content.as_str()).collect()
}
