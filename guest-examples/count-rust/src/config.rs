//! What the operator writes under `config`.

use serde::Deserialize;

use crate::bindings::weir::sink::types::Error;
use crate::error;

/// The host checks the configuration against this before it opens the sink.
pub(crate) const SCHEMA: &str = include_str!("config.schema.json");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// A granted folder, by the name that the grant gives it.
    pub(crate) directory: String,
}

impl Config {
    pub(crate) fn parse(json: &str) -> Result<Self, Error> {
        serde_json::from_str(json).map_err(|error| error::refused(format!("the configuration does not fit: {error}")))
    }
}
