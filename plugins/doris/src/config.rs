//! The sink's configuration: read once at `open`, checked as a whole, never changed afterwards.
//!
//! The host has checked the JSON against [`SCHEMA`] before; what a schema cannot say is checked here.

use std::collections::BTreeMap;

use http::{HeaderName, HeaderValue};
use serde::Deserialize;

use crate::endpoint::{self, Endpoint};

/// JSON Schema (draft 2020-12) of [`Raw`], as `describe` shows it.
pub(crate) const SCHEMA: &str = include_str!("config.schema.json");

/// Headers of a load that the sink sets itself or must not be set at all, lower case, with what to do instead.
const OWNED_HEADERS: &[(&str, &str)] = &[
    ("label", "the host names transactions"),
    ("two_phase_commit", "it is always true"),
    ("txn_id", "it belongs to another request"),
    ("txn_operation", "it belongs to another request"),
    ("group_commit", "Doris would replace the label and so lose the transaction"),
    ("format", "it follows the pipeline's input format"),
    ("read_json_by_line", "it follows the pipeline's input format"),
    ("strip_outer_array", "one record must stay one row"),
    ("line_delimiter", "records end in a line feed"),
    ("skip_lines", "it would drop records"),
    ("compress_type", "the body is not compressed"),
    ("columns", "use the key `columns`"),
    ("timeout", "use the key `load_timeout`"),
    ("strict_mode", "use the key `strict`"),
    ("max_filter_ratio", "use the key `max_filter_ratio`"),
    ("authorization", "use the keys `user` and `password`"),
    ("token", "use the keys `user` and `password`"),
    ("auth-token", "use the keys `user` and `password`"),
    ("expect", "the sink sends it"),
    ("accept-encoding", "the sink sends it"),
    ("content-length", "the body's length is not known before its end"),
    ("transfer-encoding", "the host sends it"),
    ("connection", "the host sends it"),
    ("host", "the host sends it"),
];

/// The JSON object as it is written. Every key is documented in `config.schema.json`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    fe: Vec<String>,
    database: String,
    table: String,
    user: String,
    #[serde(default)]
    password: String,
    columns: Option<String>,
    #[serde(default)]
    load_headers: BTreeMap<String, String>,
    #[serde(default = "yes")]
    strict: bool,
    #[serde(default)]
    max_filter_ratio: f64,
    #[serde(default)]
    be: Vec<String>,
    #[serde(default)]
    addresses: BTreeMap<String, String>,
    cluster: Option<String>,
    // Times are whole seconds.
    #[serde(default = "default_load_timeout")]
    load_timeout: u32,
    #[serde(default = "default_connect_timeout")]
    connect_timeout: u32,
    #[serde(default = "default_request_timeout")]
    request_timeout: u32,
    #[serde(default = "default_settle")]
    settle: u32,
    #[serde(default = "default_prepared_lifetime")]
    prepared_lifetime: u32,
}

fn yes() -> bool {
    true
}
fn default_load_timeout() -> u32 {
    600
}
fn default_connect_timeout() -> u32 {
    5
}
fn default_request_timeout() -> u32 {
    20
}
fn default_settle() -> u32 {
    60
}
fn default_prepared_lifetime() -> u32 {
    3_600
}

/// The checked configuration.
#[derive(Clone)]
pub(crate) struct Config {
    /// Front ends, at least one.
    pub(crate) fe: Vec<Endpoint>,
    /// Back ends to use without asking a front end; mostly empty.
    pub(crate) be: Vec<Endpoint>,
    /// Registered address (`host:port`) to the one to use.
    pub(crate) addresses: BTreeMap<String, Endpoint>,
    pub(crate) database: String,
    pub(crate) table: String,
    /// Value of the `Authorization` header. Goes to front ends and to where their redirects lead, and into no message.
    pub(crate) authorization: String,
    pub(crate) columns: Option<String>,
    pub(crate) load_headers: Vec<(String, String)>,
    pub(crate) strict: bool,
    pub(crate) max_filter_ratio: f64,
    pub(crate) load_timeout_s: u32,
    pub(crate) connect_timeout_ms: u64,
    pub(crate) request_timeout_ms: u64,
    pub(crate) settle_ms: u32,
    pub(crate) prepared_lifetime_s: u32,
    cluster: Option<String>,
}

