//! The engine: one for a process, shared by all plugins and threads.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use wasmtime::component::{Component, Linker};

use crate::cache::Cache;
use crate::code::Code;
use crate::component::{self, Inspection};
use crate::error::EngineError;
use crate::limits::EPOCH_TICK;
use crate::plugin::Plugin;
use crate::store::State;

/// Loads plugins. Cheap to clone; every clone is the same engine.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

struct Shared {
    wasm: wasmtime::Engine,
    linker: Linker<State>,
    cache: Option<Cache>,
}

/// How an engine is made.
#[derive(Clone, Debug, Default)]
pub struct EngineOptions {
    /// Where compiled plugins are kept. Whoever can write this folder is trusted. Absent: each start compiles.
    pub cache: Option<PathBuf>,
}

impl Engine {
    /// Starts the engine and the thread that interrupts running plugins, which ends with the engine's last clone and its last plugin.
    pub fn new(options: EngineOptions) -> Result<Self, EngineError> {
        let start = |error: wasmtime::Error| EngineError::load(Code::EngineStart, "engine", format!("{error:#}"));
        let wasm = wasmtime::Engine::new(&config()).map_err(start)?;
        let linker = linker(&wasm).map_err(start)?;
        let cache = options.cache.map(|folder| Cache::open(&folder, &wasm)).transpose()?;
        tick(&wasm).map_err(|error| EngineError::load(Code::EngineStart, "engine", format!("no thread for its clock: {error}")))?;
        Ok(Self { shared: Arc::new(Shared { wasm, linker, cache }) })
    }

    /// Looks at a plugin's file without compiling it.
    pub fn inspect(&self, path: &Path) -> Result<Inspection, EngineError> {
        component::read(path).map(|(inspection, _)| inspection)
    }

    /// Loads a plugin: checks the file, compiles it or takes it from the cache, and asks it what it is, without grants.
    pub async fn load(&self, path: &Path) -> Result<Plugin, EngineError> {
        let (engine, file) = (self.clone(), path.to_owned());
        let compiled = tokio::task::spawn_blocking(move || engine.compile(&file));
        let (inspection, component) = compiled
            .await
            .map_err(|error| EngineError::load(Code::PluginCompile, path.display(), format!("the compiler failed: {error}")))??;
        let subject = path.display();
        let pre = self
            .shared
            .linker
            .instantiate_pre(&component)
            .map_err(|error| EngineError::load(Code::PluginImport, subject, format!("an import cannot be satisfied: {error:#}")))?;
        Plugin::describe(inspection, pre).await
    }

    /// Loads every `.wasm` file of a folder, in the order of their names. A file that is no plugin is an entry with its error; the others
    /// can be used. Fails only if the folder itself cannot be read.
    pub async fn discover(&self, folder: &Path) -> Result<Vec<(String, Result<Plugin, EngineError>)>, EngineError> {
        let fail = |error: std::io::Error| EngineError::load(Code::PluginFolder, folder.display(), format!("it cannot be read: {error}"));
        let mut paths = Vec::new();
        for entry in fs::read_dir(folder).map_err(fail)? {
            let path = entry.map_err(fail)?.path();
            if path.extension().is_some_and(|ext| ext.eq_ignore_ascii_case("wasm")) {
                paths.push(path);
            }
        }
        paths.sort();
        let mut found = Vec::with_capacity(paths.len());
        for path in paths {
            let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
            found.push((stem, self.load(&path).await));
        }
        Ok(found)
    }

    fn compile(&self, path: &Path) -> Result<(Inspection, Component), EngineError> {
        let (inspection, bytes) = component::read(path)?;
        if let Some(component) = self.shared.cache.as_ref().and_then(|cache| cache.load(&self.shared.wasm, &inspection.digest)) {
            return Ok((inspection, component));
        }
        let component = Component::from_binary(&self.shared.wasm, &bytes)
            .map_err(|error| EngineError::load(Code::PluginCompile, path.display(), format!("it cannot be compiled: {error:#}")))?;
        if let Some(cache) = &self.shared.cache {
            cache.store(&inspection.digest, &component);
        }
        Ok((inspection, component))
    }
}

fn config() -> wasmtime::Config {
    let mut config = wasmtime::Config::new();
    config.epoch_interruption(true);
    config.parallel_compilation(true);
    // Plugins of WASI 0.2 need none of it, and a call without costs a quarter.
    config.concurrency_support(false);
    config
}

fn linker(wasm: &wasmtime::Engine) -> wasmtime::Result<Linker<State>> {
    let mut linker = Linker::new(wasm);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(&mut linker)?;
    Ok(linker)
}

/// Moves the engine's epoch on, which makes running plugins give their thread back so that time-outs and other work get it.
fn tick(wasm: &wasmtime::Engine) -> std::io::Result<()> {
    let weak = wasm.weak();
    std::thread::Builder::new().name("weir-epoch".to_owned()).spawn(move || {
        loop {
            std::thread::sleep(EPOCH_TICK);
            match weak.upgrade() {
                Some(engine) => engine.increment_epoch(),
                None => return,
            }
        }
    })?;
    Ok(())
}
