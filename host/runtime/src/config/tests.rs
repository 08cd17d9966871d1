//! Whatever is in a file, reading it ends, and every place that is named lies in it.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::sample::Index;

use super::catalog::LoadedPlugins;
use super::{Draft, Report};

const WHOLE: &str = include_str!("../../../../tests/golden/config/every-key/weir.yaml");

/// Pieces that mean something to YAML or to the configuration.
const PIECES: &[&str] = &[
    "\n",
    "  ",
    "{",
    "}",
    "[",
    "]",
    ": ",
    "- ",
    ",",
    "\"",
    "'",
    "&a ",
    "*a",
    "!!str ",
    "# ",
    "|\n",
    "---\n",
    "null",
    "true",
    "-1",
    "1e999",
    "0x",
    "${A}",
    "${",
    "$${",
    "ä",
    "\u{1f600}",
    "\t",
    "\r\n",
    "\0",
    "pipelines",
    "sinks",
    "config",
    "grant",
    "folders",
    "999999999999999999999999",
];

/// A change of a text: at a place, so many characters go, and a piece comes.
type Edit = (Index, usize, Index);

fn edited(edits: &[Edit]) -> String {
    let mut text: Vec<char> = WHOLE.chars().collect();
    for (place, gone, piece) in edits {
        let start = place.index(text.len() + 1);
        let end = (start + gone).min(text.len());
        text.splice(start..end, PIECES[piece.index(PIECES.len())].chars());
    }
    text.into_iter().collect()
}

fn check(text: &str) -> Result<(), Report> {
    let variables = BTreeMap::from([("A".to_owned(), "secret-value".to_owned())]);
    let draft = Draft::from_text(Path::new("weir.yaml"), PathBuf::from("/"), text.to_owned(), &variables)?;
    draft.check(&LoadedPlugins::default()).map(|_| ())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn whatever_a_file_holds_its_errors_have_places_in_it(edits in prop::collection::vec(any::<Edit>(), 1..8), cut in 0_usize..12) {
        let edits: Vec<Edit> = edits.into_iter().map(|(place, gone, piece)| (place, gone % (cut + 1), piece)).collect();
        let text = edited(&edits);
        // No plugin is there, so no file passes.
        let report = check(&text).unwrap_err();
        prop_assert!(!report.errors().is_empty());
        for error in report.errors() {
            if let Some(place) = error.place {
                prop_assert!(text.is_char_boundary(place.offset) && text.is_char_boundary(place.offset + place.length), "{error:?}");
                prop_assert!(place.line >= 1 && place.column >= 1);
            }
        }
        let all = report.plain() + &report.fancy() + &report.json().to_string();
        prop_assert!(!all.contains("secret-value"), "{all}");
    }
}