/// What is wrong with a configuration that its schema accepts. Each names the key.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("the configuration cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    #[error("key `{key}`: {source}")]
    Address { key: &'static str, source: endpoint::EndpointError },
    #[error("key `fe`: at least one front end is needed")]
    NoFrontEnd,
    #[error("key `{0}` is empty")]
    Empty(&'static str),
    #[error("key `user`: a user's name cannot hold a colon")]
    Colon,
    #[error("key `load_headers`: the sink decides about `{name}`: {instead}")]
    OwnedHeader { name: String, instead: &'static str },
    #[error("key `load_headers`: `{0}` is not a header's name")]
    HeaderName(String),
    #[error("the value of header `{0}` holds characters that a header cannot carry")]
    HeaderValue(String),
    #[error("key `max_filter_ratio`: {0} is not between 0 and 1")]
    Ratio(f64),
}

impl Config {
    /// Reads and checks the JSON object of `setup.config`.
    pub(crate) fn parse(json: &str) -> Result<Self, ConfigError> {
        let raw: Raw = serde_json::from_str(json)?;
        if raw.fe.is_empty() {
            return Err(ConfigError::NoFrontEnd);
        }
        for (key, value) in [("database", &raw.database), ("table", &raw.table), ("user", &raw.user)] {
            if value.is_empty() {
                return Err(ConfigError::Empty(key));
            }
        }
        if raw.user.contains(':') {
            return Err(ConfigError::Colon);
        }
        if !(0.0..=1.0).contains(&raw.max_filter_ratio) {
            return Err(ConfigError::Ratio(raw.max_filter_ratio));
        }
        if let Some(columns) = &raw.columns {
            check_value("columns", columns)?;
        }
        Ok(Self {
            fe: endpoints("fe", &raw.fe)?,
            be: endpoints("be", &raw.be)?,
            addresses: addresses(&raw.addresses)?,
            authorization: basic(&raw.user, &raw.password),
            load_headers: load_headers(raw.load_headers)?,
            database: raw.database,
            table: raw.table,
            columns: raw.columns,
            strict: raw.strict,
            max_filter_ratio: raw.max_filter_ratio,
            load_timeout_s: raw.load_timeout,
            connect_timeout_ms: u64::from(raw.connect_timeout) * 1_000,
            request_timeout_ms: u64::from(raw.request_timeout) * 1_000,
            settle_ms: raw.settle.saturating_mul(1_000),
            prepared_lifetime_s: raw.prepared_lifetime,
            cluster: raw.cluster,
        })
    }

    /// The table's identity for the host: `doris://<database>.<table>@<cluster, or front ends in order>`.
    pub(crate) fn target(&self) -> String {
        let place = self.cluster.clone().unwrap_or_else(|| {
            let mut hosts: Vec<&str> = self.fe.iter().map(|fe| fe.authority.as_str()).collect();
            hosts.sort_unstable();
            hosts.dedup();
            hosts.join(",")
        });
        format!("doris://{}.{}@{place}", self.database, self.table)
    }
}

/// Whether `value` can be sent as header `name`.
pub(crate) fn check_value(name: &str, value: &str) -> Result<(), ConfigError> {
    HeaderValue::from_bytes(value.as_bytes()).map(drop).map_err(|_| ConfigError::HeaderValue(name.to_owned()))
}

fn endpoints(key: &'static str, urls: &[String]) -> Result<Vec<Endpoint>, ConfigError> {
    urls.iter().map(|url| Endpoint::parse(url).map_err(|source| ConfigError::Address { key, source })).collect()
}

fn addresses(raw: &BTreeMap<String, String>) -> Result<BTreeMap<String, Endpoint>, ConfigError> {
    let wrong = |source| ConfigError::Address { key: "addresses", source };
    raw.iter().map(|(from, to)| Ok((endpoint::authority(from).map_err(wrong)?, Endpoint::parse(to).map_err(wrong)?))).collect()
}

fn load_headers(raw: BTreeMap<String, String>) -> Result<Vec<(String, String)>, ConfigError> {
    for (name, value) in &raw {
        let lower = name.to_ascii_lowercase();
        if let Some((_, instead)) = OWNED_HEADERS.iter().find(|(owned, _)| *owned == lower) {
            return Err(ConfigError::OwnedHeader { name: name.clone(), instead });
        }
        HeaderName::from_bytes(name.as_bytes()).map_err(|_| ConfigError::HeaderName(name.clone()))?;
        check_value(name, value)?;
    }
    Ok(raw.into_iter().collect())
}

fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", data_encoding::BASE64.encode(format!("{user}:{password}").as_bytes()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;
    use serde_json::{Value, json};

    fn minimal() -> Value {
        json!({ "fe": ["http://fe2:8030", "http://FE1:8030"], "database": "shop", "table": "orders", "user": "root" })
    }

    fn with(key: &str, value: Value) -> Result<Config, ConfigError> {
        let mut json = minimal();
        json.as_object_mut().unwrap().insert(key.to_owned(), value);
        Config::parse(&json.to_string())
    }

    #[test]
    fn the_schema_and_the_type_know_the_same_keys() {
        let schema: Value = serde_json::from_str(SCHEMA).unwrap();
        assert_eq!(schema["additionalProperties"], json!(false));
        for (key, property) in schema["properties"].as_object().unwrap() {
            assert!(property["description"].as_str().is_some_and(|text| !text.is_empty()), "{key} is not documented");
            let value = match property["type"].as_str().unwrap() {
                "array" => json!(["http://a:1"]),
                "object" if key == "addresses" => json!({ "a:1": "http://a:1" }),
                "object" => json!({}),
                "integer" => property["minimum"].clone(),
                "number" => json!(0),
                "boolean" => json!(true),
                _ => json!("x"),
            };
            assert!(with(key, value).is_ok(), "the type does not know {key}");
        }
        let error = with("frontends", json!([])).err().unwrap().to_string();
        let known: Vec<&str> = error.split('`').skip(3).step_by(2).collect();
        let documented: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        assert_eq!(known.len(), documented.len(), "the schema does not document all of {known:?}");
    }

    #[test]
    fn defaults_in_the_schema_are_the_ones_used() {
        let schema: Value = serde_json::from_str(SCHEMA).unwrap();
        let config = Config::parse(&minimal().to_string()).unwrap();
        let default = |key: &str| schema["properties"][key]["default"].clone();
        assert_eq!(default("load_timeout"), json!(config.load_timeout_s));
        assert_eq!(default("connect_timeout"), json!(config.connect_timeout_ms / 1_000));
        assert_eq!(default("request_timeout"), json!(config.request_timeout_ms / 1_000));
        assert_eq!(default("settle"), json!(config.settle_ms / 1_000));
        assert_eq!(default("prepared_lifetime"), json!(config.prepared_lifetime_s));
        assert_eq!(default("strict"), json!(config.strict));
        assert_eq!(default("max_filter_ratio").as_f64().unwrap(), config.max_filter_ratio);
    }

    #[test]
    fn the_target_is_stable_and_holds_no_credentials() {
        let config = with("password", json!("hunter2")).unwrap();
        assert_eq!(config.target(), "doris://shop.orders@fe1:8030,fe2:8030");
        assert_eq!(with("cluster", json!("prod")).unwrap().target(), "doris://shop.orders@prod");
    }

    #[test]
    fn owned_headers_are_refused_in_any_case() {
        for (name, _) in OWNED_HEADERS {
            for name in [(*name).to_owned(), name.to_ascii_uppercase()] {
                let error = with("load_headers", json!({ name.clone(): "x" })).err().unwrap();
                assert!(matches!(error, ConfigError::OwnedHeader { .. }), "{name}: {error}");
            }
        }
        assert!(with("load_headers", json!({ "where": "k1 > 10", "column_separator": "\\x01" })).is_ok());
        assert!(matches!(with("load_headers", json!({ "a b": "x" })), Err(ConfigError::HeaderName(_))));
        assert!(matches!(with("load_headers", json!({ "where": "a\r\nlabel: x" })), Err(ConfigError::HeaderValue(_))));
        assert!(matches!(with("columns", json!("a\nb")), Err(ConfigError::HeaderValue(_))));
    }

    #[test]
    fn what_a_schema_cannot_say_is_checked() {
        assert!(matches!(with("fe", json!([])), Err(ConfigError::NoFrontEnd)));
        assert!(matches!(with("fe", json!(["http://u:p@fe:8030"])), Err(ConfigError::Address { key: "fe", .. })));
        assert!(matches!(with("addresses", json!({ "be": "be:8040" })), Err(ConfigError::Address { .. })));
        assert!(matches!(with("user", json!("a:b")), Err(ConfigError::Colon)));
        assert!(matches!(with("table", json!("")), Err(ConfigError::Empty("table"))));
        assert!(matches!(with("max_filter_ratio", json!(1.5)), Err(ConfigError::Ratio(_))));
    }

    #[test]
    fn authorization_is_basic() {
        assert_eq!(with("password", json!("")).unwrap().authorization, "Basic cm9vdDo=");
    }
}
