//! A configuration with the plugins that it names, ready to run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use weir_engine::{Engine, EngineError, EngineOptions, Plugin};

use super::Failure;
use super::args::EngineArgs;
use crate::config::catalog::LoadedPlugins;
use crate::config::{Config, Draft, ProcessVariables};
use crate::error::Exit;

/// Reads and checks a configuration, and loads the plugins that it names. Opens nothing else.
pub(super) async fn load(file: &Path, engine: &EngineArgs) -> Result<(Config, BTreeMap<String, Plugin>), Failure> {
    let draft = Draft::read(file, &ProcessVariables)?;
    let folder = draft.plugins_folder();
    let names = folder.as_deref().map(names).unwrap_or_default();
    let mut loaded = BTreeMap::new();
    if let Some(folder) = folder {
        let used: Vec<String> = draft.plugins_used().into_iter().filter(|name| names.contains(name)).collect();
        if !used.is_empty() {
            let engine = start(engine)?;
            for name in used {
                let plugin = engine.load(&folder.join(format!("{name}.wasm"))).await;
                loaded.insert(name, plugin);
            }
        }
    }
    let catalog = LoadedPlugins::new(names, loaded);
    let config = draft.check(&catalog)?;
    Ok((config, catalog.into_plugins()))
}

/// The engine, with its cache of compiled plugins.
pub(super) fn start(args: &EngineArgs) -> Result<Engine, Failure> {
    let cache = if args.no_cache { None } else { args.cache.clone().or_else(default_cache) };
    Engine::new(EngineOptions { cache }).map_err(|error| refused(&error))
}

/// An engine or a plugin that cannot be used.
pub(super) fn refused(error: &EngineError) -> Failure {
    let message = format!("{error}\n  help: {}", error.code().remedy());
    Failure::Coded { code: error.code().as_str(), message, exit: Exit::ConfigRefused }
}

/// The stems of the plugin files in a folder, ascending.
fn names(folder: &Path) -> Vec<String> {
    let files = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path());
    let plugins = files.filter(|path| path.extension().is_some_and(|extension| extension == "wasm"));
    let mut names: Vec<String> = plugins.filter_map(|path| path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned)).collect();
    names.sort();
    names
}

/// The user's cache folder, by the XDG base directory specification; none where there is no home.
fn default_cache() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")))?;
    Some(base.join("weir").join("compiled"))
}
