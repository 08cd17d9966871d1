//! Files on their way to being plugins: what is found, what is refused and how, and the cache of compiled ones.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use support::component;
use weir_engine::{Code, Engine, EngineOptions, Fault};

const RUST: &str = "guests/count-rust.wasm";

fn without_cache() -> Engine {
    Engine::new(EngineOptions::default()).unwrap()
}

fn write(folder: &Path, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, bytes).unwrap();
    path
}

/// A component in text.
fn text(source: &str) -> Vec<u8> {
    wat::parse_str(source).unwrap()
}

#[tokio::test]
async fn what_is_no_plugin_is_said_to_be_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let sink = |import: &str, export: &str| {
        let import = if import.is_empty() { String::new() } else { format!("(import \"{import}\" (instance))") };
        text(&format!("(component {import} (instance $sink) (export \"{export}\" (instance $sink)))"))
    };
    let mut damaged = fs::read(component(RUST)).unwrap();
    damaged.truncate(damaged.len() / 2);
    for (name, bytes, code, words) in [
        ("text.wasm", b"hello".to_vec(), Code::PluginNotWasm, "not a WebAssembly file"),
        ("empty.wasm", Vec::new(), Code::PluginNotWasm, "not a WebAssembly file"),
        ("half.wasm", damaged, Code::PluginNotWasm, "damaged"),
        ("core.wasm", text("(module)"), Code::PluginCoreModule, "wasm-tools component new"),
        ("other.wasm", text("(component)"), Code::ContractMissing, "weir:sink/sink"),
        ("newer.wasm", sink("", "weir:sink/sink@0.2.0"), Code::ContractVersion, "newer than what this host serves: 0.1.0"),
        ("older.wasm", sink("", "weir:sink/sink@0.0.1"), Code::ContractVersion, "older than what this host serves: 0.1.0"),
        ("wants.wasm", sink("wasi:keyvalue/store@0.2.0", "weir:sink/sink@0.1.0"), Code::PluginImport, "`wasi:keyvalue/store@0.2.0`"),
        ("later.wasm", sink("wasi:http/types@0.3.0", "weir:sink/sink@0.1.0"), Code::PluginImport, "`wasi:http/types@0.3.0`"),
        ("hollow.wasm", sink("", "weir:sink/sink@0.1.0"), Code::ContractShape, "differ from the contract"),
        ("Upper.wasm", text("(component)"), Code::PluginFile, "lower-case"),
    ] {
        let path = write(folder.path(), name, bytes);
        let error = without_cache().load(&path).await.err().unwrap();
        assert_eq!(error.code(), code, "{name}: {error}");
        assert!(error.to_string().contains(words), "{name}: {error}");
    }
    let error = without_cache().load(&folder.path().join("absent.wasm")).await.err().unwrap();
    assert_eq!((error.code(), error.fault()), (Code::PluginFile, Fault::User));
}

#[tokio::test]
async fn the_good_ones_of_a_folder_are_used_and_the_others_are_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(component(RUST), folder.path().join("count.wasm")).unwrap();
    write(folder.path(), "broken.wasm", "hello");
    write(folder.path(), "README.md", "not a plugin, and not named like one");
    fs::create_dir(folder.path().join("folder.wasm")).unwrap();
    let found = without_cache().discover(folder.path()).await.unwrap();
    let names: Vec<_> = found.iter().map(|(name, plugin)| (name.as_str(), plugin.as_ref().err().map(|error| error.code()))).collect();
    assert_eq!(names, [("broken", Some(Code::PluginNotWasm)), ("count", None), ("folder", Some(Code::PluginFile))]);

    let error = without_cache().discover(&folder.path().join("absent")).await.err().unwrap();
    assert_eq!(error.code(), Code::PluginFolder);
}

#[tokio::test]
async fn a_plugin_says_what_it_is() {
    let plugin = without_cache().load(&component(RUST)).await.unwrap();
    assert_eq!((plugin.name(), plugin.description().name.as_str()), ("count-rust", "count-rust"));
    assert_eq!(plugin.inspection().contract, "0.1.0");
    assert!(plugin.inspection().imports.iter().any(|import| import.starts_with("wasi:filesystem/preopens@0.2.")));
    assert!(plugin.description().config_schema.is_object());
    assert_eq!(plugin.digest(), weir_protocol::Hash::of(&fs::read(component(RUST)).unwrap()));
    let json = serde_json::to_value((plugin.description(), plugin.inspection())).unwrap();
    assert_eq!(json[0]["guarantee"], "exactly-once");
}

fn entries(cache: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(cache).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[tokio::test]
async fn a_compiled_plugin_is_kept_and_a_damaged_one_is_compiled_again() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("a/cache");
    let engine = Engine::new(EngineOptions { cache: Some(cache.clone()) }).unwrap();
    assert_eq!(fs::metadata(&cache).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(entries(&cache), Vec::<PathBuf>::new());
    engine.load(&component(RUST)).await.unwrap();
    let [entry] = entries(&cache).try_into().unwrap();
    let good = fs::read(&entry).unwrap();

    // The same again is not written again.
    let written = fs::metadata(&entry).unwrap().modified().unwrap();
    engine.load(&component(RUST)).await.unwrap();
    assert_eq!(fs::metadata(&entry).unwrap().modified().unwrap(), written);

    // Damage anywhere is found, and mended.
    for place in [0, 10, 45, good.len() / 2, good.len() - 1] {
        let mut damaged = good.clone();
        damaged[place] ^= 1;
        fs::write(&entry, damaged).unwrap();
        engine.load(&component(RUST)).await.unwrap();
        assert_eq!(fs::read(&entry).unwrap(), good, "damage at {place}");
    }
    fs::write(&entry, &good[..good.len() / 2]).unwrap();
    engine.load(&component(RUST)).await.unwrap();
    assert_eq!(entries(&cache), [entry]);
}

#[test]
fn a_cache_that_others_can_write_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o770)).unwrap();
    let error = Engine::new(EngineOptions { cache: Some(folder.path().to_owned()) }).err().unwrap();
    assert_eq!(error.code(), Code::PluginCache);
    assert!(error.to_string().contains("0770") && error.to_string().contains("0700"), "{error}");
    let file = write(folder.path(), "file", "");
    assert_eq!(Engine::new(EngineOptions { cache: Some(file) }).err().unwrap().code(), Code::PluginCache);
}
