//! One instance of a plugin: the calls into it, what bounds them, and how it ends.
//!
//! Every call runs inside a time-out. A call that did not return, trapped or whose future was dropped leaves the instance unusable: it is dead,
//! and is never called again.
//!
//! An instance has a runtime of its own for what the plugin starts through its imports: connections, timers, file operations. Its calls are
//! polled by whoever calls, so it costs no hand-over; but when the instance ends, ending its runtime closes every connection and waits for
//! every file operation, and after that nothing of this instance can change the target any more from this machine. What is in the network
//! by then is the business of the profile's settle time.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Handle, Runtime};
use wasmtime::Store;
use wasmtime::component::InstancePre;
use weir_protocol::{Label, Transaction, Verdict};

use crate::bindings::{Answer, ErrorKind, Guest, RawDescription, RawError, StartError};
use crate::capabilities::Grants;
use crate::code::Code;
use crate::error::{Call, PluginError};
use crate::imports::http::{Client, Gate, Tls};
use crate::imports::log::{Log, Origin};
use crate::limits::{CLOSE_LIMIT, Limits, MAX_BLOCKING_THREADS, MAX_MESSAGE_BYTES, MAX_RETRY_AFTER, MAX_TARGET_CODE_BYTES};
use crate::model::{Batch, OpenRequest, Prepared, Profile, Rejection, Role};
use crate::store::{State, new_store};
use crate::text::clean;
use crate::trap;

/// An instance, alive or dead.
pub(crate) struct Instance {
    // Fields are dropped in this order: the store before its runtime.
    live: Option<Live>,
    client: Arc<Client>,
    log: Arc<Log>,
    plugin: String,
    limit: Duration,
    runtime: InstanceRuntime,
}

/// What a dead instance no longer has.
struct Live {
    store: Store<State>,
    guest: Guest,
    gate: Gate,
}

impl Drop for Live {
    fn drop(&mut self) {
        // Before the store: a body whose writer goes away with the store must not look finished.
        self.gate.close();
    }
}

impl Instance {
    /// Makes an instance. Nothing of the contract is called yet.
    pub(crate) async fn start(pre: &InstancePre<State>, origin: Origin, grants: &Grants, limits: &Limits) -> Result<Self, PluginError> {
        let plugin = origin.plugin.clone();
        let refuse = |code: Code, message: String| PluginError::new(&plugin, Call::Start, code, message);
        let runtime = InstanceRuntime::new().map_err(|error| refuse(Code::PluginStart, format!("no threads for it: {error}")))?;
        let tls = Tls::new(grants.ca_file.as_deref()).map_err(|error| {
            let path = grants.ca_file.as_deref().unwrap_or_else(|| std::path::Path::new("")).display();
            refuse(Code::GrantCa, format!("the file of certificate authorities {path} {error}"))
        })?;
        let log = Log::new(origin);
        let gate = Gate::default();
        let client = Client::new(Arc::new(grants.clone()), tls, gate.clone(), log.clone());
        let mut store =
            new_store(pre.engine(), grants, limits.memory_bytes, &log, &client).map_err(|(code, message)| refuse(code, message))?;
        let started = {
            let starting = pin!(Guest::start(&mut store, pre));
            tokio::time::timeout(limits.call, runtime.run(starting)).await
        };
        let guest = match started {
            Ok(Ok(guest)) => guest,
            Ok(Err(StartError::Shape(error))) => {
                return Err(refuse(Code::ContractShape, format!("its functions differ from the contract's: {error:#}")));
            }
            Ok(Err(StartError::Instantiate(error))) => {
                let (code, message) = trap::explain(&error, Call::Start);
                return Err(refuse(code, message).with_log(log.tail()));
            }
            Err(_) => return Err(refuse(Code::PluginTimeout, out_of_time(limits.call)).with_log(log.tail())),
        };
        let live = Some(Live { store, guest, gate });
        Ok(Self { live, client, log, plugin, limit: limits.call, runtime })
    }

    pub(crate) async fn describe(&mut self) -> Result<RawDescription, PluginError> {
        let mut live = self.take(Call::Describe)?;
        let outcome = self.run(&live.gate.clone(), live.guest.describe(&mut live.store)).await;
        self.settle(Call::Describe, live, outcome)
    }

    pub(crate) async fn open(&mut self, request: &OpenRequest, role: Role) -> Result<Profile, PluginError> {
        let limit_ms = u32::try_from(self.limit.as_millis()).unwrap_or(u32::MAX);
        let mut live = self.take(Call::Open)?;
        let outcome = self.run(&live.gate.clone(), live.guest.open(&mut live.store, request, role, limit_ms)).await;
        self.settle(Call::Open, live, outcome)
    }

