//! Keys and values that a reader may expect and that this version does not have: said as they are, and not as typing errors.

use super::node::Node;
use super::report::ConfigError;
use crate::error::code;

/// Replaces errors about what is planned by what there is today.
pub(crate) fn amend(errors: &mut [ConfigError], root: &Node) {
    for error in errors {
        if let Some((message, help)) = planned(error, root) {
            error.code = code::CONFIG_NOT_SUPPORTED;
            error.message = message.to_owned();
            error.help = help.to_owned();
        }
    }
}

fn planned(error: &ConfigError, root: &Node) -> Option<(&'static str, &'static str)> {
    let path: Vec<&str> = error.path.split('.').collect();
    match (error.code, path.as_slice()) {
        (code::CONFIG_UNKNOWN_KEY, ["admin"]) => Some(("`admin` is not supported yet: this version serves no HTTP", "remove it")),
        (code::CONFIG_UNKNOWN_KEY, ["pipelines", _, "dead_letter"]) => Some((
            "`dead_letter` is not supported yet: in this version a record that a sink can never take stops the pipeline and is named",
            "remove it",
        )),
        (code::CONFIG_UNKNOWN_KEY, ["pipelines", _, "source", "kafka"]) => {
            Some(("a `kafka` source is not supported yet", "use `file` or `generate`"))
        }
        (code::CONFIG_BAD_VALUE, ["pipelines", pipeline, "delivery"]) => {
            let delivery = root.get("pipelines")?.get(pipeline)?.get("delivery")?.text()?;
            matches!(delivery.text.as_str(), "at-least-once" | "at-most-once")
                .then_some(("only `exactly-once` is supported yet", "write `delivery: exactly-once`, or leave the key out"))
        }
        _ => None,
    }
}
