//! Labels and names: one label for one transaction, within every target's limits.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// What a label stands for.
type Key = (String, String, u64, u64, u32, u32, [u8; 8]);

fn key() -> impl Strategy<Value = Key> {
    // Few names and small numbers, and names that differ in little, so that collisions would show.
    let name = prop_oneof!["[a-b]{1,3}", "[a-z0-9][a-z0-9_-]{0,62}", Just("x".repeat(MAX_NAME_BYTES)), Just("g1-e1-l0-a1".to_owned())];
    let ledger = prop_oneof![Just([0; 8]), Just([255; 8]), any::<[u8; 8]>()];
    (name.clone(), name, 0..=MAX_GENERATION, 0..=MAX_EPOCH, 0..=MAX_LANE, 0..=MAX_ATTEMPT, ledger)
}

fn small_key() -> impl Strategy<Value = Key> {
    ("[ab]", "[ab]", 1..12_u64, 1..12_u64, 0..12_u32, 1..12_u32, Just([0; 8]))
}

fn label(key: &Key) -> Label {
    let (pipeline, sink, generation, epoch, lane, attempt, ledger) = key;
    let labels = Labels::new(LedgerId::from_random(*ledger), pipeline.parse().unwrap());
    let made = labels.transaction(&sink.parse().unwrap(), Generation(*generation), Epoch(*epoch), Lane(*lane), Attempt(*attempt));
    made.unwrap().label
}

proptest! {
    #[test]
    fn two_transactions_never_share_a_label(keys in proptest::collection::vec(prop_oneof![key(), small_key()], 1..200)) {
        let mut seen: BTreeMap<Label, Key> = BTreeMap::new();
        for key in keys {
            let label = label(&key);
            prop_assert_eq!(&label, &self::label(&key), "the same transaction has the same label");
            if let Some(other) = seen.insert(label, key.clone()) {
                prop_assert_eq!(other, key);
            }
        }
    }

    #[test]
    fn every_label_fits_every_target(key in key()) {
        let label = label(&key);
        let text = label.as_str();
        prop_assert!(text.len() <= MAX_LABEL_BYTES, "{}", text);
        prop_assert!(text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'), "{}", text);
        let start: String = key.0.bytes().filter(|b| *b != b'_').take(1).map(char::from).collect();
        prop_assert!(text.starts_with(&start) || text.starts_with('-'), "{}", text);
        prop_assert_eq!(Label::try_from(text.to_owned()).unwrap(), label);
    }

    #[test]
    fn a_name_reads_back_or_is_refused(text in ".{0,80}") {
        match PipelineId::try_from(text.clone()) {
            Ok(name) => prop_assert_eq!(name.as_str(), &text),
            Err(error) => prop_assert!(error.to_string().contains("not allowed")),
        }
    }
}

#[test]
fn the_largest_numbers_and_names_fit() {
    let name = "x".repeat(MAX_NAME_BYTES);
    let largest = (name.clone(), name, MAX_GENERATION, MAX_EPOCH, MAX_LANE, MAX_ATTEMPT, [255; 8]);
    let text = label(&largest).to_string();
    assert!(text.len() <= MAX_LABEL_BYTES, "{text}");
    assert!(text.ends_with("-g999999999-e999999999999-l9999-a99999"), "{text}");
}

#[test]
fn a_number_too_large_for_a_label_is_an_error_and_not_a_cut() {
    let (generation, epoch, lane, attempt) = (Generation(1), Epoch(1), Lane(0), Attempt(1));
    for (generation, epoch, lane, attempt) in [
        (Generation(MAX_GENERATION + 1), epoch, lane, attempt),
        (generation, Epoch(MAX_EPOCH + 1), lane, attempt),
        (generation, epoch, Lane(MAX_LANE + 1), attempt),
        (generation, epoch, lane, Attempt(MAX_ATTEMPT + 1)),
    ] {
        assert!(words(labels().transaction(&sink("a"), generation, epoch, lane, attempt)).contains("larger than a label has room for"));
    }
}

#[test]
fn pipeline_and_sink_are_told_apart_where_they_meet() {
    let one = |pipeline: &str, sink: &str| label(&(pipeline.to_owned(), sink.to_owned(), 1, 1, 0, 1, [0; 8]));
    let all = [one("ab", "c"), one("a", "bc"), one("a-b", "c"), one("a_b", "c"), one("ab", "c-"), one("c", "ab")];
    let distinct: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!(distinct.len(), all.len(), "{all:?}");
}

#[test]
fn names_outside_their_pattern_are_refused() {
    for text in ["", "A", "a b", "-a", "_a", "ä", "a\n", &"x".repeat(MAX_NAME_BYTES + 1)] {
        assert!(words(text.parse::<PipelineId>()).contains("pipeline name"), "{text:?}");
        assert!(words(text.parse::<SinkId>()).contains("sink name"), "{text:?}");
    }
    for text in ["", "a\n", "\u{7f}", &"x".repeat(MAX_SPLIT_ID_BYTES + 1)] {
        assert!(words(SplitId::try_from(text.to_owned())).contains("split name"), "{text:?}");
    }
    for text in ["", "A", "a_b", &"x".repeat(MAX_LABEL_BYTES + 1)] {
        assert!(words(Label::try_from(text.to_owned())).contains("label name"), "{text:?}");
    }
}

#[test]
fn ids_and_hashes_read_back_as_they_were_written() {
    let id = LedgerId::from_random([0xab; 8]);
    assert_eq!(LedgerId::try_from(id.to_string()).unwrap(), id);
    assert!(words(LedgerId::try_from("short".to_owned())).contains("ledger"));
    let hash = Hash::of(b"x");
    assert_eq!(Hash::try_from(hash.to_string()).unwrap(), hash);
    assert!(words(Hash::try_from("00".to_owned())).contains("hash"));
}
