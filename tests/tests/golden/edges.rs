//! The picture in ARCHITECTURE.md: which crate may depend on which, and what only one of them may know.

use std::collections::{BTreeMap, BTreeSet};

/// Edges between our crates, as drawn.
const ALLOWED: &[(&str, &[&str])] = &[
    ("weir-protocol", &[]),
    ("weir-ledger", &["weir-protocol"]),
    ("weir-engine", &["weir-protocol"]),
    ("weir", &["weir-protocol", "weir-ledger", "weir-engine"]),
    ("doris-emulator", &[]),
    ("weir-tests", &["weir-protocol", "weir-ledger", "weir-engine", "weir", "doris-emulator"]),
];

/// What only one crate of the host may depend on.
const ONLY_HERE: &[(&str, &str)] =
    &[("sqlx", "weir-ledger"), ("wasmtime", "weir-engine"), ("wasmtime-wasi", "weir-engine"), ("wasmtime-wasi-http", "weir-engine")];

fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let output = std::process::Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(weir_tests::paths::root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let names = |package: &serde_json::Value| {
        let all = package["dependencies"].as_array().unwrap();
        all.iter().map(|dependency| dependency["name"].as_str().unwrap().to_owned()).collect()
    };
    let packages = metadata["packages"].as_array().unwrap();
    packages.iter().map(|package| (package["name"].as_str().unwrap().to_owned(), names(package))).collect()
}

#[test]
fn crates_depend_on_each_other_only_as_the_picture_says() {
    let found = dependencies();
    let ours: BTreeSet<&str> = found.keys().map(String::as_str).collect();
    assert_eq!(ours, ALLOWED.iter().map(|(name, _)| *name).collect(), "a crate is missing in the picture, or gone");
    for (name, allowed) in ALLOWED {
        let edges: BTreeSet<&str> = found[*name].iter().map(String::as_str).filter(|edge| ours.contains(edge)).collect();
        let unlisted: Vec<&&str> = edges.iter().filter(|edge| !allowed.contains(*edge)).collect();
        assert!(unlisted.is_empty(), "{name} depends on {unlisted:?}; a new arrow is a design note first");
    }
}

#[test]
fn only_one_crate_knows_sql_and_only_one_knows_wasmtime() {
    for (name, dependencies) in dependencies() {
        for (what, only) in ONLY_HERE {
            assert!(name == *only || !dependencies.contains(*what), "{name} depends on {what}, which only {only} may");
        }
    }
}

#[test]
fn the_protocol_depends_on_nothing_that_does_io_or_asks_the_time() {
    let found = dependencies();
    let allowed = ["serde", "serde_json", "sha2", "data-encoding", "thiserror", "proptest", "trybuild"];
    let more: Vec<&String> = found["weir-protocol"].iter().filter(|name| !allowed.contains(&name.as_str())).collect();
    assert!(more.is_empty(), "{more:?}");
}
