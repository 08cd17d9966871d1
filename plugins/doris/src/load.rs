//! One load: a request whose body goes out while records arrive, over any number of calls of the sink.

use std::time::Duration;

use crate::bindings::weir::sink::types::{Error, ErrorKind, Prepared};
use crate::client::{Client, Deadline, TRY_LIMIT, redirect_error, transport_error};
use crate::endpoint::{Endpoint, encode};
use crate::error::{ErrorExt, conflict, unavailable, words};
use crate::prepared::prepared;
use crate::reply::{LabelState, LoadReply, Reply};
use crate::transport::{Method, Request, Response, Transport, TransportError, Upload, Written};
use crate::verdict::{load_failure, refusal};

/// How long the first load of an instance waits for a refusal before its body starts. A refusal that meets a body in flight is easily lost
/// with the connection, and what is wrong with a config shows in the first load.
const FIRST_REFUSAL_WAIT: Duration = Duration::from_millis(500);
/// Added to the time that Doris needed for the same the last time.
const REFUSAL_MARGIN: Duration = Duration::from_millis(10);
/// How long a response may take when the connection has already ended.
const EARLY_RESPONSE_WAIT: Duration = Duration::from_secs(2);
/// Lines of a list of bad rows that go into a message.
const ERROR_LOG_LINES: usize = 3;

/// A load under way.
pub(crate) struct Load<U> {
    pub(crate) label: String,
    server: Endpoint,
    upload: U,
    rows: u64,
}

/// How long to wait for a refusal, learned from the loads before.
pub(crate) struct Patience {
    wait_ms: u64,
}

impl Default for Patience {
    fn default() -> Self {
        Self { wait_ms: FIRST_REFUSAL_WAIT.as_millis() as u64 }
    }
}

impl Patience {
    /// Learns from how long Doris took to accept a load.
    fn learn(&mut self, load: &LoadReply) {
        let took = load.begin_txn_time_ms.saturating_add(load.stream_load_put_time_ms);
        self.wait_ms = took.saturating_add(REFUSAL_MARGIN.as_millis() as u64).min(FIRST_REFUSAL_WAIT.as_millis() as u64);
    }
}

impl<T: Transport> Client<T> {
    /// Opens a load: headers to a front end, then headers to the back end it names, then a short look for a refusal.
    /// Tries another server only as long as no back end can have seen the label.
    pub(crate) fn begin_load(
        &mut self,
        label: &str,
        headers: &[(String, String)],
        patience: &Patience,
        deadline: Deadline,
    ) -> Result<Load<T::Upload>, Error> {
        let path = format!("/api/{}/{}/_stream_load", encode(&self.config.database), encode(&self.config.table));
        let mut all = self.identity();
        all.push(("label".into(), label.to_owned()));
        all.extend_from_slice(headers);
        for attempt in 0.. {
            let server = self.load_server(&path, &all, deadline)?;
            let request = Request { method: Method::Put, server, path: path.clone(), headers: all.clone() };
            let error = match self.open(label, request, patience, deadline) {
                Ok(load) => return Ok(load),
                Err(Refusal::Unseen(error)) => transport_error(&error),
                Err(Refusal::Seen(error)) => return Err(error),
            };
            if error.kind == ErrorKind::Refused || attempt + 1 >= TRY_LIMIT || !self.wait_for_another_try(attempt, deadline) {
                return Err(error.while_doing("the load cannot start"));
            }
            eprintln!("the load {label} cannot start, trying again: {}", error.message);
        }
        Err(unavailable("the load cannot start"))
    }

    /// Sends a load's headers to a back end; follows one more redirect, for a list of back ends that names a front end.
    fn open(&mut self, label: &str, mut request: Request, patience: &Patience, deadline: Deadline) -> Result<Load<T::Upload>, Refusal> {
        for _ in 0..2 {
            let upload = self.transport.upload(&request, self.load_limits()).map_err(|error| self.seen(error, label, deadline))?;
            let left_ms = deadline.work_until_ms().saturating_sub(self.transport.now_ms());
            if !upload.ended(patience.wait_ms.min(left_ms)) {
                return Ok(Load { label: label.to_owned(), server: request.server, upload, rows: 0 });
            }
            let response = upload.early_response(deadline.work_until_ms()).map_err(|error| self.seen(error, label, deadline))?;
            if !matches!(response.status, 307 | 308) {
                return Err(Refusal::Seen(self.refused_load(&response, &request.server, deadline)));
            }
            let next = self.redirect_of(&request, response.location.as_deref());
            request.server = next.map_err(|error| Refusal::Seen(redirect_error(&error)))?;
        }
        Err(Refusal::Seen(unavailable("Doris redirected a load twice")))
    }

    fn seen(&mut self, error: TransportError, label: &str, deadline: Deadline) -> Refusal {
        if error.nothing_sent() { Refusal::Unseen(error) } else { Refusal::Seen(self.unclear(label, &error.to_string(), true, deadline)) }
    }

