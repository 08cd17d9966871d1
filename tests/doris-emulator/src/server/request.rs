//! What a Stream Load request asks for.
//!
//! Headers and messages: Apache Doris at commit 82bd980a6a, `be/src/http/action/stream_load.cpp` and `http_common.h`.
//! A header that changes what is loaded and that the emulator does not know is refused, never ignored.

use std::hash::{BuildHasher, Hasher, RandomState};

use super::auth::Credentials;
use super::listen::Head;
use super::tap::Framing;
use crate::options::{Dialect, Settings};
use crate::rows::Layout;
use crate::types::{CsvShape, RowFormat};

/// Headers that Doris knows and the emulator does not, unless they say `false`.
const NOT_EMULATED: [&str; 19] = [
    "where",
    "jsonpaths",
    "json_root",
    "fuzzy_parse",
    "partial_columns",
    "unique_key_update_mode",
    "partial_update_new_key_behavior",
    "delete",
    "function_column.sequence_col",
    "hidden_columns",
    "compress_type",
    "partitions",
    "temporary_partitions",
    "skip_lines",
    "trim_double_quotes",
    "empty_field_as_null",
    "num_as_string",
    "sql",
    "token",
];

/// A checked load request.
#[derive(Debug)]
pub(crate) struct LoadRequest {
    pub(crate) db: String,
    pub(crate) table: String,
    pub(crate) label: String,
    pub(crate) two_phase: bool,
    pub(crate) credentials: Credentials,
    pub(crate) format: RowFormat,
    pub(crate) layout: Layout,
    pub(crate) strict: bool,
    pub(crate) max_filter_ratio: f64,
    pub(crate) timeout_s: Option<u64>,
}

impl LoadRequest {
    /// What the reply repeats even when the rest cannot be read: label, comment and whether two-phase commit is asked
    /// for. The value must be exactly `true`.
    pub(crate) fn echo(head: &Head) -> (String, String, bool) {
        let label = head.header("label").map_or_else(random_label, str::to_owned);
        // A chunked load with group commit loses its label, in the two-phase case too.
        let label = match head.header("group_commit") {
            Some(mode) if head.framing.chunked && !mode.eq_ignore_ascii_case("off_mode") => random_label(),
            _ => label,
        };
        let comment = head.header("comment").unwrap_or_default().to_owned();
        (label, comment, head.header("two_phase_commit") == Some("true"))
    }

    /// Reads the head in the order of Doris's checks; the error is the `Message` of the reply.
    pub(crate) fn read(head: &Head, db: &str, table: &str, settings: &Settings) -> Result<Self, String> {
        let (label, _, two_phase) = Self::echo(head);
        check_group_commit(head, two_phase)?;
        let credentials = Credentials::of(&head.headers).ok_or("[NOT_AUTHORIZED]no valid Basic authorization".to_owned())?;
        let (format, layout) = read_format(head, settings)?;
        check_framing(head.framing, &layout, settings)?;
        let merge = head.header("merge_type").filter(|value| !value.eq_ignore_ascii_case("APPEND"));
        let unknown = NOT_EMULATED.iter().find(|name| head.header(name).is_some_and(|value| value != "false"));
        if let Some(name) = merge.map(|_| &"merge_type").or(unknown) {
            return Err(not_emulated(&format!("the header {name}")));
        }
        Ok(Self {
            db: db.to_owned(),
            table: table.to_owned(),
            label,
            two_phase,
            credentials,
            format,
            layout,
            strict: flag(head, "strict_mode")?.unwrap_or(false),
            max_filter_ratio: number(head, "max_filter_ratio")?.unwrap_or(0.0),
            timeout_s: number(head, "timeout")?,
        })
    }
}

fn not_emulated(what: &str) -> String {
    format!("[NOT_IMPLEMENTED_ERROR]doris-emulator does not emulate {what}")
}

fn check_group_commit(head: &Head, two_phase: bool) -> Result<(), String> {
    let Some(mode) = head.header("group_commit") else { return Ok(()) };
    let known = ["async_mode", "sync_mode", "off_mode"];
    if !known.iter().any(|known| mode.eq_ignore_ascii_case(known)) {
        return Err(format!("[INVALID_ARGUMENT]{GROUP_COMMIT_MODES}"));
    }
    match mode.eq_ignore_ascii_case("off_mode") || two_phase {
        true => Ok(()),
        false if head.header("label").is_some() && !head.framing.chunked => {
            Err("[INTERNAL_ERROR]label and group_commit can't be set at the same time".to_owned())
        }
        false => Err(not_emulated("group commit")),
    }
}

/// What FE and BE say about another value of the `group_commit` header.
pub(crate) const GROUP_COMMIT_MODES: &str = "Header `group_commit` can only be `sync_mode`, `async_mode` or `off_mode`.";

fn check_framing(framing: Framing, layout: &Layout, settings: &Settings) -> Result<(), String> {
    let length = match (framing.content_length, framing.chunked) {
        (Some(_), true) => {
            return Err("[INVALID_ARGUMENT]please do not set both content_length and transfer-encoding".to_owned());
        }
        (None, false) => {
            return Err("[INVALID_ARGUMENT]content_length is empty and transfer-encoding!=chunked, please set \
                        content_length or transfer-encoding=chunked"
                .to_owned());
        }
        (None, true) => return Ok(()),
        (Some(length), false) => length,
    };
    // Both numbers are bytes, whatever the sentence says.
    let too_long = |what: &str, limit: u64, name: &str| {
        format!(
            "[E-217]{what} size {length} exceed BE's conf `{name}` {limit}. increase it if you are sure this load \
             is reasonable"
        )
    };
    let document = matches!(layout, Layout::Document { .. });
    if document && length > settings.streaming_load_json_max_bytes {
        return Err(too_long("json body", settings.streaming_load_json_max_bytes, "streaming_load_json_max_mb"));
    }
    if length > settings.streaming_load_max_bytes {
        return Err(too_long("body", settings.streaming_load_max_bytes, "streaming_load_max_mb"));
    }
    Ok(())
}

