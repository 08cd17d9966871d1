//! A file of a plugin, looked at before anything of it is compiled: is it a component, which contract, which imports.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Serialize;
use wasmparser::{ComponentExternalKind, Encoding, Parser, Payload};
use weir_protocol::Hash;

use crate::capabilities;
use crate::code::Code;
use crate::error::EngineError;
use crate::limits::MAX_COMPONENT_BYTES;
use crate::model::stem_of;
use crate::version;

/// What can be said about a plugin's file without compiling it.
#[derive(Clone, Debug, Serialize)]
pub struct Inspection {
    /// The file.
    pub path: PathBuf,
    /// The plugin's name: the file's stem.
    pub name: String,
    /// The file's size in bytes.
    pub bytes: u64,
    /// The SHA-256 of the file.
    pub digest: Hash,
    /// The version of the contract that it was built against.
    pub contract: &'static str,
    /// The interfaces that it imports, with their versions, as the component names them.
    pub imports: Vec<String>,
}

/// Reads and checks a file. Returns its bytes with what was found.
pub(crate) fn read(path: &Path) -> Result<(Inspection, Vec<u8>), EngineError> {
    let subject = path.display();
    let name = stem_of(path).filter(|_| path.extension().is_some_and(|ext| ext == "wasm")).ok_or_else(|| {
        let message = "a plugin's file is named `NAME.wasm`, where NAME is lower-case letters, digits, `-` and `_`";
        EngineError::load(Code::PluginFile, subject.to_string(), message)
    })?;
    let bytes = read_bounded(path)?;
    let outline = outline(&bytes).map_err(|(code, message)| EngineError::load(code, subject.to_string(), message))?;
    let contract = version::contract(outline.exports.iter().map(String::as_str))
        .map_err(|(code, message)| EngineError::load(code, subject.to_string(), message))?;
    let unknown: Vec<&str> =
        outline.imports.iter().map(String::as_str).filter(|import| !capabilities::is_served(import, contract)).collect();
    if !unknown.is_empty() {
        let message = format!(
            "it imports {}, which this host does not offer; a plugin may import the interfaces of WASI 0.2",
            unknown.iter().map(|name| format!("`{}`", crate::text::clean_line(name, 100))).collect::<Vec<_>>().join(", ")
        );
        return Err(EngineError::load(Code::PluginImport, subject, message));
    }
    let inspection =
        Inspection { path: path.to_owned(), name, bytes: bytes.len() as u64, digest: Hash::of(&bytes), contract, imports: outline.imports };
    Ok((inspection, bytes))
}

fn read_bounded(path: &Path) -> Result<Vec<u8>, EngineError> {
    let fail = |error: std::io::Error| EngineError::load(Code::PluginFile, path.display(), format!("it cannot be read: {error}"));
    let file = fs::File::open(path).map_err(fail)?;
    if !file.metadata().map_err(fail)?.is_file() {
        return Err(EngineError::load(Code::PluginFile, path.display(), "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_COMPONENT_BYTES + 1).read_to_end(&mut bytes).map_err(fail)?;
    if bytes.len() as u64 > MAX_COMPONENT_BYTES {
        let message = format!("it is larger than {} MiB, the most that a plugin may have", MAX_COMPONENT_BYTES >> 20);
        return Err(EngineError::load(Code::PluginSize, path.display(), message));
    }
    Ok(bytes)
}

struct Outline {
    imports: Vec<String>,
    exports: Vec<String>,
}

/// The names that a component imports and exports. What is nested in it has imports of its own, which the component satisfies.
fn outline(bytes: &[u8]) -> Result<Outline, (Code, String)> {
    if bytes.get(..4) != Some(b"\0asm") {
        return Err((Code::PluginNotWasm, "it is not a WebAssembly file".to_owned()));
    }
    let damaged = |error: wasmparser::BinaryReaderError| (Code::PluginNotWasm, format!("it is damaged: {error}"));
    let mut outline = Outline { imports: Vec::new(), exports: Vec::new() };
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.map_err(damaged)? {
            Payload::Version { encoding: Encoding::Module, .. } if depth == 0 => {
                let message = "it is a core module, and a plugin is a component; build it for `wasm32-wasip2`, \
                               or make a component of it with `wasm-tools component new`";
                return Err((Code::PluginCoreModule, message.to_owned()));
            }
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(section) if depth == 0 => {
                for import in section {
                    outline.imports.push(import.map_err(damaged)?.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(section) if depth == 0 => {
                for export in section {
                    let export = export.map_err(damaged)?;
                    if export.kind == ComponentExternalKind::Instance {
                        outline.exports.push(export.name.name.to_owned());
                    }
                }
            }
            _ => {}
        }
    }
    Ok(outline)
}
