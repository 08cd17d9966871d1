//! Fault points: what goes wrong, how often, for whom.

use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

macro_rules! fault_names {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)+) => {
        /// Every point at which something can be made to go wrong.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        pub enum FaultName {
            $($(#[doc = $doc])+ #[serde(rename = $name)] $variant,)+
        }

        impl FaultName {
            /// All fault points.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name used over HTTP.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// What the fault does, in the words of this list.
            pub fn effect(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),+),)+ }
            }
        }
    };
}

fault_names! {
    /// Every request to any FE or BE is dropped without an answer and without an effect.
    Outage = "outage",
    /// An FE drops the connection instead of answering.
    FeDrop = "fe-drop",
    /// An FE answers HTTP 503.
    FeUnavailable = "fe-unavailable",
    /// An FE waits `delay_ms` before it answers.
    FeDelay = "fe-delay",
    /// An FE redirects to an address where nobody listens.
    FeRedirectDead = "fe-redirect-dead",
    /// An FE redirects to `param`: the number of a BE, or `host:port`.
    FeRedirectTo = "fe-redirect-to",
    /// A load's connection is dropped before anything was begun.
    LoadDropBeforeBegin = "load-drop-before-begin",
    /// A load is refused at begin with message `param`; nothing is begun.
    LoadFailAtBegin = "load-fail-at-begin",
    /// A load's connection is dropped after begin, before the body; `param` `leave-prepare` loses the roll-back as well.
    LoadDropAfterBegin = "load-drop-after-begin",
    /// The BE does not read the body for `delay_ms` after begin, so that the sender's writes block.
    LoadStallBody = "load-stall-body",
    /// A load's connection is dropped after at least `param` body bytes, and the load is rolled back.
    LoadDropMidBody = "load-drop-mid-body",
    /// A load's connection is dropped when the body is complete, before precommit; `param` as for load-drop-after-begin.
    LoadDropAfterBody = "load-drop-after-body",
    /// A load waits `delay_ms` between its complete body and precommit.
    LoadDelay = "load-delay",
    /// A load fails after its body with message `param` and is rolled back.
    LoadFail = "load-fail",
    /// A load silently loses its last `param` rows and answers Success with the smaller count.
    LoadLoseRows = "load-lose-rows",
    /// A load's connection is dropped after precommit, before the reply.
    LoadDropAfterPrecommit = "load-drop-after-precommit",
    /// A load is answered Fail although it is PRECOMMITTED.
    LoadFailAfterPrecommit = "load-fail-after-precommit",
    /// A load's reply is sent `delay_ms` after precommit.
    LoadReplyDelay = "load-reply-delay",
    /// A load is received in full but begins only when released, or after `delay_ms`, even if its client is gone.
    LoadHold = "load-hold",
    /// A load with a complete body becomes PRECOMMITTED only when released, or after `delay_ms`, even if its client is gone.
    LoadHoldPrecommit = "load-hold-precommit",
    /// A commit's connection is dropped and the commit not done.
    CommitDropBefore = "commit-drop-before",
    /// A commit is done and its connection dropped before the reply.
    CommitDropAfter = "commit-drop-after",
    /// A commit is answered THRIFT_RPC_ERROR though it is done; `param` `not-done` leaves it undone.
    CommitThriftError = "commit-thrift-error",
    /// A commit is answered with a lock time-out and not done.
    CommitLockTimeout = "commit-lock-timeout",
    /// The BE sends a commit twice to the FE and passes on the second answer.
    CommitDoubleSend = "commit-double-send",
    /// A commit is answered NOT_MASTER and not done.
    CommitNotMaster = "commit-not-master",
    /// A commit is done after `delay_ms`, and then answered.
    CommitDelay = "commit-delay",
    /// A commit is done only when released, or after `delay_ms`, even if its client is gone.
    CommitHold = "commit-hold",
    /// An abort's connection is dropped and the abort not done.
    AbortDropBefore = "abort-drop-before",
    /// An abort is done and its connection dropped before the reply.
    AbortDropAfter = "abort-drop-after",
    /// An abort is answered THRIFT_RPC_ERROR though it is done; `param` `not-done` leaves it undone.
    AbortThriftError = "abort-thrift-error",
    /// An abort is answered with a lock time-out and not done.
    AbortLockTimeout = "abort-lock-timeout",
    /// The BE sends an abort twice to the FE and passes on the second answer.
    AbortDoubleSend = "abort-double-send",
    /// An abort is answered NOT_MASTER and not done.
    AbortNotMaster = "abort-not-master",
    /// An abort is done after `delay_ms`, and then answered.
    AbortDelay = "abort-delay",
    /// An abort is done only when released, or after `delay_ms`, even if its client is gone.
    AbortHold = "abort-hold",
    /// An FE drops the connection instead of answering a question about a label.
    StateDrop = "state-drop",
}

