//! `docs/configuration.md`: a hand-written beginning, and every key from the schema. A test keeps the file equal to what this makes.

use std::fmt::Write as _;

use serde_json::Value as Json;

use super::explain::written;
use super::schema::file_schema;

const BEGINNING: &str = include_str!("reference.md");

/// The whole page.
pub fn markdown() -> String {
    let schema = file_schema();
    let mut page = Page { schema: &schema, out: BEGINNING.trim_end().to_owned() };
    page.out.push_str("\n\n## Every key\n\n<!-- Made from the types in host/runtime/src/config/raw.rs and those of the sources. -->\n");
    page.object("", &schema);
    page.out.push('\n');
    page.out
}

struct Page<'s> {
    schema: &'s Json,
    out: String,
}

impl<'s> Page<'s> {
    /// A mapping: what it is for, its keys in a table, and then the mappings in it.
    fn object(&mut self, path: &str, object: &'s Json) {
        let title = if path.is_empty() { "The file".to_owned() } else { format!("`{path}`") };
        let _ = write!(
            self.out,
            "\n### {title}\n\n{}\n\n| key | value | default | meaning |\n| --- | --- | --- | --- |\n",
            text(object, "description")
        );
        let required: Vec<&str> = object.get("required").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str).collect();
        let mut inner = Vec::new();
        for (key, property) in object.get("properties").and_then(Json::as_object).into_iter().flatten() {
            let resolved = self.resolve(property);
            let default = match property.get("default").or_else(|| resolved.get("default")) {
                // The defaults of what is in it stand in its own table.
                Some(value) if is_empty(value) && resolved.get("properties").is_some() => String::new(),
                Some(value) => default(value),
                None if required.contains(&key.as_str()) => "required".to_owned(),
                None => String::new(),
            };
            let about = [text(property, "description"), text(resolved, "description")]
                .into_iter()
                .find(|text| !text.is_empty())
                .unwrap_or_default();
            let _ = writeln!(self.out, "| `{key}` | {} | {default} | {} |", cell(&self.value(property)), cell(&about));
            let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            if resolved.get("properties").is_some() {
                inner.push((below, resolved));
            } else if let Some(entry) = resolved.get("additionalProperties").map(|entry| self.resolve(entry))
                && entry.get("properties").is_some()
            {
                inner.push((format!("{below}.<name>"), entry));
            }
        }
        for (path, object) in inner {
            self.object(&path, object);
        }
    }

    /// What a value looks like.
    fn value(&self, property: &'s Json) -> String {
        let resolved = self.resolve(property);
        if let Some(options) = self.options(resolved) {
            return options.join(", ");
        }
        let examples: Vec<String> = resolved.get("examples").and_then(Json::as_array).into_iter().flatten().map(flow).collect();
        let kind = match resolved.get("title").and_then(Json::as_str).filter(|_| resolved.get("properties").is_none()) {
            Some(title) => title.to_owned(),
            None => self.kind(resolved),
        };
        if examples.is_empty() { kind } else { format!("{kind}, such as {}", examples.join(" or ")) }
    }

    /// The words that are allowed, if it is one of some.
    fn options(&self, schema: &Json) -> Option<Vec<String>> {
        if let Some(all) = schema.get("enum").and_then(Json::as_array) {
            return Some(all.iter().map(|word| format!("`{}`", written(word))).collect());
        }
        let all = schema.get("oneOf").and_then(Json::as_array)?;
        all.iter().map(|one| one.get("const").map(|word| format!("`{}`", written(word)))).collect()
    }

    fn kind(&self, schema: &'s Json) -> String {
        match schema.get("type").and_then(Json::as_str).unwrap_or_default() {
            "string" => "a string".to_owned(),
            "integer" => "a whole number".to_owned(),
            "boolean" => "`true` or `false`".to_owned(),
            "array" => match schema.get("items").map(|items| self.value(items)) {
                Some(item) => format!("a list; each is {item}"),
                None => "a list".to_owned(),
            },
            "object" => match schema.get("additionalProperties").filter(|more| more.is_object()) {
                Some(entry) if self.resolve(entry).get("properties").is_none() => format!("a mapping; each value is {}", self.value(entry)),
                Some(_) => "a mapping by name".to_owned(),
                None if schema.get("properties").is_some() => "a mapping, below".to_owned(),
                None => "a mapping".to_owned(),
            },
            _ => "anything".to_owned(),
        }
    }

    /// The schema that a reference leads to.
    fn resolve(&self, schema: &'s Json) -> &'s Json {
        let pointer = schema.get("$ref").and_then(Json::as_str).map(|reference| reference.trim_start_matches('#'));
        pointer.and_then(|pointer| self.schema.pointer(pointer)).unwrap_or(schema)
    }
}

fn text(schema: &Json, key: &str) -> String {
    schema.get(key).and_then(Json::as_str).unwrap_or_default().split('\n').map(str::trim).collect::<Vec<_>>().join(" ")
}

/// A default, if it says something.
fn default(value: &Json) -> String {
    if is_empty(value) { "none".to_owned() } else { flow(value) }
}

/// Nothing, or only such things in it.
fn is_empty(value: &Json) -> bool {
    match value {
        Json::Null => true,
        Json::Object(all) => all.values().all(is_empty),
        Json::Array(all) => all.is_empty(),
        _ => false,
    }
}

/// A value on one line, as YAML.
fn flow(value: &Json) -> String {
    fn inner(value: &Json) -> String {
        match value {
            Json::Object(all) => {
                format!("{{ {} }}", all.iter().map(|(key, value)| format!("{key}: {}", inner(value))).collect::<Vec<_>>().join(", "))
            }
            Json::Array(all) => format!("[{}]", all.iter().map(inner).collect::<Vec<_>>().join(", ")),
            other => written(other),
        }
    }
    format!("`{}`", inner(value))
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
