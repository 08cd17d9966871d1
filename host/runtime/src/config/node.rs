//! A YAML document as a tree in which every key and every value knows its place.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Map, Number, Value as Json};

/// A stretch of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The byte in the file, from 0.
    pub offset: usize,
    /// How many bytes.
    pub length: usize,
}

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) place: Place,
    pub(crate) value: Value,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Number(Number),
    Text(Text),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A string, and whether it may be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) text: String,
    pub(crate) origin: Origin,
}

/// Where a string comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The file.
    File,
    /// Variables, at least in part: it may be a secret, so it is never shown.
    Variables,
    /// A variable that is missing: nothing more can be said about it.
    Unresolved,
}

/// A key and its value in a mapping.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_place: Place,
    pub(crate) node: Node,
}

/// A step down the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Key(String),
    Item(usize),
}

impl Node {
    /// The entries, if it is a mapping.
    pub(crate) fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Map(entries) => entries,
            _ => &[],
        }
    }

    /// Whether it is a mapping.
    pub(crate) fn is_map(&self) -> bool {
        matches!(self.value, Value::Map(_))
    }

    /// How many items, if it is a list.
    pub(crate) fn items(&self) -> usize {
        match &self.value {
            Value::List(items) => items.len(),
            _ => 0,
        }
    }

    /// The entry of a key.
    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|entry| entry.key == key)
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.node)
    }

    /// The string, if it is one.
    pub(crate) fn text(&self) -> Option<&Text> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Whether a variable in it is missing.
    pub(crate) fn unresolved(&self) -> bool {
        match &self.value {
            Value::Text(text) => text.origin == Origin::Unresolved,
            Value::List(items) => items.iter().any(Node::unresolved),
            Value::Map(entries) => entries.iter().any(|entry| entry.node.unresolved()),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// Whether a variable gave something in it, so that it must not be shown.
    pub(crate) fn holds_variables(&self) -> bool {
        match &self.value {
            Value::Text(text) => text.origin != Origin::File,
            Value::List(items) => items.iter().any(Node::holds_variables),
            Value::Map(entries) => entries.iter().any(|entry| entry.node.holds_variables()),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// As JSON, for schemas and plugins.
    pub(crate) fn to_json(&self) -> Json {
        match &self.value {
            Value::Null => Json::Null,
            Value::Bool(value) => Json::Bool(*value),
            Value::Number(number) => Json::Number(number.clone()),
            Value::Text(text) => Json::String(text.text.clone()),
            Value::List(items) => items.iter().map(Node::to_json).collect(),
            Value::Map(entries) => Json::Object(entries.iter().map(|e| (e.key.clone(), e.node.to_json())).collect::<Map<_, _>>()),
        }
    }

    /// What kind of value it is, for people.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.value {
            Value::Null => "nothing",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::Text(_) => "a string",
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
        }
    }

    /// The value for an error message: as it stands in the file, so without the value of any variable, and not at length.
    pub(crate) fn shown(&self, file: &str) -> String {
        const MAX_SHOWN_CHARS: usize = 60;
        if matches!(self.value, Value::Map(_) | Value::List(_) | Value::Null) {
            return self.kind().to_owned();
        }
        let written = file.get(self.place.offset..self.place.offset.saturating_add(self.place.length)).unwrap_or_default();
        let first_line = written.lines().next().unwrap_or_default();
        let mut shown: String = first_line.chars().take(MAX_SHOWN_CHARS).collect();
        if shown.len() < written.trim_end().len() {
            shown.push('…');
        }
        format!("`{shown}`")
    }
}

/// Walks down from a node; with the key where the last step is one.
pub(crate) fn descend<'a>(root: &'a Node, steps: &[Step]) -> Option<(&'a Node, Option<&'a Entry>)> {
    let mut at = (root, None);
    for step in steps {
        at = match step {
            Step::Key(key) => {
                let entry = at.0.entry(key)?;
                (&entry.node, Some(entry))
            }
            Step::Item(index) => match &at.0.value {
                Value::List(items) => (items.get(*index)?, None),
                _ => return None,
            },
        };
    }
    Some(at)
}

/// A path for people: `pipelines.orders.sinks.doris.config.fe[0]`.
pub(crate) fn path_text(steps: &[Step]) -> String {
    let mut out = String::new();
    for step in steps {
        let _ = match step {
            Step::Key(key) if out.is_empty() => write!(out, "{key}"),
            Step::Key(key) => write!(out, ".{key}"),
            Step::Item(index) => write!(out, "[{index}]"),
        };
    }
    out
}
