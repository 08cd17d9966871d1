//! The commands that load plugins, with the shipped ones. `make plugins` builds them into `build/plugins`.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

fn weir(folder: &Path, arguments: &[&str]) -> (String, String, i32) {
    let cache = folder.join("cache");
    let output = Command::new(env!("CARGO_BIN_EXE_weir"))
        .current_dir(folder)
        .args(arguments)
        .arg("--cache")
        .arg(&cache)
        .env("WEIR_LOG", "")
        .output()
        .unwrap();
    (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap(), output.status.code().unwrap())
}

#[test]
fn the_shipped_plugins_are_listed_inspected_and_checked_against() {
    let plugins = super::root().join("build/plugins");
    assert!(plugins.is_dir(), "{} is not there; run `make plugins` first", plugins.display());
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("out")).unwrap();
    let config = format!(
        "ledger: sqlite://weir.db\nplugins: {}\npipelines:\n  orders:\n    source: {{ generate: {{ records: 10 }} }}\n    sinks:\n      archive:\n        \
         plugin: file\n        config: {{ directory: /out, prefix: orders }}\n        grant: {{ folders: {{ /out: ./out }} }}\n",
        plugins.display()
    );
    std::fs::write(folder.path().join("weir.yaml"), &config).unwrap();

    let (text, _, code) = weir(folder.path(), &["plugins", "--json"]);
    assert_eq!(code, 0, "{text}");
    let listed: Value = serde_json::from_str(&text).unwrap();
    let names: Vec<&str> = listed["plugins"].as_array().unwrap().iter().map(|plugin| plugin["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"doris") && names.contains(&"file"), "{names:?}");

    let (text, _, code) = weir(folder.path(), &["plugins", "inspect", plugins.join("file.wasm").to_str().unwrap()]);
    assert_eq!(code, 0);
    for part in ["contract   0.1.0", "class      transactional", "needs      wasi:filesystem/", "\"prefix\"", "sha-256    "] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }

    let (text, told, code) = weir(folder.path(), &["check"]);
    assert_eq!((told.as_str(), code), ("weir.yaml: nothing wrong with 1 pipeline\n", 0));
    assert!(text.lines().nth(1).unwrap().contains("transactional"), "{text}");

    // Without the grant, with a prefix that the plugin's schema refuses.
    let refused = config.replace("        grant: { folders: { /out: ./out } }\n", "").replace("prefix: orders", "prefix: \"/\"");
    std::fs::write(folder.path().join("weir.yaml"), refused).unwrap();
    let (text, _, code) = weir(folder.path(), &["check", "--json"]);
    let report: Value = serde_json::from_str(&text).unwrap();
    let mut codes: Vec<&str> = report["errors"].as_array().unwrap().iter().map(|error| error["code"].as_str().unwrap()).collect();
    codes.sort_unstable();
    assert_eq!((codes, code), (vec!["config-grant-missing", "config-plugin-refuses"], 3), "{text}");
    assert!(!folder.path().join("weir.db").exists(), "a check opened the ledger");
}
