//! YAML text to a tree of values. YAML 1.2 with its core schema, plus underscores in whole numbers (`500_000`). Anchors and aliases
//! are followed; merge keys (`<<`) and tags other than `!!str` are not part of it.

use std::collections::HashMap;

use serde_json::Number;
use serde_saphyr::granit_parser::{Event, Parser, ScalarStyle, ScanError, Span, Tag};

use super::node::{Entry, Node, Origin, Place, Step, Text, Value, path_text};
use super::report::ConfigError;
use crate::error::code;

/// Most values in a file, each alias counted as all that it stands for.
pub(crate) const MAX_VALUES: usize = 100_000;
/// Deepest nesting of mappings and lists.
pub(crate) const MAX_DEPTH: usize = 64;

/// Reads one document. `None` where the text is not YAML, or empty; then `errors` says why.
pub(crate) fn parse(text: &str, errors: &mut Vec<ConfigError>) -> Option<Node> {
    let mut reader = Reader { parser: Parser::new_from_str(text), text, anchors: HashMap::new(), values: 0, errors };
    match reader.document() {
        Ok(node) => node,
        Err(Stop(error)) => {
            errors.push(*error);
            None
        }
    }
}

/// Reading cannot go on.
struct Stop(Box<ConfigError>);

struct Reader<'t, 'e> {
    parser: Parser<'t, serde_saphyr::granit_parser::StrInput<'t>>,
    text: &'t str,
    anchors: HashMap<usize, Node>,
    values: usize,
    errors: &'e mut Vec<ConfigError>,
}

