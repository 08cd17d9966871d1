//! Compiled plugins, kept in a folder so that a start does not compile them again (a Python plugin takes five seconds).
//!
//! An entry is named by the content hash of the component, and by a hash of this host's version and the engine's settings, so a change of any
//! of them compiles anew. It carries a SHA-256 of itself, which finds damage. It does not find malice: machine code is run as it is found, so
//! whoever can write the folder is trusted, and the folder must be its user's own, with mode 0700.

use std::fs::{self, File, OpenOptions};
use std::hash::Hash as _;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use sha2::{Digest, Sha256};
use wasmtime::component::Component;
use weir_protocol::Hash;

use crate::code::Code;
use crate::error::EngineError;

/// What an entry begins with; another layout gets another one.
const MAGIC: &[u8; 8] = b"WEIRCW1\n";
/// Length of the SHA-256 that follows.
const SUM_BYTES: usize = 32;

/// The folder of compiled plugins.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    folder: PathBuf,
    settings: String,
}

impl Cache {
    /// Opens the folder, or makes it. Refuses one that others than this process's user can write.
    pub(crate) fn open(folder: &Path, engine: &wasmtime::Engine) -> Result<Self, EngineError> {
        let fail = |what: String| EngineError::load(Code::PluginCache, folder.display(), what);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|error| fail(format!("it cannot be made: {error}")))?;
        let metadata = fs::metadata(folder).map_err(|error| fail(format!("it cannot be read: {error}")))?;
        if metadata.mode() & 0o077 != 0 {
            let mode = metadata.mode() & 0o777;
            return Err(fail(format!("its mode is {mode:04o}, and must be 0700: compiled plugins in it are run as they are found")));
        }
        // A new file belongs to this process's user, so that it can be compared with the folder's owner.
        let probe = folder.join(temporary_name());
        let owner = create_private(&probe).and_then(|file| file.metadata()).map(|metadata| metadata.uid());
        let owner = owner.map_err(|error| fail(format!("it cannot be written: {error}")))?;
        fs::remove_file(&probe).map_err(|error| fail(format!("it cannot be written: {error}")))?;
        if owner != metadata.uid() {
            return Err(fail("it belongs to another user: compiled plugins in it are run as they are found".to_owned()));
        }
        Ok(Self { folder: folder.to_owned(), settings: settings(engine) })
    }

    /// The compiled form of the component with that digest, if there is an undamaged one.
    pub(crate) fn load(&self, engine: &wasmtime::Engine, digest: &Hash) -> Option<Component> {
        let path = self.path(digest);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "cannot read a compiled plugin, compiling it again");
                return None;
            }
        };
        let component = verified(&bytes).and_then(|code| deserialize(engine, code));
        if component.is_none() {
            tracing::warn!(path = %path.display(), "a compiled plugin is damaged, compiling it again");
        }
        component
    }

    /// Keeps a compiled component. Failing to is no reason to fail: it is compiled again at the next start.
    pub(crate) fn store(&self, digest: &Hash, component: &Component) {
        let path = self.path(digest);
        let written = component.serialize().map_err(io::Error::other).and_then(|code| self.write(&path, &code));
        if let Err(error) = written {
            tracing::warn!(path = %path.display(), %error, "cannot keep a compiled plugin");
        }
    }

    fn write(&self, path: &Path, code: &[u8]) -> io::Result<()> {
        let temporary = self.folder.join(temporary_name());
        let result = (|| {
            let mut file = create_private(&temporary)?;
            file.write_all(MAGIC)?;
            file.write_all(&Sha256::digest(code))?;
            file.write_all(code)?;
            fs::rename(&temporary, path)
        })();
        if result.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        result
    }

    fn path(&self, digest: &Hash) -> PathBuf {
        self.folder.join(format!("{digest}-{}.cwasm", self.settings))
    }
}

/// The code of an entry, if its checksum says that it is what was written.
fn verified(entry: &[u8]) -> Option<&[u8]> {
    let rest = entry.strip_prefix(MAGIC.as_slice())?;
    let (sum, code) = rest.split_at_checked(SUM_BYTES)?;
    (Sha256::digest(code).as_slice() == sum).then_some(code)
}

/// The one unsafe call of this workspace's own code.
///
/// `Component::deserialize` is unsafe because it takes machine code at its word. Here the bytes come from a file in a folder that only this
/// user can write (checked by [`Cache::open`]), which this host wrote itself under a name made of the component's content hash, the host's
/// version and the engine's settings, and whose SHA-256 was compared just before ([`verified`]), from the same buffer, so nothing can have
/// changed in between. wasmtime checks its own version and the engine's settings again and answers with an error where they differ.
#[allow(unsafe_code)]
fn deserialize(engine: &wasmtime::Engine, code: &[u8]) -> Option<Component> {
    // SAFETY: see above.
    unsafe { Component::deserialize(engine, code) }.ok()
}

/// A short hash of everything besides the component that decides what it compiles to.
fn settings(engine: &wasmtime::Engine) -> String {
    struct Sha(Sha256);
    impl std::hash::Hasher for Sha {
        fn write(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }
        fn finish(&self) -> u64 {
            0 // Not used: the whole digest is taken.
        }
    }
    let mut sha = Sha(Sha256::new());
    env!("CARGO_PKG_VERSION").hash(&mut sha);
    engine.precompile_compatibility_hash().hash(&mut sha);
    let digest = data_encoding::HEXLOWER.encode(&sha.0.finalize());
    digest.get(..16).unwrap_or(&digest).to_owned()
}

fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// A name that no other thread and no other process uses at this time.
fn temporary_name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let started = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    format!(".new-{}-{started}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}
