//! What is said of a configuration: `tests/golden/config/<case>/{weir.yaml,variables,expected.txt}`.
//!
//! The plugins are those of `tests/golden/config/catalog.json`, so that no case needs a compiled one. Each case runs in a folder of its own that has `plugins`
//! and `out` in it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use weir::config::catalog::{PluginFacts, Unusable};
use weir::config::{Catalog, Config, Draft, Report, SourceConfig, Variables};
use weir_engine::{Grants, Guarantee, MissingGrant, Remedy};

/// Plugins that are only described.
struct Described(BTreeMap<String, Entry>);

#[derive(Deserialize)]
#[serde(untagged)]
enum Entry {
    Usable(Facts),
    Unusable { unusable: String },
}

#[derive(Deserialize)]
struct Facts {
    guarantee: String,
    needs: BTreeMap<String, String>,
    config_schema: Value,
}

impl Catalog for Described {
    fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    fn facts(&self, plugin: &str) -> Option<Result<&dyn PluginFacts, Unusable>> {
        Some(match self.0.get(plugin)? {
            Entry::Usable(facts) => Ok(facts),
            Entry::Unusable { unusable } => Err(Unusable {
                code: "plugin-version",
                message: unusable.clone(),
                remedy: "use a version of the plugin for this host".to_owned(),
            }),
        })
    }
}

impl PluginFacts for Facts {
    fn config_schema(&self) -> &Value {
        &self.config_schema
    }

    fn guarantee(&self) -> Guarantee {
        match self.guarantee.as_str() {
            "exactly-once" => Guarantee::ExactlyOnce,
            "idempotent" => Guarantee::Idempotent,
            _ => Guarantee::AtLeastOnce,
        }
    }

    fn missing_grants(&self, grants: &Grants) -> Vec<MissingGrant> {
        let remedy = |interface: &str| match interface.split_once('/').map(|(package, _)| package) {
            Some("wasi:http") => grants.http.is_empty().then(|| Remedy::Add("grant: { http: [\"HOST:PORT\"] }".to_owned())),
            Some("wasi:filesystem") => {
                grants.folders.is_empty().then(|| Remedy::Add("grant: { folders: { /GUEST/PATH: ./HOST/PATH } }".to_owned()))
            }
            _ => Some(Remedy::NotSupported),
        };
        let needs = self.needs.iter();
        needs
            .filter_map(|(interface, why)| {
                Some(MissingGrant { interface: interface.clone(), why: Some(why.clone()), declared: true, remedy: remedy(interface)? })
            })
            .collect()
    }
}

struct CaseVariables(BTreeMap<String, String>);

impl Variables for CaseVariables {
    fn get(&self, name: &str) -> Option<String> {
        self.0.get(name).cloned()
    }

    fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }
}

#[test]
fn everything_that_is_wrong_with_a_configuration_is_said_at_once_with_its_place() {
    let cases = super::root().join("tests/golden/config");
    let catalog: BTreeMap<String, Entry> = serde_json::from_str(&fs::read_to_string(cases.join("catalog.json")).unwrap()).unwrap();
    let catalog = Described(catalog);
    let mut folders: Vec<_> = fs::read_dir(&cases).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    assert!(folders.len() >= 25, "{} cases", folders.len());
    for case in folders {
        super::compare(&case.join("expected.txt"), &run(&case, &catalog));
    }
}

/// What is said of one case, with the folder's name taken out.
fn run(case: &Path, catalog: &Described) -> String {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().canonicalize().unwrap();
    fs::create_dir(place.join("plugins")).unwrap();
    fs::create_dir(place.join("out")).unwrap();
    let file = place.join("weir.yaml");
    fs::copy(case.join("weir.yaml"), &file).unwrap();
    let lines = fs::read_to_string(case.join("variables")).unwrap_or_default();
    let variables =
        lines.lines().filter_map(|line| line.split_once('=')).map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let text = match check(&file, &CaseVariables(variables), catalog) {
        Ok(config) => accepted(&config),
        Err(report) => {
            // All three forms say the same, and none of them trips over a place.
            assert_eq!(report.json()["errors"].as_array().unwrap().len(), report.errors().len());
            let fancy = report.fancy();
            assert!(report.errors().iter().all(|error| fancy.contains(error.code)), "{fancy}");
            report.plain()
        }
    };
    for secret in lines.lines().filter_map(|line| line.strip_prefix("SECRET=")) {
        assert!(!text.contains(secret), "{text}");
    }
    let left = fs::read_dir(&place).unwrap().count();
    assert_eq!(left, 3, "the check made a file");
    text.replace(&format!("{}/weir.yaml", place.display()), "weir.yaml").replace(place.to_str().unwrap(), "[FOLDER]")
}

fn check(file: &Path, variables: &CaseVariables, catalog: &Described) -> Result<Config, Report> {
    Draft::read(file, variables)?.check(catalog)
}

/// A checked config, with what its `Debug` hides. What a source makes of its own keys is its own matter.
fn accepted(config: &Config) -> String {
    assert!(!format!("{config:?}").contains("not-shown"), "a secret is in the debug form");
    let mut text = format!("{}\nledger {}\nplugins {}\n", config.file.display(), config.ledger, config.plugins.display());
    for (id, pipeline) in &config.pipelines {
        let source = match pipeline.source {
            SourceConfig::File(_) => "file",
            SourceConfig::Generate(_) => "generate",
        };
        writeln!(text, "\npipeline {id}: {source}, {} lanes, {:?}", pipeline.lanes, pipeline.delivery).unwrap();
        writeln!(text, "{:?}\n{:?}", pipeline.checkpoint, pipeline.restart).unwrap();
        for (name, sink) in &pipeline.sinks {
            writeln!(text, "sink {name}: plugin {}, {:?}\n  {}\n  {:?}", sink.plugin, sink.limits, sink.config_json, sink.grants).unwrap();
        }
    }
    text
}

#[test]
fn a_file_that_is_not_there_is_one_error_without_a_place() {
    let report = Draft::read(Path::new("/nonexistent/weir.yaml"), &CaseVariables(BTreeMap::new())).unwrap_err();
    assert_eq!(report.errors().len(), 1);
    assert!(
        report.plain().starts_with("/nonexistent/weir.yaml: error[config-unreadable]: the file cannot be read: No such file"),
        "{}",
        report.plain()
    );
}