impl<'t> Reader<'t, '_> {
    fn document(&mut self) -> Result<Option<Node>, Stop> {
        let mut root = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamStart | Event::DocumentEnd => {}
                Event::DocumentStart(..) if root.is_none() => {}
                Event::DocumentStart(..) => {
                    return Err(stop(place(&span), "a second document begins here", "write one document, without `---` in its middle"));
                }
                Event::StreamEnd => break,
                other => root = Some(self.node(other, &span, &mut Vec::new())?),
            }
        }
        if root.is_none() {
            self.errors.push(ConfigError {
                code: code::CONFIG_SYNTAX,
                message: "the file is empty".to_owned(),
                help: "begin with `ledger: sqlite://weir.db`; docs/configuration.md lists every key".to_owned(),
                place: None,
                path: String::new(),
            });
        }
        Ok(root)
    }

    /// The next event that is data.
    fn next(&mut self) -> Result<(Event<'t>, Span), Stop> {
        loop {
            match self.parser.next_event() {
                None => return Ok((Event::StreamEnd, Span::default())),
                Some(Err(error)) => return Err(self.scan_error(&error)),
                Some(Ok((Event::Anchor(..), _))) => {}
                Some(Ok(next)) => return Ok(next),
            }
        }
    }

    fn node(&mut self, event: Event<'t>, span: &Span, path: &mut Vec<Step>) -> Result<Node, Stop> {
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(stop(place(span), format!("more than {MAX_VALUES} values, aliases counted in full"), "make the file smaller"));
        }
        if path.len() > MAX_DEPTH {
            return Err(stop(place(span), format!("nested deeper than {MAX_DEPTH} levels"), "make the file flatter"));
        }
        let (value, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => (self.scalar(&text, style, tag.as_deref(), span, path), anchor),
            Event::SequenceStart(_, anchor, tag) => {
                self.refuse_tag(tag.as_deref(), span, path);
                (self.list(path)?, anchor)
            }
            Event::MappingStart(_, anchor, tag) => {
                self.refuse_tag(tag.as_deref(), span, path);
                (self.map(path)?, anchor)
            }
            Event::Alias(id) => return self.alias(id, span),
            _ => return Err(stop(place(span), "a value was expected here", "check the indentation of this line and of the one before it")),
        };
        let node = Node { place: trimmed(place(span), self.text), value };
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn list(&mut self, path: &mut Vec<Step>) -> Result<Value, Stop> {
        let mut items = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::SequenceEnd) {
                return Ok(Value::List(items));
            }
            path.push(Step::Item(items.len()));
            items.push(self.node(event, &span, path)?);
            path.pop();
        }
    }

    fn map(&mut self, path: &mut Vec<Step>) -> Result<Value, Stop> {
        let mut entries: Vec<Entry> = Vec::new();
        loop {
            let (event, span) = self.next()?;
            let key = match event {
                Event::MappingEnd => return Ok(Value::Map(entries)),
                Event::Scalar(text, ..) => text.into_owned(),
                _ => return Err(stop(place(&span), "a key is a plain word or a quoted string", "write `key: value`")),
            };
            let key_place = trimmed(place(&span), self.text);
            path.push(Step::Key(key.clone()));
            let (event, span) = self.next()?;
            let node = self.node(event, &span, path)?;
            let path_of_key = path_text(path);
            path.pop();
            if let Some(first) = entries.iter().find(|entry| entry.key == key) {
                self.errors.push(ConfigError {
                    code: code::CONFIG_DUPLICATE_KEY,
                    message: format!("`{key}` is there twice; the first is in line {}", first.key_place.line),
                    help: "remove one of them, or give it another name".to_owned(),
                    place: Some(key_place),
                    path: path_of_key,
                });
            } else {
                entries.push(Entry { key, key_place, node });
            }
        }
    }

    /// What an anchor named, at the place of the alias.
    fn alias(&mut self, id: usize, span: &Span) -> Result<Node, Stop> {
        let Some(named) = self.anchors.get(&id) else {
            return Err(stop(place(span), "an alias inside the value that it names", "write the value out"));
        };
        let mut node = named.clone();
        self.values += count(&node);
        node.place = place(span);
        Ok(node)
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, tag: Option<&Tag>, span: &Span, path: &[Step]) -> Value {
        let string = || Value::Text(Text { text: text.to_owned(), origin: Origin::File });
        if tag.is_some_and(|tag| tag.core_suffix() == Some("str")) {
            return string();
        }
        self.refuse_tag(tag, span, path);
        if style == ScalarStyle::Plain { plain(text).unwrap_or_else(string) } else { string() }
    }

    fn refuse_tag(&mut self, tag: Option<&Tag>, span: &Span, path: &[Step]) {
        if let Some(tag) = tag {
            self.errors.push(ConfigError {
                code: code::CONFIG_SYNTAX,
                message: format!("the tag `{}` means nothing here", tag.original()),
                help: "remove it; quote a value that is to be a string".to_owned(),
                place: Some(place(span)),
                path: path_text(path),
            });
        }
    }

    fn scan_error(&self, error: &ScanError) -> Stop {
        let mark = error.marker();
        let offset = mark.byte_offset().unwrap_or(self.text.len()).min(self.text.len());
        let place = Place { line: mark.line(), column: mark.col() + 1, offset, length: 0 };
        stop(
            place,
            format!("this is not YAML: {}", error.info()),
            "check the indentation, quotes and brackets of this line and of the one before it",
        )
    }
}

fn stop(place: Place, message: impl Into<String>, help: &str) -> Stop {
    Stop(Box::new(ConfigError {
        code: code::CONFIG_SYNTAX,
        message: message.into(),
        help: help.to_owned(),
        place: Some(place),
        path: String::new(),
    }))
}

fn place(span: &Span) -> Place {
    let start = span.start.byte_offset().unwrap_or_default();
    let end = span.end.byte_offset().unwrap_or(start);
    Place { line: span.start.line(), column: span.start.col() + 1, offset: start, length: end.saturating_sub(start) }
}

/// Without the white space at its end, which block values carry.
fn trimmed(place: Place, text: &str) -> Place {
    let written = text.get(place.offset..place.offset.saturating_add(place.length)).unwrap_or_default();
    Place { length: written.trim_end().len(), ..place }
}

