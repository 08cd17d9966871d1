//! The codes of what can go wrong while reading. Each has a page under docs/errors with its cause and its remedy.

/// A code, with what it means and what to do, in one line each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    /// The code itself.
    pub text: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// What to do.
    pub remedy: &'static str,
}

macro_rules! codes {
    ($($name:ident = $text:literal, $meaning:literal, $remedy:literal;)*) => {
        $(#[doc = $meaning] pub const $name: Code = Code { text: $text, meaning: $meaning, remedy: $remedy };)*

        /// All of them.
        pub const ALL: &[Code] = &[$($name,)*];
    };
}

codes! {
    BAD_PATTERN = "source-bad-pattern",
        "The pattern of a file source is not one.",
        "Mend `path`: `*` and `?` stand for characters of a name, `**` for folders, `[…]` for one of several characters.";
    NO_FILES = "source-no-files",
        "No file matches the pattern of a bounded file source that never read any.",
        "Check `path` and the folder it counts from, or set `follow: true` to wait for files.";
    UNREADABLE = "source-unreadable",
        "A file or a folder cannot be read, or vanished before it was.",
        "Mend permissions, mount or link, or narrow the pattern, and start again.";
    NOT_A_FILE = "source-not-a-file",
        "The pattern matches something that is not a regular file.",
        "Narrow `path` so that it matches files only.";
    RECORD_TOO_LONG = "source-record-too-long",
        "A record is longer than the limit.",
        "Raise `max_record_bytes`, or the sink's batch size where that is the narrower one, or mend the file.";
    BAD_UTF8 = "source-bad-utf8",
        "A file that promises JSON, or a CSV header, is not UTF-8.",
        "Convert the file, or read it as `format: lines` if its encoding does not matter.";
    BAD_JSON = "source-bad-json",
        "A line is not one JSON value, and `validate` is on.",
        "Mend the line, or set `validate: false` to leave the judgement to the sink.";
    CSV_FIELDS = "source-csv-fields",
        "A CSV row has too few or too many fields.",
        "Mend the row, or the header.";
    CSV_QUOTE = "source-csv-quote",
        "A quoted CSV field never ends.",
        "Mend the row: a quote within a quoted field is written twice.";
    CSV_HEADER = "source-csv-header",
        "A CSV file has no usable header, or another one than the first file.",
        "Give every file the same header of distinct names, or read files of another shape in a pipeline of their own.";
    TRUNCATED = "source-truncated",
        "A file was cut short or overwritten before it was read to its end.",
        "Recover the named bytes from a copy if they matter, then name the split under `abandon`; rotate by rename instead.";
    CHANGED = "source-changed",
        "A file does not hold any more what was read from it.",
        "Bring the file back as it was, or name the split under `abandon`.";
    LOST_FILE = "source-lost-file",
        "A file that was read in part cannot be found again.",
        "Move the file back into its folder, under any name, or name the split under `abandon`.";
    COMPRESSED_BROKEN = "source-compressed-broken",
        "A compressed file ends too early or is damaged.",
        "Replace the file by a whole one.";
    COMPRESSED_FOLLOW = "source-compressed-follow",
        "A pattern that is followed matches a compressed file.",
        "Narrow `path` so that it matches plain files only; read compressed ones in a pipeline without `follow`.";
    BAD_POSITION = "source-bad-position",
        "The ledger holds a position that this source did not write.",
        "Give a pipeline that reads from elsewhere a new name; after a downgrade, go back to the newer version.";
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    #[test]
    fn every_code_has_a_page_that_says_the_same() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors");
        for code in super::ALL {
            let page = std::fs::read_to_string(folder.join(format!("{}.md", code.text))).unwrap_or_default();
            let flat = page.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(page.starts_with(&format!("# {}\n", code.text)), "docs/errors/{}.md is missing", code.text);
            assert!(
                flat.contains(code.meaning) && flat.contains(code.remedy),
                "docs/errors/{}.md says something else:\n{}\n{}",
                code.text,
                code.meaning,
                code.remedy
            );
        }
    }
}