impl fmt::Display for FaultName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no fault point.
#[derive(Debug, thiserror::Error)]
#[error("there is no fault point {name:?}; the fault points are: {}", known())]
pub struct NotAFault {
    /// The name that was given.
    pub name: String,
}

fn known() -> String {
    FaultName::ALL.iter().map(|name| name.name()).collect::<Vec<_>>().join(", ")
}

impl FromStr for FaultName {
    type Err = NotAFault;

    fn from_str(name: &str) -> Result<Self, NotAFault> {
        let found = Self::ALL.iter().copied().find(|fault| fault.name() == name);
        found.ok_or_else(|| NotAFault { name: name.to_owned() })
    }
}

/// An armed fault: it fires at the next `count` requests that match, after letting `skip` matching ones pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Where.
    pub name: FaultName,
    /// How often it fires.
    #[serde(default = "once")]
    pub count: u64,
    /// Matching requests that pass unharmed first.
    #[serde(default)]
    pub skip: u64,
    /// Only requests whose label begins with this; commits and aborts by id count with their transaction's label.
    #[serde(default)]
    pub label_prefix: String,
    /// A delay, where the fault point has one, milliseconds of real time. For holds the longest wait; 0 waits for release.
    #[serde(default)]
    pub delay_ms: u64,
    /// What else the fault point takes; see its description.
    #[serde(default)]
    pub param: String,
}

fn once() -> u64 {
    1
}

impl Fault {
    /// The fault, once, at the next request.
    pub fn new(name: FaultName) -> Self {
        Self { name, count: 1, skip: 0, label_prefix: String::new(), delay_ms: 0, param: String::new() }
    }

    /// The same fault, `count` times.
    #[must_use]
    pub fn times(mut self, count: u64) -> Self {
        self.count = count;
        self
    }

    /// The same fault with a delay.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        self
    }

    /// The same fault with a parameter.
    #[must_use]
    pub fn param(mut self, param: impl Into<String>) -> Self {
        self.param = param.into();
        self
    }

    /// The same fault, for labels with this prefix only.
    #[must_use]
    pub fn label_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.label_prefix = prefix.into();
        self
    }

    /// The same fault, after `skip` matching requests.
    #[must_use]
    pub fn after(mut self, skip: u64) -> Self {
        self.skip = skip;
        self
    }

    /// The delay as a duration.
    pub(crate) fn waits(&self) -> Duration {
        Duration::from_millis(self.delay_ms)
    }
}

/// The armed faults, in the order they were armed.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    armed: Mutex<Vec<Fault>>,
}

impl Faults {
    /// Adds a fault; one of the same name and label prefix is replaced, and `count` 0 only removes it.
    pub(crate) fn arm(&self, fault: Fault) {
        let mut armed = self.armed.lock().unwrap_or_else(PoisonError::into_inner);
        armed.retain(|old| old.name != fault.name || old.label_prefix != fault.label_prefix);
        if fault.count > 0 {
            armed.push(fault);
        }
    }

    /// Removes every fault.
    pub(crate) fn clear(&self) {
        self.armed.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// What is armed, with the counts that are left.
    pub(crate) fn list(&self) -> Vec<Fault> {
        self.armed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks whether a fault fires here for this label, and takes one from its count.
    pub(crate) fn fire(&self, name: FaultName, label: &str) -> Option<Fault> {
        let mut armed = self.armed.lock().unwrap_or_else(PoisonError::into_inner);
        let at = armed.iter().position(|fault| fault.name == name && label.starts_with(&fault.label_prefix))?;
        let fault = armed.get_mut(at)?;
        if fault.skip > 0 {
            fault.skip -= 1;
            return None;
        }
        fault.count -= 1;
        let fired = fault.clone();
        if fired.count == 0 {
            armed.remove(at);
        }
        tracing::info!(fault = name.name(), label, "fault fires");
        Some(fired)
    }
}
