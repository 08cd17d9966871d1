//! Texts that people see, compared with what is kept: a case is a folder or a file under `tests/golden`. `BLESS=1` writes what is found.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod cli;
mod codes;
mod config;
mod docs;
mod epochs;
mod plugins;

use std::path::{Path, PathBuf};

/// The root of the checkout.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// Compares a text with the file it is kept in, or keeps it.
fn compare(path: &Path, found: &str) {
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, found).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    if kept == found {
        return;
    }
    let first =
        kept.lines().zip(found.lines()).position(|(kept, found)| kept != found).unwrap_or(kept.lines().count().min(found.lines().count()));
    panic!("{} differs from line {}; if it should, run with BLESS=1\n--- found\n{found}", path.display(), first + 1);
}
