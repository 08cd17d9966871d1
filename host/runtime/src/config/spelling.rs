//! The valid word nearest to one that is not.

use strsim::damerau_levenshtein;

/// The nearest of some words, if one is near enough to be meant.
pub(crate) fn nearest<'a>(word: &str, valid: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let written = word.to_lowercase();
    let most = (written.chars().count() / 3).clamp(1, 3);
    valid
        .into_iter()
        .map(|candidate| (damerau_levenshtein(&written, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= most && *distance < candidate.chars().count())
        .min()
        .map(|(_, candidate)| candidate)
}

/// Words in backticks, with commas, for a sentence.
pub(crate) fn list<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = words.into_iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        None => "none".to_owned(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_found_and_far_ones_are_not() {
        let words = ["interval", "records", "bytes"];
        assert_eq!(nearest("intervall", words), Some("interval"));
        assert_eq!(nearest("record", words), Some("records"));
        assert_eq!(nearest("Bytes", words), Some("bytes"));
        assert_eq!(nearest("byets", words), Some("bytes"));
        assert_eq!(nearest("frequency", words), None);
        assert_eq!(nearest("", words), None);
    }
}
