//! A folder with a `weir.yaml`, a ledger, inputs and outputs, as a user has it.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A project folder. Removed when dropped.
#[derive(Debug)]
pub struct Project {
    folder: TempDir,
}

impl Default for Project {
    fn default() -> Self {
        Self { folder: tempfile::Builder::new().prefix("weir-test-").tempdir().unwrap() }
    }
}

impl Project {
    /// Its folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A path in it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Makes a folder in it.
    pub fn folder(&self, name: &str) -> PathBuf {
        let path = self.join(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    /// Writes a file in it.
    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.join(name);
        std::fs::write(&path, contents).unwrap();
        path
    }

    /// Writes `weir.yaml`: a ledger in this folder, the plugins of a folder, and these pipelines, which are indented under `pipelines:`.
    pub fn config(&self, plugins: &Path, pipelines: &str) -> PathBuf {
        let indented: String = pipelines.lines().map(|line| format!("  {line}\n")).collect();
        let text = format!("ledger: sqlite://weir.db\nplugins: {}\npipelines:\n{indented}", plugins.display());
        self.write("weir.yaml", text)
    }
}
