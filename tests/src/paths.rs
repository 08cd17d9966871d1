//! Where the things under test are.

use std::path::{Path, PathBuf};

/// The root of the checkout.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// A binary of this workspace, as built beside the running one.
pub fn binary(name: &str) -> PathBuf {
    let mut folder = std::env::current_exe().unwrap();
    while folder.pop() {
        let candidate = folder.join(name);
        if candidate.is_file() {
            return candidate;
        }
    }
    panic!("the binary {name} is not built; run `make build` first")
}

/// The folder of the shipped plugins' components.
pub fn plugins() -> PathBuf {
    built("plugins", "make plugins")
}

/// The folder of the example guests' components.
pub fn guests() -> PathBuf {
    built("guests", "make guests")
}

/// The folder of the badly behaved components.
pub fn test_guests() -> PathBuf {
    built("test-guests", "make guests")
}

fn built(kind: &str, how: &str) -> PathBuf {
    let folder = root().join("build").join(kind);
    assert!(folder.is_dir(), "{} is not there; run `{how}` first", folder.display());
    folder
}
