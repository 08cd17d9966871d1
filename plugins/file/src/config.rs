//! What the operator configures, finished before any file is touched.

use std::fmt;

use serde::Deserialize;

use crate::error::Error;
use crate::name::{Extension, Prefix};

/// The JSON Schema of the config, as `describe` gives it.
pub const SCHEMA: &str = include_str!("../config.schema.json");

/// The checked config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Where to write.
    pub directory: Directory,
    /// What published names begin with.
    pub prefix: Prefix,
    /// What published names end in; nothing leaves it to the input's format.
    pub extension: Option<Extension>,
    /// The size in bytes at which a file is followed by another.
    pub roll_bytes: Option<u64>,
    /// Whether files of CSV begin with the names of the columns.
    pub header: bool,
    /// What ends a record that arrives without a line feed.
    pub separator: Separator,
}

/// What ends a record that arrives without a line feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Separator {
    /// One line feed; a record that has one inside is rejected.
    #[default]
    LineFeed,
    /// Nothing: the records' bytes back to back.
    None,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    directory: String,
    prefix: String,
    extension: Option<String>,
    roll_bytes: Option<u64>,
    #[serde(default = "yes")]
    header: bool,
    #[serde(default)]
    separator: Separator,
}

fn yes() -> bool {
    true
}

impl Config {
    /// Reads the JSON object that `open` receives.
    pub fn parse(json: &str) -> Result<Self, Error> {
        let raw: Raw = serde_json::from_str(json).map_err(|error| Error::Config(error.to_string()))?;
        let extension = raw.extension.as_deref().map(|text| checked("extension", text, Extension::parse(text)));
        if raw.roll_bytes == Some(0) {
            return Err(Error::Config("roll_bytes is 0".to_owned()));
        }
        Ok(Self {
            directory: checked("directory", &raw.directory, Directory::parse(&raw.directory))?,
            prefix: checked("prefix", &raw.prefix, Prefix::parse(&raw.prefix))?,
            extension: extension.transpose()?,
            roll_bytes: raw.roll_bytes,
            header: raw.header,
            separator: raw.separator,
        })
    }
}

fn checked<T>(key: &str, text: &str, parsed: Option<T>) -> Result<T, Error> {
    parsed.ok_or_else(|| Error::Config(format!("{key} cannot be {text:?}; `weir plugins inspect` shows what it can be")))
}

/// An absolute path, as the plugin sees it, in the one form that names the same folder always.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory(String);

impl Directory {
    /// Nothing if it is relative, or has a part `.` or `..`. Slashes at the end and doubled ones are dropped.
    pub fn parse(text: &str) -> Option<Self> {
        let parts = || text.split('/').filter(|part| !part.is_empty());
        if !text.starts_with('/') || parts().any(|part| matches!(part, "." | "..")) {
            return None;
        }
        let joined: String = parts().flat_map(|part| ["/", part]).collect();
        Some(Self(if joined.is_empty() { "/".to_owned() } else { joined }))
    }

    /// The way from a granted folder to this one, empty if it is the same; nothing if this one is outside.
    pub fn inside(&self, granted: &str) -> Option<String> {
        let granted = Self::parse(granted)?.0;
        let rest = self.0.strip_prefix(granted.trim_end_matches('/'))?;
        (rest.is_empty() || rest.starts_with('/')).then(|| rest.trim_start_matches('/').to_owned())
    }

    /// The host keeps this with what it owes. It is the place as the config names it; whether the folder found there is the same one is
    /// told by its marker, which does not exist before the first transaction and so cannot be part of this.
    pub fn target(&self) -> String {
        format!("file:{self}")
    }
}

impl fmt::Display for Directory {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn the_schema_and_the_code_agree_on_every_config() {
        let schema: Value = serde_json::from_str(SCHEMA).unwrap();
        let validator = jsonschema::draft202012::new(&schema).unwrap();
        let base = json!({ "directory": "/out", "prefix": "orders" });
        let with = |key: &str, value: Value| {
            let mut config = base.clone();
            config[key] = value;
            config
        };
        let good = [
            base.clone(),
            with("directory", json!("/")),
            with("directory", json!("/out/.hidden/...x/")),
            with("prefix", json!("a.b_c-9")),
            with("extension", json!("csv.part")),
            with("roll_bytes", json!(1)),
            with("header", json!(false)),
            with("separator", json!("none")),
        ];
        let bad = [
            json!({ "directory": "/out" }),
            json!({ "prefix": "orders" }),
            with("directory", json!("out")),
            with("directory", json!("/out/..")),
            with("directory", json!("/out/./x")),
            with("directory", json!("/../etc")),
            with("prefix", json!("")),
            with("prefix", json!(".hidden")),
            with("prefix", json!("a/b")),
            with("prefix", json!("a".repeat(101))),
            with("extension", json!("a.b.c")),
            with("extension", json!("../x")),
            with("roll_bytes", json!(0)),
            with("roll_bytes", json!(-1)),
            with("roll_bytes", json!("1MiB")),
            with("header", json!("yes")),
            with("separator", json!("tab")),
            with("colour", json!("red")),
            json!([]),
        ];
        for (configs, accepted) in [(good.as_slice(), true), (bad.as_slice(), false)] {
            for config in configs {
                assert_eq!(validator.is_valid(config), accepted, "schema: {config}");
                assert_eq!(Config::parse(&config.to_string()).is_ok(), accepted, "code: {config}");
            }
        }
    }

    #[test]
    fn the_schemas_defaults_are_the_codes() {
        let schema: Value = serde_json::from_str(SCHEMA).unwrap();
        let config = Config::parse(r#"{"directory":"/out","prefix":"orders"}"#).unwrap();
        assert_eq!(schema["properties"]["header"]["default"], json!(config.header));
        assert_eq!(schema["properties"]["separator"]["default"], json!("line-feed"));
        assert_eq!(config.separator, Separator::LineFeed);
    }

    #[test]
    fn one_folder_has_one_target() {
        let target = |text: &str| Directory::parse(text).unwrap().target();
        assert_eq!(target("/out"), "file:/out");
        assert_eq!(target("//out/"), target("/out"));
        assert_eq!(target("/"), "file:/");
    }

    #[test]
    fn a_directory_is_found_inside_a_granted_folder() {
        let directory = Directory::parse("/out/orders").unwrap();
        for (granted, expected) in
            [("/out", Some("orders")), ("/", Some("out/orders")), ("/out/orders/", Some("")), ("/out/ord", None), ("out", None)]
        {
            assert_eq!(directory.inside(granted).as_deref(), expected, "{granted}");
        }
    }
}
