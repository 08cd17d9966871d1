//! A scripted target: answers in the order of a list, remembers what it was asked, and has a clock that moves only when somebody waits.

#![allow(clippy::panic, clippy::expect_used, reason = "a request that the script does not expect fails the test")]

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use crate::transport::{Limits, Request, Response, Transport, TransportError, Upload, Written};

/// What happens to the next request.
pub(crate) enum Step {
    Answer(Response),
    Fail(TransportError),
    /// A request with a body, and what becomes of it.
    Upload(UploadScript),
}

/// What becomes of a load.
pub(crate) struct UploadScript {
    /// Body bytes after which the response comes; beyond the body's length: only at its end.
    pub(crate) ends_after: usize,
    /// Body bytes after which nothing more is taken.
    pub(crate) stalls_after: usize,
    pub(crate) response: Result<Response, TransportError>,
}

#[derive(Default)]
struct Inner {
    steps: RefCell<VecDeque<Step>>,
    seen: RefCell<Vec<Request>>,
    body: RefCell<Vec<u8>>,
    finished: Cell<u32>,
    cut_off: Cell<u32>,
    now_ms: Cell<u64>,
}

/// The scripted target. Clones are the same target.
#[derive(Clone, Default)]
pub(crate) struct Script(Rc<Inner>);

impl Script {
    pub(crate) fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        let script = Self::default();
        script.then(steps);
        script
    }

    /// Adds steps.
    pub(crate) fn then(&self, steps: impl IntoIterator<Item = Step>) {
        self.0.steps.borrow_mut().extend(steps);
    }

    /// Requests so far, as `METHOD server path`.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.seen.borrow().iter().map(|request| format!("{:?} {}{}", request.method, request.server, request.path)).collect()
    }

    /// Headers of request number `index`, names in lower case.
    pub(crate) fn headers(&self, index: usize) -> Vec<(String, String)> {
        let seen = self.0.seen.borrow();
        seen[index].headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone())).collect()
    }

    pub(crate) fn header(&self, index: usize, name: &str) -> Option<String> {
        self.headers(index).into_iter().find(|(given, _)| given == name).map(|(_, value)| value)
    }

    /// Bytes of all bodies so far.
    pub(crate) fn body(&self) -> String {
        String::from_utf8(self.0.body.borrow().clone()).expect("bodies are text")
    }

    /// Bodies that were ended, and bodies that were cut off.
    pub(crate) fn bodies(&self) -> (u32, u32) {
        (self.0.finished.get(), self.0.cut_off.get())
    }

    pub(crate) fn assert_used_up(&self) {
        assert_eq!(self.0.steps.borrow().len(), 0, "steps are left; asked so far: {:#?}", self.lines());
    }

    fn next(&self, request: &Request) -> Step {
        self.0.seen.borrow_mut().push(request.clone());
        self.advance(1);
        self.0.steps.borrow_mut().pop_front().unwrap_or_else(|| panic!("no step for the last of {:#?}", self.lines()))
    }

    fn advance(&self, ms: u64) {
        self.0.now_ms.set(self.0.now_ms.get() + ms);
    }
}

impl Transport for Script {
    type Upload = ScriptUpload;

    fn now_ms(&self) -> u64 {
        self.0.now_ms.get()
    }

    fn pause(&self, ms: u64) {
        self.advance(ms);
    }

    fn exchange(&self, request: &Request, limits: Limits) -> Result<Response, TransportError> {
        match self.next(request) {
            Step::Answer(response) => Ok(response),
            Step::Fail(error) => {
                if matches!(error, TransportError::TimedOut { .. }) {
                    self.advance(limits.total_ms);
                }
                Err(error)
            }
            Step::Upload(_) => panic!("a load was expected, not {:?}", self.lines().last()),
        }
    }

    fn upload(&self, request: &Request, _limits: Limits) -> Result<ScriptUpload, TransportError> {
        match self.next(request) {
            Step::Upload(script) => Ok(ScriptUpload { target: self.clone(), script: Some(script), written: 0 }),
            Step::Fail(error) => Err(error),
            Step::Answer(_) => panic!("a load was not expected: {:?}", self.lines().last()),
        }
    }
}

/// A scripted load.
pub(crate) struct ScriptUpload {
    target: Script,
    script: Option<UploadScript>,
    written: usize,
}

impl ScriptUpload {
    fn script(&self) -> &UploadScript {
        self.script.as_ref().expect("the load is under way")
    }
}

impl Upload for ScriptUpload {
    fn ended(&self, wait_ms: u64) -> bool {
        let ended = self.written >= self.script().ends_after;
        if !ended {
            self.target.advance(wait_ms);
        }
        ended
    }

    fn write(&mut self, bytes: &[u8], until_ms: u64) -> Written {
        self.written += bytes.len();
        self.target.0.body.borrow_mut().extend_from_slice(bytes);
        if self.written > self.script().stalls_after {
            self.target.0.now_ms.set(until_ms);
            return Written::Stalled;
        }
        if self.written >= self.script().ends_after { Written::Ended } else { Written::All }
    }

    fn finish(mut self, _until_ms: u64) -> Result<Response, TransportError> {
        self.target.0.finished.set(self.target.0.finished.get() + 1);
        self.script.take().expect("a load ends once").response
    }

    fn early_response(mut self, _until_ms: u64) -> Result<Response, TransportError> {
        self.target.0.cut_off.set(self.target.0.cut_off.get() + 1);
        self.script.take().expect("a load ends once").response
    }
}

impl Drop for ScriptUpload {
    fn drop(&mut self) {
        if self.script.is_some() {
            self.target.0.cut_off.set(self.target.0.cut_off.get() + 1);
        }
    }
}

/// A reply with HTTP status 200.
pub(crate) fn ok(body: &str) -> Response {
    Response { status: 200, location: None, body: body.as_bytes().to_vec() }
}

pub(crate) fn answer(body: &str) -> Step {
    Step::Answer(ok(body))
}

/// A redirect as a front end writes it, with credentials and a query that is empty.
pub(crate) fn redirect(server: &str, path: &str) -> Step {
    let (scheme, rest) = server.split_once("://").expect("a URL");
    Step::Answer(Response { status: 307, location: Some(format!("{scheme}://root:s3cret@{rest}{path}?")), body: vec![] })
}

/// A load that is taken whole and answered so.
pub(crate) fn load(reply: &str) -> Step {
    Step::Upload(UploadScript { ends_after: usize::MAX, stalls_after: usize::MAX, response: Ok(ok(reply)) })
}

/// A load that is answered after so many bytes of its body.
pub(crate) fn load_ended(ends_after: usize, response: Result<Response, TransportError>) -> Step {
    Step::Upload(UploadScript { ends_after, stalls_after: usize::MAX, response })
}

pub(crate) fn unreachable(authority: &str) -> TransportError {
    TransportError::Unreachable { authority: authority.into(), why: "connection refused".into() }
}

pub(crate) fn connection_broke(authority: &str) -> TransportError {
    TransportError::Broken { authority: authority.into(), why: "connection terminated".into() }
}

pub(crate) fn timed_out(authority: &str) -> TransportError {
    TransportError::TimedOut { authority: authority.into(), after_ms: 0 }
}

pub(crate) fn not_granted(authority: &str) -> TransportError {
    TransportError::NotGranted { authority: authority.into() }
}
