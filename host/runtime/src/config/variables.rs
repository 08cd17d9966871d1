//! `${NAME}` in strings. A string that holds one stays a string whatever the variable's value looks like, and its value is never shown.

use super::node::{Node, Origin, Step, Value, path_text};
use super::report::ConfigError;
use super::spelling::nearest;
use crate::error::code;

/// Where variables come from.
pub trait Variables {
    /// The value of one; `None` if there is none, or if it is not UTF-8.
    fn get(&self, name: &str) -> Option<String>;
    /// The names of all, for the nearest spelling.
    fn names(&self) -> Vec<String>;
}

/// The variables of this process.
#[derive(Clone, Copy, Debug)]
pub struct ProcessVariables;

impl Variables for ProcessVariables {
    fn get(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn names(&self) -> Vec<String> {
        std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect()
    }
}

/// Replaces the variables in every string value. Keys are left alone.
pub(crate) fn resolve(node: &mut Node, variables: &dyn Variables, path: &mut Vec<Step>, errors: &mut Vec<ConfigError>) {
    match &mut node.value {
        Value::Text(text) if text.text.contains("${") => {
            let found = expand(&text.text, variables);
            for problem in &found.problems {
                errors.push(problem.at(node, path));
            }
            if let Value::Text(text) = &mut node.value {
                text.origin = match (found.problems.is_empty(), found.replaced) {
                    (false, _) => Origin::Unresolved,
                    (true, true) => Origin::Variables,
                    (true, false) => Origin::File,
                };
                text.text = found.text;
            }
        }
        Value::List(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                path.push(Step::Item(index));
                resolve(item, variables, path, errors);
                path.pop();
            }
        }
        Value::Map(entries) => {
            for entry in entries {
                path.push(Step::Key(entry.key.clone()));
                resolve(&mut entry.node, variables, path, errors);
                path.pop();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) => {}
    }
}

struct Expanded {
    text: String,
    replaced: bool,
    problems: Vec<Problem>,
}

enum Problem {
    Missing { name: String, near: Option<String> },
    Malformed { written: String },
}

impl Problem {
    fn at(&self, node: &Node, path: &[Step]) -> ConfigError {
        let (code, message, help) = match self {
            Self::Missing { name, near } => (
                code::CONFIG_MISSING_VARIABLE,
                format!("the environment variable `{name}` is not set"),
                match near {
                    Some(near) => format!("`{near}` is set; did you mean it? Else start with `{name}=… weir …`"),
                    None => format!("start with `{name}=… weir …`, or write the value here; `$${{` stands for `${{` itself"),
                },
            ),
            Self::Malformed { written } => (
                code::CONFIG_BAD_VARIABLE,
                format!("`{written}` is not a variable"),
                "write `${NAME}` with letters, digits and underscores; there are no defaults. `$${` stands for `${` itself".to_owned(),
            ),
        };
        ConfigError { code, message, help, place: Some(node.place), path: path_text(path) }
    }
}

fn expand(text: &str, variables: &dyn Variables) -> Expanded {
    let mut out = Expanded { text: String::with_capacity(text.len()), replaced: false, problems: Vec::new() };
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, tail) = rest.split_at(at);
        if let Some(before) = before.strip_suffix('$') {
            out.text.push_str(before);
            out.text.push_str("${");
            rest = tail.get(2..).unwrap_or_default();
            continue;
        }
        out.text.push_str(before);
        let inside = tail.get(2..).unwrap_or_default();
        let Some((name, after)) = inside.split_once('}').filter(|(name, _)| is_name(name)) else {
            let end = inside.find('}').map_or(tail.len(), |end| end + 3);
            let written = tail.get(..end).unwrap_or(tail);
            out.problems.push(Problem::Malformed { written: written.to_owned() });
            rest = tail.get(end..).unwrap_or_default();
            continue;
        };
        match variables.get(name) {
            Some(value) => {
                out.text.push_str(&value);
                out.replaced = true;
            }
            None => {
                let names = variables.names();
                let near = nearest(name, names.iter().map(String::as_str)).map(str::to_owned);
                out.problems.push(Problem::Missing { name: name.to_owned(), near });
            }
        }
        rest = after;
    }
    out.text.push_str(rest);
    out
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    impl Variables for BTreeMap<String, String> {
        fn get(&self, name: &str) -> Option<String> {
            BTreeMap::get(self, name).cloned()
        }
        fn names(&self) -> Vec<String> {
            self.keys().cloned().collect()
        }
    }

    fn check(text: &str, expected: &str, problems: usize) {
        let variables: BTreeMap<String, String> =
            [("A", "1"), ("NESTED", "${A}"), ("EMPTY", "")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        let found = expand(text, &variables);
        assert_eq!((found.text.as_str(), found.problems.len()), (expected, problems), "{text}");
    }

    #[test]
    fn variables_are_replaced_once_and_escapes_stay() {
        check("x${A}y${A}", "x1y1", 0);
        check("$${A}", "${A}", 0);
        check("$$${A}", "$${A}", 0);
        check("${NESTED}", "${A}", 0);
        check("${EMPTY}", "", 0);
        check("cost $5, $A, {A}", "cost $5, $A, {A}", 0);
        check("${B} ${A}", " 1", 1);
        check("${A:-x} ${A}", " 1", 1);
        check("${A", "", 1);
        check("${}", "", 1);
    }
}
