//! Every error code has a page, and every page a code.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use weir::error::all_codes;

#[test]
fn every_code_has_a_page_that_begins_with_its_meaning_and_every_page_has_a_code() {
    let folder = super::root().join("docs/errors");
    let mut known: BTreeMap<&str, &weir::error::CodePage> = BTreeMap::new();
    let all = all_codes();
    for page in &all {
        assert!(known.insert(page.code, page).is_none(), "two codes are called {}", page.code);
    }
    let files: BTreeSet<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "README.md")
        .map(|name| name.strip_suffix(".md").unwrap_or_else(|| panic!("{name} is not a page")).to_owned())
        .collect();
    let bless = std::env::var_os("BLESS").is_some();
    for (code, page) in &known {
        let path = folder.join(format!("{code}.md"));
        if bless && !files.contains(*code) {
            fs::write(&path, page.skeleton()).unwrap();
        }
        let text =
            fs::read_to_string(&path).unwrap_or_else(|_| panic!("docs/errors/{code}.md is missing; BLESS=1 writes one to begin with"));
        let head = format!("# {code}\n\n{}\n", page.meaning);
        assert!(text.starts_with(&head), "docs/errors/{code}.md does not begin with\n{head}");
        assert!(text.contains("\n## Cause\n") && text.contains("\n## Remedy\n"), "docs/errors/{code}.md lacks a cause or a remedy");
    }
    let strays: Vec<&String> = files.iter().filter(|file| !known.contains_key(file.as_str())).collect();
    assert!(strays.is_empty(), "pages of codes that nobody gives: {strays:?}");
    super::compare(&folder.join("README.md"), &index(&known));
}

fn index(known: &BTreeMap<&str, &weir::error::CodePage>) -> String {
    let mut text =
        "# Error codes\n\nEvery error that Weir reports has a code, and every code a page.\n\n| code | meaning |\n| --- | --- |\n"
            .to_owned();
    for (code, page) in known {
        text += &format!("| [{code}]({code}.md) | {} |\n", page.meaning.replace('|', "\\|"));
    }
    text
}
