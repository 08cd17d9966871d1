//! What a probe asks: whether the target would take this sink, found out without writing anything.

use serde_json::Value;

use crate::bindings::weir::sink::types::{Error, ErrorKind, Input};
use crate::client::{Client, Deadline};
use crate::endpoint::encode;
use crate::error::{ErrorExt, refused};
use crate::headers::{RowFormat, abort_headers};
use crate::reply::Reply;
use crate::transport::Transport;
use crate::verdict::{AbortAnswer, abort_answer, refusal};

/// A label that the host never makes: its own end in generation, epoch, lane and attempt.
const PROBE_LABEL: &str = "weir-probe";

impl<T: Transport> Client<T> {
    /// Checks credentials and schema at the front ends, that one of them lets this user load, that the back end it names can be reached,
    /// and that two-phase commit by label is known there (by aborting a label that does not exist).
    pub(crate) fn probe(
        &mut self,
        format: RowFormat,
        input: &Input,
        load_headers: &[(String, String)],
        deadline: Deadline,
    ) -> Result<(), Error> {
        let reply = self.schema(deadline)?;
        let columns = columns(&reply).ok_or_else(|| refusal(&reply).while_doing("Doris does not show the table's schema"))?;
        let mapped =
            self.config.columns.is_some() || self.config.load_headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("hidden_columns"));
        if format == RowFormat::Csv && !mapped {
            compare(&input.columns, &columns, &self.config.table)?;
        }
        let path = format!("/api/{}/{}/_stream_load", encode(&self.config.database), encode(&self.config.table));
        let mut headers = self.identity();
        headers.push(("label".into(), PROBE_LABEL.into()));
        headers.extend_from_slice(load_headers);
        self.load_server(&path, &headers, deadline)?;
        self.two_phase_is_known(deadline)
    }

    /// Asks every front end, so that each missing grant and each wrong address shows now; one good answer is enough for those that are down.
    fn schema(&mut self, deadline: Deadline) -> Result<Reply, Error> {
        let path = format!("/api/{}/{}/_schema", encode(&self.config.database), encode(&self.config.table));
        let mut good = None;
        let mut last = None;
        for server in self.config.fe.clone() {
            match self.get_from(&server, &path, deadline) {
                Ok(reply) => good = Some(reply),
                Err(error) if error.kind == ErrorKind::Unavailable => {
                    eprintln!("front end {} cannot be used now: {}", server.authority, error.message);
                    last = Some(error);
                }
                Err(error) => return Err(error),
            }
        }
        good.ok_or_else(|| last.unwrap_or_else(|| refused("no front end is given")))
    }

    fn two_phase_is_known(&mut self, deadline: Deadline) -> Result<(), Error> {
        let mut headers = self.identity();
        headers.extend(abort_headers(PROBE_LABEL));
        let database = self.config.database.clone();
        let reply = self.two_phase(&database, &headers, deadline)?;
        match abort_answer(&reply) {
            // Cloud mode says `Success` to any label.
            AbortAnswer::Gone | AbortAnswer::CheckState => Ok(()),
            AbortAnswer::Committed(words) | AbortAnswer::Again(words) | AbortAnswer::Refused(words) => {
                Err(refused(format!("Doris does not abort by label, which it knows since 2.1: {words}")))
            }
        }
    }
}

/// Names of a table's columns in a `_schema` reply.
fn columns(reply: &Reply) -> Option<Vec<String>> {
    let Reply::Entity { code: 0, data, .. } = reply else { return None };
    let properties = data.get("properties")?.as_array()?;
    Some(properties.iter().filter_map(|column| column.get("name").and_then(Value::as_str).map(str::to_owned)).collect())
}

/// Doris's column names are not case-sensitive.
fn compare(given: &[String], known: &[String], table: &str) -> Result<(), Error> {
    let missing: Vec<&str> =
        given.iter().filter(|name| !known.iter().any(|column| column.eq_ignore_ascii_case(name))).map(String::as_str).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(refused(format!(
        "the table {table} has no column {}; it has {}. Rename the CSV's header or map it with the key `columns`",
        missing.join(", "),
        known.join(", ")
    )))
}