fn read_format(head: &Head, settings: &Settings) -> Result<(RowFormat, Layout), String> {
    let format = head.header("format").unwrap_or("CSV").to_ascii_uppercase();
    match format.as_str() {
        "CSV" => read_csv(head),
        "JSON" => read_json(head, settings),
        "CSV_WITH_NAMES" | "CSV_WITH_NAMES_AND_TYPES" | "PARQUET" | "ORC" | "ARROW" | "HIVE_TEXT" | "WAL" => {
            Err(not_emulated(&format!("the format {format}")))
        }
        _ => Err(format!("[E-1101]unknown data format, format={}", head.header("format").unwrap_or_default())),
    }
}

fn read_csv(head: &Head) -> Result<(RowFormat, Layout), String> {
    let separator = |name: &str, default: &str| unescape(head.header(name).unwrap_or(default), name);
    // The values are taken as they are: a header value cannot carry blanks at its ends, so these come escaped.
    let column_separator = separator("column_separator", "\\t")?;
    let delimiter = separator("line_delimiter", "\\n")?;
    let character = |name: &str| match head.header(name).map(str::as_bytes) {
        None => Ok(None),
        Some([byte]) => Ok(Some(*byte)),
        Some(_) => Err(format!("[INVALID_ARGUMENT]{name} must be single-char")),
    };
    let (enclose, escape) = (character("enclose")?, character("escape")?);
    let columns = read_columns(head)?;
    let shape = CsvShape { column_separator, enclose, escape, columns };
    Ok((RowFormat::Csv(shape), Layout::Lines { delimiter, enclose, escape }))
}

fn read_json(head: &Head, settings: &Settings) -> Result<(RowFormat, Layout), String> {
    if !read_columns(head)?.is_empty() {
        return Err(not_emulated("the header columns with JSON"));
    }
    let by_line = flag(head, "read_json_by_line")?;
    let strip = flag(head, "strip_outer_array")?;
    let newest = matches!(settings.dialect, Dialect::V4_0 | Dialect::Cloud);
    let layout = match (by_line, strip) {
        (Some(true), Some(true)) => return Err(not_emulated("read_json_by_line together with strip_outer_array")),
        (Some(true), _) => true,
        // The default of the newest versions only.
        (None, None) => newest,
        _ => false,
    };
    let layout = match layout {
        true => Layout::Lines { delimiter: b"\n".to_vec(), enclose: None, escape: None },
        false => Layout::Document { strip_outer_array: strip.unwrap_or(false) },
    };
    Ok((RowFormat::Json, layout))
}

/// A plain list of names; expressions are not emulated.
fn read_columns(head: &Head) -> Result<Vec<String>, String> {
    let list = head.header("columns").unwrap_or_default();
    let names: Vec<&str> = list.split(',').map(|name| name.trim().trim_matches('`')).collect();
    let plain = |name: &&str| !name.is_empty() && !name.contains(['=', '(', ')', ' ']);
    match (list.is_empty(), names.iter().all(plain)) {
        (true, _) => Ok(Vec::new()),
        (false, true) => Ok(names.into_iter().map(str::to_owned).collect()),
        (false, false) => Err(not_emulated("expressions in the header columns")),
    }
}

/// `\x01` is hexadecimal, also for several bytes; `\t`, `\n`, `\r` and `\\` are what they look like.
fn unescape(text: &str, name: &str) -> Result<Vec<u8>, String> {
    if let Some(digits) = text.strip_prefix("\\x").or_else(|| text.strip_prefix("\\X")) {
        let bytes = data_encoding::HEXLOWER_PERMISSIVE.decode(digits.replace("\\x", "").as_bytes());
        let bytes = bytes.ok().filter(|bytes| !bytes.is_empty());
        return bytes.ok_or_else(|| format!("[ANALYSIS_ERROR]Invalid {name}: {text}"));
    }
    let text = text.replace("\\t", "\t").replace("\\n", "\n").replace("\\r", "\r").replace("\\\\", "\\");
    Ok(text.into_bytes())
}

fn flag(head: &Head, name: &str) -> Result<Option<bool>, String> {
    match head.header(name).map(str::to_ascii_lowercase).as_deref() {
        None => Ok(None),
        Some("true") => Ok(Some(true)),
        Some("false") => Ok(Some(false)),
        Some(_) => Err(format!("[INVALID_ARGUMENT]Invalid {name} format. Must be bool type")),
    }
}

fn number<T: std::str::FromStr>(head: &Head, name: &str) -> Result<Option<T>, String> {
    let parse = |text: &str| text.parse().map_err(|_| format!("[INVALID_ARGUMENT]Invalid {name} format, {text}"));
    head.header(name).map(parse).transpose()
}

/// A label as the BE makes it for a load without one: a random UUID.
pub(crate) fn random_label() -> String {
    let random = || RandomState::new().build_hasher().finish();
    let hex = format!("{:016x}{:016x}", random(), random());
    let part = |from, to| hex.get(from..to).unwrap_or_default();
    [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-")
}
