//! A tree held against a JSON Schema: the file's own, or a plugin's for its config.

use jsonschema::Validator;
use jsonschema::paths::LocationSegment;
use serde_json::Value as Json;

use super::explain::{Explained, explain};
use super::node::{Node, Step, descend, path_text};
use super::raw;
use super::report::ConfigError;
use crate::error::code;

/// The JSON Schema of the whole file, draft 2020-12.
pub fn file_schema() -> Json {
    schemars::schema_for!(raw::File).to_value()
}

/// Whose schema refuses.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Owner<'a> {
    /// The file's own.
    File,
    /// A plugin's, for a sink's config.
    Plugin(&'a str),
}

/// A schema ready to be used.
pub(crate) struct Schema<'a> {
    schema: &'a Json,
    validator: Validator,
}

impl<'a> Schema<'a> {
    /// Compiles it; the error says what is wrong with the schema. It never fetches another.
    pub(crate) fn new(schema: &'a Json) -> Result<Self, String> {
        let validator =
            jsonschema::options().with_draft(jsonschema::Draft::Draft202012).build(schema).map_err(|error| error.to_string())?;
        Ok(Self { schema, validator })
    }

    /// Everything in a tree that the schema refuses. `at` is the path from the root of the file to `node`, and `root` is that root.
    pub(crate) fn check(&self, owner: Owner<'_>, file: &str, root: &Node, at: &[Step]) -> Vec<ConfigError> {
        let Some((node, _)) = descend(root, at) else { return Vec::new() };
        let json = node.to_json();
        let mut found = Vec::new();
        for error in self.validator.iter_errors(&json) {
            for explained in explain(self.schema, &error, node, file) {
                found.extend(place(explained, owner, root, at));
            }
        }
        found
    }
}

/// The steps of a location in a JSON document.
pub(crate) fn steps(location: &jsonschema::paths::Location) -> Vec<Step> {
    location
        .segments()
        .map(|segment| match segment {
            LocationSegment::Property(name) => Step::Key(name.into_owned()),
            LocationSegment::Index(index) => Step::Item(index),
        })
        .collect()
}

/// Gives an explanation its place in the file. `None`: the value has a variable that is missing, which was reported.
fn place(explained: Explained, owner: Owner<'_>, root: &Node, at: &[Step]) -> Option<ConfigError> {
    let mut path = at.to_vec();
    path.extend(explained.steps);
    let (node, entry) = descend(root, &path)?;
    if explained.about_value && node.unresolved() {
        return None;
    }
    // A mapping is long, so what is said of one as a whole is said at its key.
    let place = if explained.at_key { entry.map_or(node.place, |entry| entry.key_place) } else { node.place };
    let (code, message, help) = match owner {
        Owner::File => (explained.code, explained.message, explained.help),
        Owner::Plugin(plugin) => (
            code::CONFIG_PLUGIN_REFUSES,
            format!("plugin {plugin} refuses its config: {}", explained.message),
            format!("{}; `weir plugins inspect` prints the schema", explained.help),
        ),
    };
    Some(ConfigError { code, message, help, place: Some(place), path: path_text(&path) })
}
