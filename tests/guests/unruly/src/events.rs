//! The log of calls: what the host asked for and in what order, for tests of the life of an instance.
//!
//! One file for each instance, `events-<n>.jsonl` in the order of opening, because appends of two instances to one file could overwrite each
//! other. A test merges them by `at_ns`, the wall clock.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use contract::types::Error;
use serde_json::{Map, Value, json};

use crate::errors;

pub(crate) struct Events {
    file: File,
    instance: u32,
    role: &'static str,
    lane: u32,
}

impl Events {
    pub(crate) fn open(directory: &Path, role: &'static str, lane: u32) -> Result<Self, Error> {
        for instance in 0.. {
            match OpenOptions::new().append(true).create_new(true).open(directory.join(format!("events-{instance}.jsonl"))) {
                Ok(file) => return Ok(Self { file, instance, role, lane }),
                Err(found) if found.kind() == io::ErrorKind::AlreadyExists => {}
                Err(found) => return Err(errors::from_io("create the log of calls", &found)),
            }
        }
        Err(errors::broken("no number is left for this instance"))
    }

    /// `fields` is an object; what every event has is added. One line for each event, written at once.
    pub(crate) fn write(&mut self, call: &str, fields: Value) -> Result<(), Error> {
        let at_ns = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        let common = json!({ "at_ns": at_ns as u64, "instance": self.instance, "role": self.role, "lane": self.lane, "call": call });
        let mut line = Map::new();
        for part in [common, fields] {
            if let Value::Object(part) = part {
                line.extend(part);
            }
        }
        let text = format!("{}\n", Value::Object(line));
        self.file.write_all(text.as_bytes()).map_err(|found| errors::from_io("write the log of calls", &found))
    }
}