    pub(crate) async fn begin(&mut self, transaction: &Transaction) -> Result<(), PluginError> {
        let mut live = self.take(Call::Begin)?;
        let outcome = self.run(&live.gate.clone(), live.guest.begin(&mut live.store, transaction)).await;
        self.settle(Call::Begin, live, outcome)
    }

    pub(crate) async fn invoke(&mut self, label: &Label, batch: &Batch, profile: &Profile) -> Result<Vec<Rejection>, PluginError> {
        let mut live = self.take(Call::Invoke)?;
        let outcome = self.run(&live.gate.clone(), live.guest.invoke(&mut live.store, label, batch, profile)).await;
        self.settle(Call::Invoke, live, outcome)
    }

    pub(crate) async fn precommit(&mut self, label: &Label) -> Result<Prepared, PluginError> {
        let mut live = self.take(Call::Precommit)?;
        let outcome = self.run(&live.gate.clone(), live.guest.precommit(&mut live.store, label)).await;
        self.settle(Call::Precommit, live, outcome)
    }

    pub(crate) async fn commit(&mut self, transaction: &Transaction, handle: &[u8]) -> Result<Verdict, PluginError> {
        let mut live = self.take(Call::Commit)?;
        let outcome = self.run(&live.gate.clone(), live.guest.commit(&mut live.store, transaction, handle)).await;
        self.settle(Call::Commit, live, outcome)
    }

    pub(crate) async fn abort(&mut self, transaction: &Transaction) -> Result<(), PluginError> {
        let mut live = self.take(Call::Abort)?;
        let outcome = self.run(&live.gate.clone(), live.guest.abort(&mut live.store, transaction)).await;
        self.settle(Call::Abort, live, outcome)
    }

    /// Whether it can be called.
    pub(crate) fn is_alive(&self) -> bool {
        self.live.is_some()
    }

    /// An error of this instance that the host found. It ends the instance: what breaks the contract once is not asked again.
    pub(crate) fn broke(&mut self, call: Call, code: Code, message: impl Into<String>) -> PluginError {
        self.live = None;
        PluginError::new(&self.plugin, call, code, message).with_log(self.log.tail())
    }

    /// An error of the caller, which leaves the instance as it is.
    pub(crate) fn misuse(&self, call: Call, code: Code, message: impl Into<String>) -> PluginError {
        let error = PluginError::new(&self.plugin, call, code, message);
        if self.is_alive() { error.usable() } else { error }
    }

    /// Ends it: closes its connections, and waits for what it has under way on this machine.
    pub(crate) async fn close(mut self) -> Result<(), PluginError> {
        self.live = None;
        self.log.finish();
        if self.runtime.close(CLOSE_LIMIT).await {
            Ok(())
        } else {
            let message =
                format!("file operations or name look-ups of an ended instance are still under way after {} s", CLOSE_LIMIT.as_secs());
            Err(PluginError::new(&self.plugin, Call::Close, Code::PluginClose, message).with_log(self.log.tail()))
        }
    }

    /// Takes what lives out for the time of a call, so that a future dropped half-way leaves the instance dead.
    fn take(&mut self, call: Call) -> Result<Live, PluginError> {
        self.client.take_denied();
        self.live.take().ok_or_else(|| PluginError::new(&self.plugin, call, Code::PluginDead, "a call before this one ended the instance"))
    }

    /// Runs a call within its time, in the instance's runtime. `None`: out of time.
    async fn run<T>(&mut self, gate: &Gate, call: impl Future<Output = Answer<T>>) -> Option<Answer<T>> {
        let call = pin!(call);
        // Declared after the call, so dropped before it: what a call that did not return drops is unfinished.
        let mut watch = CloseUnlessReturned { gate, returned: false };
        let outcome = tokio::time::timeout(self.limit, self.runtime.run(call)).await.ok();
        watch.returned = matches!(outcome, Some(Ok(_)));
        outcome
    }

    /// Makes of an outcome what the caller gets, and keeps the instance if it can go on.
    fn settle<T>(&mut self, call: Call, live: Live, outcome: Option<Answer<T>>) -> Result<T, PluginError> {
        let (code, message) = match outcome {
            Some(Ok(Ok(value))) => {
                self.live = Some(live);
                return Ok(value);
            }
            Some(Ok(Err(raw))) => {
                self.live = Some(live);
                return Err(self.answered(call, raw));
            }
            Some(Err(error)) => trap::explain(&error, call),
            None => (Code::PluginTimeout, out_of_time(self.limit)),
        };
        drop(live);
        let (code, message) = self.blame_denial(code, message);
        Err(PluginError::new(&self.plugin, call, code, message).with_log(self.log.tail()))
    }