    /// Writes rows, and notices a response that comes before its time. After an error the load is over.
    pub(crate) fn write_rows(
        &mut self,
        mut load: Load<T::Upload>,
        bytes: &[u8],
        rows: u32,
        deadline: Deadline,
    ) -> Result<Load<T::Upload>, Error> {
        if load.upload.ended(0) {
            return Err(self.early_end(load, deadline));
        }
        match load.upload.write(bytes, deadline.work_until_ms()) {
            Written::All => {
                load.rows += u64::from(rows);
                Ok(load)
            }
            Written::Ended => Err(self.early_end(load, deadline)),
            Written::Stalled => {
                Err(unavailable(format!("{} takes no more of the load within the host's limit for a call", load.server.authority)))
            }
        }
    }

    /// Ends the body and reads what Doris made of it.
    pub(crate) fn finish_load(&mut self, load: Load<T::Upload>, patience: &mut Patience, deadline: Deadline) -> Result<Prepared, Error> {
        let Load { label, upload, rows, server } = load;
        let response = match upload.finish(deadline.work_until_ms()) {
            Ok(response) => response,
            Err(error) => return Err(self.unclear(&label, &error.to_string(), false, deadline)),
        };
        let Reply::Load(reply) = Reply::of(&response) else { return Err(self.refused_load(&response, &server, deadline)) };
        patience.learn(&reply);
        let filtered_allowed = self.config.max_filter_ratio > 0.0;
        let prepared = prepared(&reply, &self.config.database, &label, rows, filtered_allowed);
        if prepared.is_ok() && reply.number_filtered_rows > 0 {
            let (lost, total) = (reply.number_filtered_rows, reply.number_total_rows);
            eprintln!("Doris dropped {lost} of {total} rows of {label}, as max_filter_ratio allows: {}", reply.error_url);
        }
        prepared.map_err(|error| {
            self.with_bad_rows(error, &reply, &server, deadline).while_doing(&format!("load {label} at {}", server.authority))
        })
    }

    /// The error behind a load that ended before its body.
    fn early_end(&mut self, load: Load<T::Upload>, deadline: Deadline) -> Error {
        let until_ms = deadline.work_until_ms().min(self.transport.now_ms() + EARLY_RESPONSE_WAIT.as_millis() as u64);
        let Load { label, upload, server, .. } = load;
        match upload.early_response(until_ms) {
            Ok(response) => self.refused_load(&response, &server, deadline),
            Err(error) => self.unclear(&label, &error.to_string(), true, deadline),
        }
        .while_doing(&format!("load {label} at {}", server.authority))
    }

    /// The error that a response stands for which cannot be a load's success.
    fn refused_load(&self, response: &Response, server: &Endpoint, deadline: Deadline) -> Error {
        match Reply::of(response) {
            Reply::Load(load) if load.status == "Success" => {
                unavailable("Doris ended the load before its last record was sent").with_code(load.status.clone())
            }
            Reply::Load(load) => self.with_bad_rows(load_failure(&load), &load, server, deadline),
            other => refusal(&other),
        }
    }

    /// Adds the first of the rows that Doris could not take, where it can be asked for them.
    fn with_bad_rows(&self, mut error: Error, load: &LoadReply, server: &Endpoint, deadline: Deadline) -> Error {
        if error.kind != ErrorKind::BadData || load.error_url.is_empty() {
            return error;
        }
        error.message.push_str(&format!("; rows in error: {}", load.error_url));
        if let Some(log) = self.error_log(&load.error_url, server, deadline) {
            let first: Vec<String> = log.lines().filter(|line| !line.trim().is_empty()).take(ERROR_LOG_LINES).map(words).collect();
            error.message.push_str(&format!("; the first: {}", first.join(" | ")));
        }
        error
    }

    /// The error after an outcome that nobody knows: the label's state decides whether it is worth another try.
    /// `writing`: the body was not ended, so nothing of this label can rightly be prepared.
    fn unclear(&mut self, label: &str, said: &str, writing: bool, deadline: Deadline) -> Error {
        let database = self.config.database.clone();
        match self.label_state(&database, label, deadline) {
            Ok(state @ (LabelState::Committed | LabelState::Visible)) => {
                conflict(format!("{said}; and Doris has label {label} as {state:?}, though nothing decided so"))
            }
            Ok(state @ LabelState::Precommitted) if writing => {
                conflict(format!("{said}; and Doris has label {label} as {state:?} before its load has ended"))
            }
            Ok(state) => unavailable(format!("{said}; Doris has label {label} as {state:?}")),
            Err(error) => unavailable(format!("{said}; and the label's state cannot be asked: {}", error.message)),
        }
    }
}

/// Why a load did not open.
enum Refusal {
    /// No back end has seen its label.
    Unseen(TransportError),
    Seen(Error),
}
