//! The names of files: what each is called, and that none leads out of the folder.
//!
//! A label has no dot, so a name that begins with `.<label>.` or `<prefix>-<label>.` belongs to that label and to no other. Temporary
//! names are made of the label alone: `abort` knows nothing else, and finds them also after the prefix was changed.

use std::fmt;

/// The most bytes in a label, by the contract.
const LABEL_BYTES: usize = 64;
/// The most bytes in a prefix. With it the longest name has 205 bytes; file systems allow 255.
const PREFIX_BYTES: usize = 100;
/// The most bytes in each of the two parts of an extension.
const EXTENSION_PART_BYTES: usize = 16;

/// A transaction's label: `[a-z0-9-]{1,64}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label(String);

impl Label {
    /// Nothing if it breaks the contract's rule.
    pub fn parse(text: &str) -> Option<Self> {
        let allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        let fits = (1..=LABEL_BYTES).contains(&text.len()) && text.bytes().all(allowed);
        fits.then(|| Self(text.to_owned()))
    }

    /// What a file is called until it is committed. It begins with a dot: readers of a folder leave such files alone.
    pub fn temporary(&self, number: u32) -> String {
        format!(".{self}.{number}.open")
    }

    /// Whether a name is a temporary one of this label.
    pub fn owns_temporary(&self, name: &str) -> bool {
        let number = name.strip_prefix('.').and_then(|rest| rest.strip_prefix(self.0.as_str())).and_then(|rest| rest.strip_prefix('.'));
        number.and_then(|rest| rest.strip_suffix(".open")).is_some_and(is_number)
    }
}

impl fmt::Display for Label {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// What published names begin with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix(String);

impl Prefix {
    /// Nothing if it could make a hidden name or lead out of the folder.
    pub fn parse(text: &str) -> Option<Self> {
        let inside = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
        let first = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let fits = text.len() <= PREFIX_BYTES && text.bytes().next().is_some_and(first) && text.bytes().all(inside);
        fits.then(|| Self(text.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a name is a published one of this label, numbered or not, whatever its extension.
    pub fn owns_published(&self, label: &Label, name: &str) -> bool {
        let rest = name.strip_prefix(self.0.as_str()).and_then(|rest| rest.strip_prefix('-'));
        rest.and_then(|rest| rest.strip_prefix(label.0.as_str())).is_some_and(|rest| rest.starts_with('.'))
    }
}

/// What published names end in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extension(String);

impl Extension {
    /// Nothing if it is not one or two short words with a dot between them.
    pub fn parse(text: &str) -> Option<Self> {
        let word = |part: &str| {
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
            (1..=EXTENSION_PART_BYTES).contains(&part.len()) && part.bytes().all(allowed)
        };
        let fits = text.split('.').count() <= 2 && text.split('.').all(word);
        fits.then(|| Self(text.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// How the files of one transaction are called once they are committed. The handle carries it, so that a changed config cannot rename
/// what was prepared before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// What they begin with.
    pub prefix: Prefix,
    /// What they end in.
    pub extension: Extension,
    /// Whether they have numbers: where rolling is on, also if there is but one.
    pub numbered: bool,
}

impl Published {
    /// The name of one file. Numbers have five digits, so that sorting by name is sorting by number.
    pub fn name(&self, label: &Label, number: u32) -> String {
        let (prefix, extension) = (self.prefix.as_str(), self.extension.as_str());
        if self.numbered { format!("{prefix}-{label}.{number:05}.{extension}") } else { format!("{prefix}-{label}.{extension}") }
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
    use super::*;

    #[test]
    fn nothing_that_a_config_or_a_host_says_leads_out_of_the_folder() {
        let too_long = "a".repeat(101);
        for text in ["", ".", "..", "../x", "a/b", "/etc/passwd", ".hidden", "a\0b", "a b", "ä", "a\nb", "-a", too_long.as_str()] {
            assert_eq!(Prefix::parse(text), None, "{text:?}");
        }
        for text in ["", ".", "a.", ".a", "a..b", "a.b.c", "../x", "a/b", "a\0", "seventeen_letters"] {
            assert_eq!(Extension::parse(text), None, "{text:?}");
        }
        let too_long = "a".repeat(65);
        for text in ["", ".", "..", "a/b", "A", "a.b", "a_b", "é", too_long.as_str()] {
            assert_eq!(Label::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_name_belongs_to_one_label() {
        let (short, long) = (Label::parse("a").unwrap(), Label::parse("a-1").unwrap());
        let prefix = Prefix::parse("p").unwrap();
        let names = Published { prefix: prefix.clone(), extension: Extension::parse("csv.part").unwrap(), numbered: true };
        assert_eq!(names.name(&short, 1), "p-a.00001.csv.part");
        assert!(short.owns_temporary(&short.temporary(12)) && !short.owns_temporary(&long.temporary(12)));
        assert!(long.owns_temporary(&long.temporary(0)) && !long.owns_temporary(&short.temporary(0)));
        assert!(prefix.owns_published(&short, &names.name(&short, 1)) && !prefix.owns_published(&long, &names.name(&short, 1)));
        assert!(prefix.owns_published(&long, "p-a-1.csv") && !prefix.owns_published(&short, "p-a-1.csv"));
    }

    #[test]
    fn names_that_only_look_like_temporary_ones_are_left_alone() {
        let label = Label::parse("a").unwrap();
        for name in [".a.open", ".a..open", ".a.x.open", ".a.1.opened", "a.1.open", ".ab.1.open", ".weir-folder"] {
            assert!(!label.owns_temporary(name), "{name}");
        }
    }

    #[test]
    fn the_longest_name_fits_every_file_system() {
        let label = Label::parse(&"a".repeat(64)).unwrap();
        let part = "e".repeat(16);
        let names = Published {
            prefix: Prefix::parse(&"p".repeat(100)).unwrap(),
            extension: Extension::parse(&format!("{part}.{part}")).unwrap(),
            numbered: true,
        };
        assert_eq!(names.name(&label, 99_999).len(), 205);
    }
}
