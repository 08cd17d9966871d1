//! Which versions of the contract this host serves, and what it says about others. The version is read from the name of the export, before
//! anything is compiled.

use crate::code::Code;

/// The interface that a plugin exports, without its version.
pub(crate) const INTERFACE: &str = "weir:sink/sink";

/// The versions served, oldest first. Component types match exactly, so each is an entry of its own.
pub const SUPPORTED: &[&str] = &["0.1.0"];

/// Finds the contract's version among the names that a component exports.
pub(crate) fn contract<'a>(exports: impl Iterator<Item = &'a str>) -> Result<&'static str, (Code, String)> {
    let mut foreign = Vec::new();
    for export in exports {
        let Some(rest) = export.strip_prefix(INTERFACE) else { continue };
        let version = rest.strip_prefix('@').unwrap_or(rest);
        match SUPPORTED.iter().find(|served| **served == version) {
            Some(served) => return Ok(served),
            None => foreign.push(version),
        }
    }
    let supported = SUPPORTED.join(", ");
    match foreign.first() {
        None => Err((
            Code::ContractMissing,
            format!(
                "it does not export `{INTERFACE}`, so it is not a sink plugin; this host serves versions {supported} of that interface"
            ),
        )),
        Some(found) => {
            let found = crate::text::clean_line(found, 40);
            let order = match (parts(&found), SUPPORTED.last().and_then(|newest| parts(newest))) {
                (Some(found), Some(newest)) if found > newest => "newer than",
                (Some(_), Some(_)) => "older than",
                _ => "none of",
            };
            Err((
                Code::ContractVersion,
                format!("it was built against version `{found}` of `{INTERFACE}`, which is {order} what this host serves: {supported}"),
            ))
        }
    }
}

fn parts(version: &str) -> Option<(u32, u32, u32)> {
    let mut numbers = version.split('.').map(|part| part.parse().ok());
    Some((numbers.next()??, numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use super::contract;
    use crate::code::Code;

    #[test]
    fn versions_outside_the_range_are_named() {
        assert_eq!(contract(["wasi:cli/run@0.2.0", "weir:sink/sink@0.1.0"].into_iter()).ok(), Some("0.1.0"));
        for (export, code, words) in [
            ("weir:sink/sink@0.2.0", Code::ContractVersion, "newer than"),
            ("weir:sink/sink@0.0.9", Code::ContractVersion, "older than"),
            ("weir:sink/sink", Code::ContractVersion, "none of"),
            ("wasi:cli/run@0.2.0", Code::ContractMissing, "does not export"),
        ] {
            let (found, message) = contract([export].into_iter()).err().unwrap_or((Code::EngineStart, String::new()));
            assert_eq!(found, code);
            assert!(message.contains(words) && message.contains("0.1.0"), "{message}");
        }
    }
}
