//! The contract: a released folder never changes, and the one that may still move does not move by accident.

use weir_protocol::Hash;

#[test]
fn the_contract_is_the_one_that_was_written_down() {
    let folder = weir_tests::paths::root().join("wit/since-v0.1.0");
    let mut names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name.ends_with(".wit"));
    names.sort();
    let hashes: String = names.iter().map(|name| format!("{} {name}\n", Hash::of(&std::fs::read(folder.join(name)).unwrap()))).collect();
    let expected = folder.join("hashes.txt");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&expected, &hashes).unwrap();
    }
    let written = std::fs::read_to_string(&expected).unwrap_or_default();
    assert_eq!(written, hashes, "the contract changed; if that is meant, say so in CHANGELOG.md and run `make bless`");
}
