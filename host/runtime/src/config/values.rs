//! Values as people write them: times, sizes, counts. Each says in its schema what it looks like, and that is what errors and documentation show.

use std::borrow::Cow;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize};

/// A time, such as `5s` or `1m 30s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Time(pub(crate) Duration);

/// A number of bytes, such as `256MiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) u64);

/// A whole number from 1, such as `500_000`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Count(pub(crate) u64);

/// A number of tries, or `unlimited`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attempts(pub(crate) Option<u32>);

/// A number or a string: a string where a variable gave it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Number(u64),
    Text(String),
}

impl Written {
    /// As a whole number, underscores between digits allowed.
    fn number(&self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(text) => text.replace('_', "").parse().ok(),
        }
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(from)?;
        humantime::parse_duration(&text).map(Self).map_err(|_| D::Error::custom("not a time"))
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let written = Written::deserialize(from)?;
        let bytes = written.number().or_else(|| match &written {
            Written::Text(text) => text.parse::<bytesize::ByteSize>().ok().map(|size| size.as_u64()),
            Written::Number(_) => None,
        });
        bytes.map(Self).ok_or_else(|| D::Error::custom("not a size"))
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Written::deserialize(from)?.number().map(Self).ok_or_else(|| D::Error::custom("not a whole number"))
    }
}

impl<'de> Deserialize<'de> for Attempts {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let written = Written::deserialize(from)?;
        if matches!(&written, Written::Text(text) if text == "unlimited") {
            return Ok(Self(None));
        }
        let number = written.number().and_then(|number| u32::try_from(number).ok());
        number.map(|number| Self(Some(number))).ok_or_else(|| D::Error::custom("not a number of tries"))
    }
}

impl Serialize for Time {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let millis = self.0.as_millis();
        let units = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000)];
        match units.into_iter().find(|(_, unit)| millis >= *unit && millis.is_multiple_of(*unit)) {
            Some((name, unit)) => to.collect_str(&format_args!("{}{name}", millis / unit)),
            None => to.collect_str(&format_args!("{millis}ms")),
        }
    }
}

impl Serialize for Size {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        // The largest unit that divides it, so that what is written can be read back.
        let units = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
        match units.into_iter().find(|(_, bytes)| self.0 >= *bytes && self.0.is_multiple_of(*bytes)) {
            Some((unit, bytes)) => to.collect_str(&format_args!("{}{unit}", self.0 / bytes)),
            None => to.serialize_u64(self.0),
        }
    }
}

impl Serialize for Attempts {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(number) => to.serialize_u32(number),
            None => to.serialize_str("unlimited"),
        }
    }
}

macro_rules! written {
    ($type:ident, $name:literal, $schema:expr) => {
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    };
}

// The title completes "is not …", and `x-weir-write` says what to write instead; a field's own description takes the place of a type's.
written!(
    Time,
    "Time",
    json_schema!({
        "type": "string",
        "title": "a time",
        "x-weir-write": "write a whole number and its unit, one or several: `ms`, `s`, `m`, `h` or `d`",
        "examples": ["5s", "500ms", "1m 30s"],
        "pattern": "^[0-9]{1,9} ?(ms|s|m|h|d)( ?[0-9]{1,9} ?(ms|s|m|h|d))*$",
    })
);
written!(
    Size,
    "Size",
    json_schema!({
        "type": ["string", "integer"],
        "title": "a size",
        "x-weir-write": "write a whole number and its unit: `B`, `KiB`, `MiB`, `GiB` (1024 each) or `kB`, `MB`, `GB` (1000 each); a number alone is bytes",
        "examples": ["256MiB", 65536],
        "pattern": "^([0-9]{1,9}|[0-9]{1,9} ?(B|KiB|MiB|GiB|kB|MB|GB)|[0-9][0-9_]{0,22}[0-9])$",
        "minimum": 1,
    })
);
written!(
    Count,
    "Count",
    json_schema!({
        "type": ["integer", "string"],
        "title": "a whole number from 1",
        "x-weir-write": "write a whole number from 1; underscores may part its digits",
        "examples": [500_000],
        "pattern": "^[1-9](_?[0-9]){0,17}$",
        "minimum": 1,
    })
);
written!(
    Attempts,
    "Attempts",
    json_schema!({
        "type": ["integer", "string"],
        "title": "a number of tries",
        "x-weir-write": "write a whole number, or `unlimited`",
        "examples": ["unlimited", 5],
        "pattern": "^(unlimited|[0-9]{1,9})$",
        "minimum": 0,
        "maximum": 999_999_999,
    })
);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;

    /// The schema and the conversion agree on each value.
    fn check<T: JsonSchema + DeserializeOwned + PartialEq + std::fmt::Debug>(value: Value, expected: Option<T>) {
        let schema = schemars::schema_for!(T);
        let valid = jsonschema::is_valid(schema.as_value(), &value);
        assert_eq!(valid, expected.is_some(), "schema, {value}");
        if let Some(expected) = expected {
            assert_eq!(serde_json::from_value::<T>(value).unwrap(), expected);
        }
    }

    #[test]
    fn times() {
        check(json!("5s"), Some(Time(Duration::from_secs(5))));
        check(json!("500ms"), Some(Time(Duration::from_millis(500))));
        check(json!("1m 30s"), Some(Time(Duration::from_secs(90))));
        check(json!("2h30m"), Some(Time(Duration::from_secs(9000))));
        check(json!("1d"), Some(Time(Duration::from_secs(86400))));
        check(json!("0s"), Some(Time(Duration::ZERO)));
        check::<Time>(json!("1M"), None);
        check::<Time>(json!("1.5s"), None);
        check::<Time>(json!("5"), None);
        check::<Time>(json!(5), None);
        check::<Time>(json!("-1s"), None);
    }

    #[test]
    fn sizes() {
        check(json!("256MiB"), Some(Size(256 << 20)));
        check(json!("1 GB"), Some(Size(1_000_000_000)));
        check(json!("64kB"), Some(Size(64_000)));
        check(json!("999999999GiB"), Some(Size(999_999_999 << 30)));
        check(json!(65536), Some(Size(65536)));
        check(json!("65_536"), Some(Size(65536)));
        check(json!("12B"), Some(Size(12)));
        check::<Size>(json!("256 megs"), None);
        check::<Size>(json!("1.5GiB"), None);
        check::<Size>(json!(-1), None);
        check::<Size>(json!(1.5), None);
        check::<Size>(json!("MiB"), None);
    }

    #[test]
    fn what_is_written_out_can_be_read_back() {
        for bytes in [1, 1000, 1024, 1536, 1 << 20, (1 << 30) + 1, 5 << 30] {
            let written = serde_json::to_value(Size(bytes)).unwrap();
            check(written, Some(Size(bytes)));
        }
        for millis in [1, 500, 1000, 90_000, 86_400_000] {
            let time = Time(Duration::from_millis(millis));
            check(serde_json::to_value(time).unwrap(), Some(time));
        }
    }

    #[test]
    fn counts_and_attempts() {
        check(json!(500_000), Some(Count(500_000)));
        check(json!("500_000"), Some(Count(500_000)));
        check::<Count>(json!(0), None);
        check::<Count>(json!("0"), None);
        check::<Count>(json!("many"), None);
        check(json!("unlimited"), Some(Attempts(None)));
        check(json!(0), Some(Attempts(Some(0))));
        check(json!("7"), Some(Attempts(Some(7))));
        check::<Attempts>(json!("forever"), None);
        check::<Attempts>(json!(-1), None);
    }
}
