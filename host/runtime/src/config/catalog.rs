//! What the plugins that a file names say about themselves. A trait, so that a configuration can be checked without compiling any.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use weir_engine::{EngineError, Grants, Guarantee, MissingGrant, Plugin};

/// The plugins of a folder.
pub trait Catalog {
    /// The stems of the plugin files in the folder, ascending.
    fn names(&self) -> Vec<String>;

    /// What one of them says. `None`: there is no such file. Asked only for plugins that the file names.
    fn facts(&self, plugin: &str) -> Option<Result<&dyn PluginFacts, Unusable>>;
}

/// What a plugin says about itself, as far as a configuration depends on it.
pub trait PluginFacts {
    /// The JSON Schema of its config.
    fn config_schema(&self) -> &Json;

    /// The best guarantee that it can give.
    fn guarantee(&self) -> Guarantee;

    /// What it needs and these grants do not give.
    fn missing_grants(&self, grants: &Grants) -> Vec<MissingGrant>;
}

/// A plugin that is there and cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable {
    /// The code; it has a page under docs/errors.
    pub code: &'static str,
    /// What is wrong with it.
    pub message: String,
    /// What to do.
    pub remedy: String,
}

/// Plugins that the engine has loaded, by name, and the names of the files that it was not asked to load.
#[derive(Default)]
pub struct LoadedPlugins {
    names: Vec<String>,
    loaded: BTreeMap<String, Result<Plugin, EngineError>>,
}

impl LoadedPlugins {
    /// From the names of all plugin files, and what came of loading some.
    pub fn new(names: Vec<String>, loaded: BTreeMap<String, Result<Plugin, EngineError>>) -> Self {
        Self { names, loaded }
    }

    /// The plugins that could be loaded.
    pub fn into_plugins(self) -> BTreeMap<String, Plugin> {
        self.loaded.into_iter().filter_map(|(name, plugin)| plugin.ok().map(|plugin| (name, plugin))).collect()
    }
}

impl Catalog for LoadedPlugins {
    fn names(&self) -> Vec<String> {
        self.names.clone()
    }

    fn facts(&self, plugin: &str) -> Option<Result<&dyn PluginFacts, Unusable>> {
        Some(match self.loaded.get(plugin)? {
            Ok(plugin) => Ok(plugin),
            Err(error) => {
                Err(Unusable { code: error.code().as_str(), message: error.to_string(), remedy: error.code().remedy().to_owned() })
            }
        })
    }
}

impl PluginFacts for Plugin {
    fn config_schema(&self) -> &Json {
        &self.description().config_schema
    }

    fn guarantee(&self) -> Guarantee {
        self.description().guarantee
    }

    fn missing_grants(&self, grants: &Grants) -> Vec<MissingGrant> {
        Plugin::missing_grants(self, grants)
    }
}