fn count(node: &Node) -> usize {
    1 + match &node.value {
        Value::List(items) => items.iter().map(count).sum(),
        Value::Map(entries) => entries.iter().map(|entry| count(&entry.node)).sum(),
        _ => 0,
    }
}

/// What an unquoted word stands for, if it is not a string (YAML 1.2.2, 10.3.2, and underscores between digits).
fn plain(word: &str) -> Option<Value> {
    match word {
        "" | "~" | "null" | "Null" | "NULL" => return Some(Value::Null),
        "true" | "True" | "TRUE" => return Some(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Some(Value::Bool(false)),
        _ => {}
    }
    number(word).map(Value::Number)
}

fn number(word: &str) -> Option<Number> {
    let unsigned = word.strip_prefix(['-', '+']).unwrap_or(word);
    if let Some(digits) = word.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok().map(Number::from);
    }
    if let Some(digits) = word.strip_prefix("0o") {
        return u64::from_str_radix(digits, 8).ok().map(Number::from);
    }
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    if unsigned.bytes().all(|b| b.is_ascii_digit() || b == b'_') && !unsigned.ends_with('_') {
        let digits = word.trim_start_matches('+').replace('_', "");
        return digits.parse::<u64>().map(Number::from).or_else(|_| digits.parse::<i64>().map(Number::from)).ok();
    }
    if unsigned.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-')) {
        return word.trim_start_matches('+').parse::<f64>().ok().and_then(Number::from_f64);
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> (Option<serde_json::Value>, Vec<&'static str>) {
        let mut errors = Vec::new();
        let node = parse(text, &mut errors);
        (node.map(|n| n.to_json()), errors.iter().map(|e| e.code).collect())
    }

    #[test]
    fn plain_words_become_what_yaml_1_2_says_and_quoted_ones_stay_strings() {
        let (value, errors) =
            read("a: [1, -2, 500_000, 1.5, 1e3, 0x10, 0o7, yes, no, ~, true, '1', \"true\", 5s, 1_, 12:30, .5, 2024-01-01, !!str 7]");
        assert_eq!(
            value.unwrap(),
            json!({ "a": [1, -2, 500_000, 1.5, 1000.0, 16, 7, "yes", "no", null, true, "1", "true", "5s", "1_", "12:30", 0.5, "2024-01-01", "7"] })
        );
        assert!(errors.is_empty());
    }

    #[test]
    fn an_alias_is_what_its_anchor_names_at_its_own_place() {
        let mut errors = Vec::new();
        let node = parse("a: &x { k: 1 }\nb: *x\n", &mut errors).unwrap();
        assert_eq!(node.get("b").unwrap().to_json(), json!({ "k": 1 }));
        assert_eq!(node.get("b").unwrap().place.line, 2);
    }

    #[test]
    fn aliases_that_multiply_end_at_the_limit_and_not_in_memory() {
        let mut text = String::from("a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n");
        for level in 1..9 {
            let before = format!("*a{}", level - 1);
            text += &format!("a{level}: &a{level} [{}]\n", vec![before; 10].join(","));
        }
        assert_eq!(read(&text), (None, vec![code::CONFIG_SYNTAX]));
    }

    #[test]
    fn nesting_has_a_limit() {
        assert_eq!(read(&format!("a: {}1{}", "[".repeat(100), "]".repeat(100))).1, [code::CONFIG_SYNTAX]);
    }

    #[test]
    fn places_count_characters_and_offsets_count_bytes() {
        let mut errors = Vec::new();
        let node = parse("é: ü\nb: { cé: 12 }\n", &mut errors).unwrap();
        let b = node.get("b").unwrap();
        let entry = b.entry("cé").unwrap();
        assert_eq!((entry.key_place.line, entry.key_place.column, entry.key_place.offset, entry.key_place.length), (2, 6, 12, 3));
        assert_eq!((entry.node.place.line, entry.node.place.column, entry.node.place.offset, entry.node.place.length), (2, 10, 17, 2));
    }
}
