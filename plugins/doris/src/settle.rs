//! Commit and abort: what may run in any process, any number of times, at any time later.

use crate::bindings::weir::sink::types::{Error, ErrorKind, Verdict};
use crate::client::{Client, Deadline};
use crate::error::{ErrorExt, conflict, refused, unavailable};
use crate::headers::{abort_headers, commit_headers};
use crate::prepared::Handle;
use crate::reply::LabelState;
use crate::transport::Transport;
use crate::verdict::{AbortAnswer, CommitAnswer, abort_answer, commit_answer};

impl<T: Transport> Client<T> {
    /// Commits by transaction id. What stays unclear is asked again on other servers within the call, and at the end by label.
    pub(crate) fn commit(&mut self, handle: &Handle, deadline: Deadline) -> Result<Verdict, Error> {
        let headers = self.headers(commit_headers(handle.txn));
        let mut attempt = 0;
        let last = loop {
            let error = match self.two_phase(&handle.db, &headers, deadline) {
                Ok(reply) => match commit_answer(&reply) {
                    CommitAnswer::Committed => return Ok(Verdict::Committed),
                    CommitAnswer::AlreadyCommitted => return Ok(Verdict::AlreadyCommitted),
                    CommitAnswer::Aborted => {
                        eprintln!("transaction {} of {} was aborted: {}", handle.txn, handle.label, reply.words());
                        return Ok(Verdict::Lost);
                    }
                    CommitAnswer::Missing => return self.remembered(handle, deadline),
                    CommitAnswer::Refused(words) => return Err(refused(words)),
                    CommitAnswer::Again(words) => unavailable(words),
                },
                Err(error) if error.kind == ErrorKind::Unavailable => error,
                Err(error) => return Err(error),
            };
            if !self.wait_for_another_try(attempt, deadline) {
                break error;
            }
            eprintln!("commit of {} is tried again: {}", handle.label, error.message);
            attempt += 1;
        };
        match self.label_state(&handle.db, &handle.label, deadline) {
            Ok(LabelState::Committed | LabelState::Visible) => Ok(Verdict::AlreadyCommitted),
            Ok(LabelState::Aborted) => Ok(Verdict::Lost),
            Ok(LabelState::Prepare | LabelState::Precommitted | LabelState::Unknown) | Err(_) => {
                Err(last.while_doing(&format!("commit of {}", handle.label)))
            }
        }
    }

    /// The verdict on a transaction whose id Doris does not know: the label may be remembered longer.
    fn remembered(&mut self, handle: &Handle, deadline: Deadline) -> Result<Verdict, Error> {
        let state = self.label_state(&handle.db, &handle.label, deadline)?;
        eprintln!("Doris does not know transaction {}; label {} is {state:?}", handle.txn, handle.label);
        Ok(match state {
            LabelState::Committed | LabelState::Visible => Verdict::AlreadyCommitted,
            LabelState::Aborted => Verdict::Lost,
            LabelState::Prepare | LabelState::Precommitted | LabelState::Unknown => Verdict::Unknown,
        })
    }

    /// Aborts whatever has the label, and answers only when nothing of it is left and nothing of it is visible.
    pub(crate) fn abort(&mut self, label: &str, deadline: Deadline) -> Result<(), Error> {
        let database = self.config.database.clone();
        let headers = self.headers(abort_headers(label));
        let mut attempt = 0;
        loop {
            let said = match self.two_phase(&database, &headers, deadline) {
                Ok(reply) => match abort_answer(&reply) {
                    AbortAnswer::Gone => return Ok(()),
                    AbortAnswer::Committed(words) => return Err(conflict(format!("{label} is committed: {words}"))),
                    AbortAnswer::Refused(words) => return Err(refused(words)),
                    AbortAnswer::CheckState => reply.words(),
                    AbortAnswer::Again(words) => words,
                },
                Err(error) if error.kind == ErrorKind::Unavailable => error.message,
                Err(error) => return Err(error),
            };
            let error = match self.label_state(&database, label, deadline) {
                Ok(LabelState::Aborted | LabelState::Unknown) => return Ok(()),
                Ok(state @ (LabelState::Committed | LabelState::Visible)) => return Err(conflict(format!("{label} is {state:?}: {said}"))),
                Ok(state @ (LabelState::Prepare | LabelState::Precommitted)) => unavailable(format!("{said}; {label} is still {state:?}")),
                Err(error) if error.kind == ErrorKind::Unavailable => unavailable(format!("{said}; {}", error.message)),
                Err(error) => return Err(error),
            };
            if !self.wait_for_another_try(attempt, deadline) {
                return Err(error.while_doing(&format!("abort of {label}")));
            }
            eprintln!("abort of {label} is tried again: {}", error.message);
            attempt += 1;
        }
    }

    fn headers(&self, of_operation: Vec<(String, String)>) -> Vec<(String, String)> {
        let mut headers = self.identity();
        headers.extend(of_operation);
        headers
    }
}
