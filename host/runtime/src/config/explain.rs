//! What a JSON Schema says is wrong, as a sentence with the value that was found, the nearest valid word, and what to write instead.
//! A schema helps with its `title` ("is not …"), `x-weir-write` (what to write), `description` and `examples`.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use serde_json::Value as Json;

use super::node::{Node, Step, Value, descend};
use super::schema::steps;
use super::spelling::{list, nearest};
use crate::error::code;

/// A sentence, what to do, and where from the root of the checked value.
pub(crate) struct Explained {
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) help: String,
    pub(crate) steps: Vec<Step>,
    /// Whether it is said at the key and not at the value.
    pub(crate) at_key: bool,
    /// Whether it depends on what the value is, so that nothing can be said while a variable in it is missing.
    pub(crate) about_value: bool,
}

/// Explains one error of a schema. Several sentences where one error names several keys.
pub(crate) fn explain(schema: &Json, error: &ValidationError<'_>, root: &Node, file: &str) -> Vec<Explained> {
    let at = steps(error.instance_path());
    let Some((node, _)) = descend(root, &at) else { return Vec::new() };
    let place = Site { schema: enclosing(schema, error), node, at, file };
    match error.kind() {
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            unexpected.iter().map(|key| place.unknown_key(key)).collect()
        }
        Kind::Required { property } => vec![place.missing_key(property.as_str().unwrap_or_default())],
        Kind::PropertyNames { error } => vec![place.bad_name(error.instance().as_str().unwrap_or_default())],
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => place.branches(schema, context, root),
        Kind::Type { kind } => vec![place.wrong_type(kind)],
        kind => vec![place.bad_value(kind, error)],
    }
}

/// The schema that an error's keyword stands in, by the path that the check took through it.
fn enclosing<'s>(schema: &'s Json, error: &ValidationError<'_>) -> &'s Json {
    let mut path = steps(error.evaluation_path());
    path.pop();
    let mut at = schema;
    for step in path {
        let next = match (&step, at) {
            (Step::Key(key), _) if key == "$ref" => {
                at.get("$ref").and_then(Json::as_str).and_then(|r| schema.pointer(r.trim_start_matches('#')))
            }
            (Step::Key(key), _) => at.get(key),
            (Step::Item(index), _) => at.get(index),
        };
        match next {
            Some(next) => at = next,
            None => return &Json::Null,
        }
    }
    at
}

/// Where a schema refuses a value.
struct Site<'a> {
    schema: &'a Json,
    node: &'a Node,
    at: Vec<Step>,
    file: &'a str,
}