    /// The plugin's own error, bounded.
    fn answered(&self, call: Call, raw: RawError) -> PluginError {
        let code = match raw.kind {
            ErrorKind::Unavailable => Code::PluginUnavailable,
            ErrorKind::Refused => Code::PluginRefused,
            ErrorKind::BadData => Code::PluginBadData,
            ErrorKind::Conflict => Code::PluginConflict,
            ErrorKind::Broken => Code::PluginBroken,
        };
        let message = match clean(&raw.message, MAX_MESSAGE_BYTES) {
            empty if empty.trim().is_empty() => "no reason given".to_owned(),
            message => message,
        };
        // A conflict stops the pipeline whatever else went wrong.
        let (code, message) = if code == Code::PluginConflict { (code, message) } else { self.blame_denial(code, message) };
        let retry_after = Duration::from_millis(u64::from(raw.retry_after_ms)).min(MAX_RETRY_AFTER);
        PluginError::new(&self.plugin, call, code, message)
            .usable()
            .with_target(clean(&raw.code, MAX_TARGET_CODE_BYTES), (!retry_after.is_zero()).then_some(retry_after))
            .with_log(self.log.tail())
    }

    /// A failure in a call that was refused an address is about the grant, whatever the plugin makes of it.
    fn blame_denial(&self, code: Code, message: String) -> (Code, String) {
        match self.client.take_denied() {
            Some(address) => {
                let message = format!(
                    "http to {address} is not granted; add `grant: {{ http: [\"{address}\"] }}` to the sink. The plugin: {message}"
                );
                (Code::HttpNotGranted, message)
            }
            None => (code, message),
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.log.finish();
    }
}

fn out_of_time(limit: Duration) -> String {
    format!("the call did not return within {} s (`limits: {{ call: ... }}` of the sink)", limit.as_secs_f32())
}

/// Closes the gate unless the call returned.
struct CloseUnlessReturned<'a> {
    gate: &'a Gate,
    returned: bool,
}

impl Drop for CloseUnlessReturned<'_> {
    fn drop(&mut self) {
        if !self.returned {
            self.gate.close();
        }
    }
}

/// The runtime of what a plugin starts: one thread for connections and timers, a few for file operations.
struct InstanceRuntime {
    handle: Handle,
    runtime: Option<Runtime>,
}

impl InstanceRuntime {
    fn new() -> std::io::Result<Self> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(1).max_blocking_threads(MAX_BLOCKING_THREADS).thread_name("weir-plugin").enable_io().enable_time();
        let runtime = builder.build()?;
        Ok(Self { handle: runtime.handle().clone(), runtime: Some(runtime) })
    }

    /// Polls a future so that it finds this runtime as its own.
    async fn run<T>(&self, mut future: Pin<&mut impl Future<Output = T>>) -> T {
        std::future::poll_fn(|cx| {
            let _inside = self.handle.enter();
            future.as_mut().poll(cx)
        })
        .await
    }

    /// Ends all of it. False: something was still under way after `limit`.
    async fn close(&mut self, limit: Duration) -> bool {
        let Some(runtime) = self.runtime.take() else { return true };
        let (ended, wait) = tokio::sync::oneshot::channel();
        // Dropping a runtime waits for its file operations, which must not hold up a thread of the caller's.
        let waiter = std::thread::Builder::new().name("weir-plugin-end".to_owned()).spawn(move || {
            drop(runtime);
            let _ = ended.send(());
        });
        waiter.is_ok() && matches!(tokio::time::timeout(limit, wait).await, Ok(Ok(())))
    }
}

impl Drop for InstanceRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;
    use std::time::Duration;

    use super::InstanceRuntime;

    /// A file operation that its caller gave up, as a dropped call leaves it behind.
    async fn given_up(runtime: &InstanceRuntime) -> (mpsc::Sender<()>, Arc<AtomicBool>) {
        let (release, released) = mpsc::channel::<()>();
        let done = Arc::new(AtomicBool::new(false));
        let (started, wait) = tokio::sync::oneshot::channel();
        let job = {
            let done = done.clone();
            move || {
                let _ = started.send(());
                let _ = released.recv();
                std::thread::sleep(Duration::from_millis(100)); // long enough for a close that does not wait to be over
                done.store(true, Ordering::SeqCst);
            }
        };
        runtime.run(pin!(async { drop(tokio::task::spawn_blocking(job)) })).await;
        wait.await.unwrap();
        (release, done)
    }

    #[tokio::test]
    async fn closing_waits_for_file_operations_that_were_given_up() {
        let mut runtime = InstanceRuntime::new().unwrap();
        let (release, done) = given_up(&runtime).await;
        release.send(()).unwrap();
        assert!(runtime.close(Duration::from_secs(30)).await);
        assert!(done.load(Ordering::SeqCst), "closed while a file operation was under way");
    }

    #[tokio::test]
    async fn closing_does_not_wait_for_ever() {
        let mut runtime = InstanceRuntime::new().unwrap();
        let (release, done) = given_up(&runtime).await;
        assert!(!runtime.close(Duration::from_millis(50)).await);
        assert!(!done.load(Ordering::SeqCst));
        drop(release);
    }
}