impl Site<'_> {
    fn said(&self, code: &'static str, message: String, help: String) -> Explained {
        let at_key = matches!(self.node.value, Value::Map(_) | Value::List(_) | Value::Null);
        Explained { code, message, help, steps: self.at.clone(), at_key, about_value: true }
    }

    fn keyword(&self, name: &str) -> Option<&str> {
        self.schema.get(name).and_then(Json::as_str)
    }

    /// The keys that the schema knows here.
    fn keys(&self) -> Vec<&str> {
        self.schema.get("properties").and_then(Json::as_object).map(|keys| keys.keys().map(String::as_str).collect()).unwrap_or_default()
    }

    fn unknown_key(&self, key: &str) -> Explained {
        let keys = self.keys();
        let help = match nearest(key, keys.iter().copied()) {
            Some(near) => format!("write `{near}`"),
            None if keys.is_empty() => "remove it".to_owned(),
            None => format!("remove it; the keys here are {}", list(keys)),
        };
        let mut steps = self.at.clone();
        steps.push(Step::Key(key.to_owned()));
        Explained {
            code: code::CONFIG_UNKNOWN_KEY,
            message: format!("`{key}` is not a key that is known here"),
            help,
            steps,
            at_key: true,
            about_value: false,
        }
    }

    fn missing_key(&self, key: &str) -> Explained {
        let property = self.schema.get("properties").and_then(|p| p.get(key)).unwrap_or(&Json::Null);
        let example = property.get("examples").and_then(|e| e.get(0)).map(written);
        let about =
            property.get("description").and_then(Json::as_str).map(|text| format!(": {}", first_sentence(text))).unwrap_or_default();
        let help = match example {
            Some(example) => format!("add `{key}: {example}`{about}"),
            None => format!("add `{key}`{about}"),
        };
        Explained {
            code: code::CONFIG_MISSING_KEY,
            message: format!("`{key}` is missing"),
            help,
            steps: self.at.clone(),
            at_key: true,
            about_value: false,
        }
    }

    fn bad_name(&self, name: &str) -> Explained {
        let mut steps = self.at.clone();
        steps.push(Step::Key(name.to_owned()));
        Explained {
            code: code::CONFIG_BAD_NAME,
            message: format!("`{name}` is not a name that is allowed here"),
            help: "begin with a lower-case letter or a digit, go on with those, `-` and `_`, and stop at 63 characters".to_owned(),
            steps,
            at_key: true,
            about_value: false,
        }
    }

    fn wrong_type(&self, kind: &TypeKind) -> Explained {
        let types = match kind {
            TypeKind::Single(one) => type_name(&one.to_string()).to_owned(),
            TypeKind::Multiple(set) => {
                let names: Vec<&str> = set.iter().map(|one| type_name(&one.to_string())).collect();
                names.join(" or ")
            }
        };
        let expected = self.keyword("title").map_or(types.clone(), str::to_owned);
        let quote =
            types == "a string" && matches!(self.node.value, Value::Number(_) | Value::Bool(_)) && self.keyword("pattern").is_none();
        let help = match self.keyword("x-weir-write") {
            _ if quote => "put it in quotes".to_owned(),
            Some(_) => self.how_to(&types),
            None => format!("write {types}: {}", self.how_to(&types)).replace(&format!("{types}: write {types}"), &types),
        };
        let message = match self.node.value {
            Value::Null => format!("there is no value, which should be {expected}"),
            _ => format!("{} is not {expected}", self.shown()),
        };
        self.said(code::CONFIG_WRONG_TYPE, message, help)
    }

    /// What was found: the value, or for a mapping and the like what kind of value it is.
    fn shown(&self) -> String {
        self.node.shown(self.file)
    }

    /// What to write, by the schema's own words where it has some.
    fn how_to(&self, fallback: &str) -> String {
        let about = self.keyword("x-weir-write").or_else(|| self.keyword("description").map(first_sentence));
        let examples = self.schema.get("examples").and_then(Json::as_array);
        let examples =
            examples.map(|all| all.iter().map(|e| format!("`{}`", written(e))).collect::<Vec<_>>().join(" or ")).filter(|e| !e.is_empty());
        match (about, examples) {
            (Some(about), Some(examples)) => format!("{about}, such as {examples}"),
            (Some(about), None) => about.to_owned(),
            (None, Some(examples)) => format!("write something such as {examples}"),
            (None, None) => format!("write {fallback}"),
        }
    }

    /// None of several schemas fits. Where one has the right type, what is wrong with that one is said; else what is allowed at all.
    fn branches(&self, schema: &Json, context: &[Vec<ValidationError<'static>>], root: &Node) -> Vec<Explained> {
        if let Some(options) = options(context) {
            return vec![self.not_an_option(&options)];
        }
        let of_another_type = |branch: &&Vec<ValidationError<'static>>| {
            branch.iter().any(|e| matches!(e.kind(), Kind::Type { .. }) && steps(e.instance_path()) == self.at)
        };
        if let Some(best) = context.iter().filter(|branch| !of_another_type(branch)).min_by_key(|branch| branch.len()) {
            let explained: Vec<Explained> = best.iter().flat_map(|error| explain(schema, error, root, self.file)).collect();
            if !explained.is_empty() {
                return explained;
            }
        }
        let types: Vec<String> = context
            .iter()
            .flatten()
            .filter_map(|e| match e.kind() {
                Kind::Type { kind: TypeKind::Single(one) } => Some(type_name(&one.to_string()).to_owned()),
                _ => None,
            })
            .collect();
        let allowed = self.keyword("title").map_or_else(|| types.join(" or "), str::to_owned);
        vec![self.said(code::CONFIG_WRONG_TYPE, format!("{} is not {allowed}", self.shown()), self.how_to(&types.join(" or ")))]
    }

    fn bad_value(&self, kind: &Kind, error: &ValidationError<'_>) -> Explained {
        let shown = self.shown();
        let (message, help) = match kind {
            Kind::Pattern { pattern } => match self.keyword("title") {
                Some(title) => (format!("{shown} is not {title}"), self.how_to(title)),
                None => (format!("{shown} does not match the pattern `{pattern}`"), self.how_to("a value that matches")),
            },
            Kind::Enum { options } => return self.not_an_option(options.as_array().map(Vec::as_slice).unwrap_or_default()),
            Kind::Constant { expected_value } => (format!("{shown} is not allowed"), format!("write `{}`", written(expected_value))),
            Kind::Minimum { limit } => (format!("{shown} is too small"), format!("write at least {limit}")),
            Kind::Maximum { limit } => (format!("{shown} is too large"), format!("write at most {limit}")),
            Kind::ExclusiveMinimum { limit } => (format!("{shown} is too small"), format!("write more than {limit}")),
            Kind::ExclusiveMaximum { limit } => (format!("{shown} is too large"), format!("write less than {limit}")),
            Kind::MinLength { limit: 1 } => ("it is empty".to_owned(), self.how_to("something")),
            Kind::MinLength { limit } => (format!("{shown} is too short"), format!("write at least {limit} characters")),
            Kind::MaxLength { limit } => (format!("{shown} is too long"), format!("write at most {limit} characters")),
            Kind::MinItems { limit: 1 } => ("it is empty".to_owned(), self.how_to("at least one item")),
            Kind::MinItems { limit } => ("too few items".to_owned(), format!("write at least {limit}")),
            Kind::MaxItems { limit } => ("too many items".to_owned(), format!("write at most {limit}")),
            Kind::UniqueItems => ("an item is there twice".to_owned(), "remove one of the two".to_owned()),
            Kind::MinProperties { limit } => match self.keys() {
                keys if keys.is_empty() => ("it is empty".to_owned(), self.how_to(&format!("at least {limit}"))),
                keys => ("it is empty".to_owned(), format!("add {} of {}", number(*limit), list(keys))),
            },
            Kind::MaxProperties { limit } => match self.keys() {
                keys if keys.is_empty() => ("too many keys".to_owned(), format!("keep at most {limit}")),
                keys => ("too many of its keys are there".to_owned(), format!("keep {} of {}", number(*limit), list(keys))),
            },
            Kind::OneOfMultipleValid { .. } => {
                ("it fits more than one of the forms that exclude each other".to_owned(), self.how_to("one of them"))
            }
            Kind::Format { format } => (format!("{shown} is not of the format {format}"), self.how_to(format)),
            // Without the value, which may come from a variable.
            _ => (error.masked_with(shown.as_str()).to_string(), self.how_to("another value")),
        };
        self.said(code::CONFIG_BAD_VALUE, message, help)
    }

    fn not_an_option(&self, options: &[Json]) -> Explained {
        let words: Vec<String> = options.iter().map(written).collect();
        let near = self.node.text().and_then(|text| nearest(&text.text, words.iter().map(String::as_str)));
        let help = match near {
            Some(near) => format!("write `{near}`"),
            None if words.len() == 1 => format!("write {}", list(words.iter().map(String::as_str))),
            None => format!("write one of {}", list(words.iter().map(String::as_str))),
        };
        let message = match words.as_slice() {
            [word] => format!("{} is not `{word}`, which is all that is allowed", self.shown()),
            words => format!("{} is not one of {}", self.shown(), list(words.iter().map(String::as_str))),
        };
        self.said(code::CONFIG_BAD_VALUE, message, help)
    }
}

/// The words that a choice of single words allows (what schemars makes of an enum); `None` if it is another choice.
fn options(context: &[Vec<ValidationError<'static>>]) -> Option<Vec<Json>> {
    let word = |error: &ValidationError<'static>| match error.kind() {
        Kind::Constant { expected_value } => Some(vec![expected_value.as_ref().clone()]),
        Kind::Enum { options } => options.as_array().cloned(),
        _ => None,
    };
    let branches: Option<Vec<Vec<Json>>> = context.iter().map(|branch| branch.iter().find_map(word)).collect();
    branches.map(|branches| branches.concat()).filter(|words| !words.is_empty())
}

/// A JSON value as one would write it in YAML, on one line.
pub(crate) fn written(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn number(limit: u64) -> String {
    if limit == 1 { "one".to_owned() } else { limit.to_string() }
}

fn first_sentence(text: &str) -> &str {
    let text = text.split("\n\n").next().unwrap_or(text);
    match text.find(". ") {
        Some(end) => text.get(..end).unwrap_or(text),
        None => text.trim_end_matches('.'),
    }
}

fn type_name(name: &str) -> &'static str {
    match name {
        "string" => "a string",
        "integer" => "a whole number",
        "number" => "a number",
        "boolean" => "`true` or `false`",
        "array" => "a list",
        "object" => "a mapping",
        _ => "nothing",
    }
}
