//! `_stream_load` on a BE: begin before the body, rows while it streams, precommit after it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::body::Incoming;

use super::body::{Answer, Broken, Dropped, Source, be_answer};
use super::hold::HeldRequest;
use super::listen::Head;
use super::reply::{LoadReply, LoadStatus, LoadTimes};
use super::request::{LoadRequest, random_label};
use super::state::State;
use crate::faults::{Fault, FaultName};
use crate::options::Dialect;
use crate::rows::{Checker, LoadError, Loader, RowCounts};
use crate::transactions::{Begin, Outcome, Refusal};
use crate::types::{KeyType, TableSpec};

/// How often a load without two-phase commit looks whether its rows are visible.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Answers a load request: everything up to the label is checked before the client may send its body.
pub(crate) async fn stream_load(state: &Arc<State>, backend: usize, head: &Head, (db, table): (&str, &str), body: Incoming) -> Answer {
    state.count(|traffic| traffic.load_requests += 1);
    let settings = state.settings();
    let (label, comment, two_phase) = LoadRequest::echo(head);
    let mut report = Report::new(head, settings.dialect, label, comment, two_phase);
    let mut request = match LoadRequest::read(head, db, table, &settings) {
        Ok(request) => request,
        Err(message) => return report.fail(state, message),
    };
    request.label.clone_from(&report.reply.label);
    if state.fires(FaultName::LoadDropBeforeBegin, &request.label).is_some() {
        return Err(Dropped);
    }
    if let Some(fault) = state.fires(FaultName::LoadFailAtBegin, &request.label) {
        let message = if fault.param.is_empty() { "[E-240]Have not get FE Master heartbeat yet" } else { &fault.param };
        return report.fail(state, message.to_owned());
    }
    let mut source = Source::Wire(body);
    if let Some(fault) = state.fires(FaultName::LoadHold, &request.label) {
        source = hold_body(state, &request, source, &fault).await?;
    }
    let begun = Instant::now();
    let (id, spec) = match begin(state, backend, head, &request) {
        Ok(begun) => begun,
        Err(refusal) => return report.refuse(state, &refusal),
    };
    report.reply.transaction = id;
    report.reply.times.begin = millis(begun);
    state.count(|traffic| traffic.loads_begun += 1);
    let load = Load { state, request, id, spec, backend };
    load.run(source, report).await
}

fn begin(state: &State, backend: usize, head: &Head, request: &LoadRequest) -> Result<(i64, Arc<TableSpec>), Refusal> {
    request.credentials.check(state, head.peer, true)?;
    let begin = Begin {
        db: &request.db,
        table: &request.table,
        label: &request.label,
        timeout_s: request.timeout_s,
        two_phase: request.two_phase,
        backend,
        format: request.format.clone(),
    };
    state.decide(|manager, at| manager.begin(begin, at))
}

/// Receives the whole body before anything is begun, and waits for the release.
async fn hold_body(state: &State, request: &LoadRequest, source: Source, fault: &Fault) -> Result<Source, Dropped> {
    let id = state.holds.id();
    let gathered = source.gather(&state.store.held_body(id)).await;
    let (source, body_bytes, complete) = gathered.map_err(|error| {
        tracing::error!(%error, "cannot hold a body");
        Dropped
    })?;
    hold(state, request, "load", (id, body_bytes, complete), fault).await;
    Ok(source)
}

async fn hold(state: &State, request: &LoadRequest, kind: &str, body: (u64, u64, bool), fault: &Fault) {
    let (id, body_bytes, complete) = body;
    let (db, label) = (request.db.clone(), request.label.clone());
    let released = state.holds.keep(HeldRequest { id, kind: kind.to_owned(), db, label, body_bytes, complete });
    state.count(|traffic| traffic.held += 1);
    state.holds.wait(id, released, fault.waits()).await;
    state.count(|traffic| traffic.held -= 1);
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// A load that has its transaction.
struct Load<'a> {
    state: &'a State,
    request: LoadRequest,
    id: i64,
    spec: Arc<TableSpec>,
    backend: usize,
}

/// Why a load with a transaction ends without success.
enum Failure {
    /// The connection is dropped; the transaction is rolled back first, unless that is lost too.
    Drop { leave_prepare: bool },
    /// Answered with this message and rolled back.
    Fail(String),
    /// The transaction manager refused; there is nothing left to roll back.
    Refused(Refusal),
}

impl Load<'_> {
    async fn run(self, source: Source, mut report: Report) -> Answer {
        let started = Instant::now();
        let error_log = format!("error_log_insert_stmt_{:x}-{}", self.id, random_label().replace('-', ""));
        let result = match self.receive(source, &error_log).await {
            Ok(loader) => self.precommit(loader, &mut report, started).await,
            Err(failure) => Err(failure),
        };
        report.reply.times.load = millis(started);
        if report.reply.filtered_rows > 0 {
            let be = self.state.be_address(self.backend);
            report.reply.error_url = Some(format!("http://{be}/api/_load_error_log?file=__shard_0/{error_log}"));
        }
        match result {
            Ok(()) => self.reply_after_precommit(report).await,
            Err(Failure::Drop { leave_prepare }) => {
                if !leave_prepare {
                    self.roll_back("sender is gone");
                }
                self.state.count(|traffic| traffic.loads_failed += 1);
                Err(Dropped)
            }
            Err(Failure::Fail(message)) => {
                self.roll_back(&message);
                report.fail(self.state, message)
            }
            Err(Failure::Refused(refusal)) => {
                self.state.store.remove(self.id);
                report.refuse(self.state, &refusal)
            }
        }
    }

    fn fires(&self, name: FaultName) -> Option<Fault> {
        self.state.fires(name, &self.request.label)
    }

    fn roll_back(&self, reason: &str) {
        self.state.decide(|manager, at| manager.roll_back(&self.request.db, self.id, reason, at));
    }

    /// Takes the body. The first read of it lets a client go on that waits for `100 Continue`.
    async fn receive(&self, mut source: Source, error_log: &str) -> Result<Loader, Failure> {
        self.check_mode()?;
        let mut loader = self.loader(error_log)?;
        if let Some(fault) = self.fires(FaultName::LoadDropAfterBegin) {
            return Err(dropped(&fault));
        }
        if let Some(fault) = self.fires(FaultName::LoadStallBody) {
            tokio::time::sleep(fault.waits()).await;
        }
        let drop_at = self.fires(FaultName::LoadDropMidBody).map(|fault| fault.param.parse().unwrap_or(1_u64));
        loop {
            let chunk = match source.next().await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => return Ok(loader),
                Err(Broken) => {
                    self.state.count(|traffic| traffic.bodies_broken += 1);
                    return Err(Failure::Fail("[NETWORK_ERROR]receive body don't equal with body bytes".to_owned()));
                }
            };
            self.state.count(|traffic| traffic.body_bytes += chunk.len() as u64);
            loader.feed(&chunk).map_err(|error| self.unusable(&error))?;
            if drop_at.is_some_and(|bytes| loader.counts().bytes >= bytes) {
                return Err(Failure::Drop { leave_prepare: false });
            }
        }
    }

    fn check_mode(&self) -> Result<(), Failure> {
        let merge_on_write = self.spec.key_type == KeyType::Unique && self.spec.merge_on_write;
        let cloud = self.state.settings().dialect == Dialect::Cloud;
        if cloud && merge_on_write && self.request.two_phase {
            let message = "[NOT_IMPLEMENTED_ERROR]stream load 2pc is unsupported for mow table";
            return Err(Failure::Fail(message.to_owned()));
        }
        Ok(())
    }

    fn loader(&self, error_log: &str) -> Result<Loader, Failure> {
        let checker = Checker::new(self.spec.clone(), self.request.format.clone(), self.request.strict);
        let checker =
            checker.map_err(|missing| Failure::Fail(format!("[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = {missing}")))?;
        let lose = self.fires(FaultName::LoadLoseRows).map_or(0, |fault| fault.param.parse().unwrap_or(1));
        let loader = Loader::new(&self.state.store, self.id, error_log, &self.request.layout, checker, lose);
        loader.map_err(|error| self.unusable(&LoadError::Io(error)))
    }

    fn unusable(&self, error: &LoadError) -> Failure {
        Failure::Fail(error.to_string())
    }

    /// The body is complete: makes the rows durable, and then the transaction.
    async fn precommit(&self, loader: Loader, report: &mut Report, started: Instant) -> Result<(), Failure> {
        report.reply.times.receive = millis(started);
        if let Some(fault) = self.fires(FaultName::LoadDropAfterBody) {
            return Err(dropped(&fault));
        }
        if let Some(fault) = self.fires(FaultName::LoadHoldPrecommit) {
            let body = (self.state.holds.id(), loader.counts().bytes, true);
            hold(self.state, &self.request, "precommit", body, &fault).await;
        }
        if let Some(fault) = self.fires(FaultName::LoadDelay) {
            tokio::time::sleep(fault.waits()).await;
        }
        if let Some(fault) = self.fires(FaultName::LoadFail) {
            let message = if fault.param.is_empty() { "[E-235]too many versions" } else { &fault.param };
            return Err(Failure::Fail(message.to_owned()));
        }
        let finished = tokio::task::block_in_place(|| loader.finish());
        let (counts, outcome) = finished.map_err(|error| self.unusable(&error))?;
        report.count(&counts);
        if too_many_filtered(&counts, self.request.max_filter_ratio) {
            return Err(Failure::Fail("[DATA_QUALITY_ERROR]too many filtered rows".to_owned()));
        }
        report.reply.loaded_rows = outcome.rows;
        self.finish(&outcome, report).await
    }

    async fn finish(&self, outcome: &Outcome, report: &mut Report) -> Result<(), Failure> {
        let finished = self.state.decide(|manager, at| manager.finish(&self.request.db, self.id, outcome, at));
        let Some(visible_ms) = finished.map_err(Failure::Refused)? else {
            self.state.count(|traffic| traffic.loads_precommitted += 1);
            return Ok(());
        };
        let committed = Instant::now();
        let limit_ms = self.state.settings().publish_version_timeout_second.saturating_mul(1_000);
        if visible_ms.saturating_sub(self.state.clock.now_ms()) > limit_ms {
            report.reply.status = LoadStatus::PublishTimeout;
            report.reply.message = "[PUBLISH_TIMEOUT]TStatus: transaction commit successfully, BUT data will be visible later".to_owned();
            return Ok(());
        }
        while self.state.clock.now_ms() < visible_ms {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        report.reply.times.commit = millis(committed);
        Ok(())
    }

    /// The transaction is durable; what can still go wrong is that the client does not learn it.
    async fn reply_after_precommit(&self, report: Report) -> Answer {
        if let Some(fault) = self.fires(FaultName::LoadReplyDelay) {
            tokio::time::sleep(fault.waits()).await;
        }
        if self.fires(FaultName::LoadDropAfterPrecommit).is_some() {
            return Err(Dropped);
        }
        if let Some(fault) = self.fires(FaultName::LoadFailAfterPrecommit) {
            let text = "[THRIFT_RPC_ERROR]failed to call frontend service, FE address=127.0.0.1:9020, reason: \
                        THRIFT_EAGAIN (timed out)";
            let message = if fault.param.is_empty() { text } else { &fault.param };
            return report.fail(self.state, message.to_owned());
        }
        report.send()
    }
}

fn dropped(fault: &Fault) -> Failure {
    Failure::Drop { leave_prepare: fault.param == "leave-prepare" }
}

/// Strictly more than the ratio of all rows, as in Doris.
fn too_many_filtered(counts: &RowCounts, max_filter_ratio: f64) -> bool {
    #[allow(clippy::cast_precision_loss, reason = "a ratio needs no more than 53 bits")]
    let (filtered, total) = (counts.filtered as f64, counts.total as f64);
    counts.filtered > 0 && filtered / total > max_filter_ratio
}

/// The reply as it grows.
struct Report {
    reply: LoadReply,
    dialect: Dialect,
    gzip: bool,
}

impl Report {
    fn new(head: &Head, dialect: Dialect, label: String, comment: String, two_phase: bool) -> Self {
        let reply = LoadReply {
            transaction: -1,
            label,
            comment,
            two_phase,
            status: LoadStatus::Success,
            message: "OK".to_owned(),
            total_rows: 0,
            loaded_rows: 0,
            filtered_rows: 0,
            load_bytes: 0,
            times: LoadTimes::default(),
            error_url: None,
            first_error: None,
        };
        Self { reply, dialect, gzip: head.accepts_gzip() }
    }

    fn count(&mut self, counts: &RowCounts) {
        self.reply.total_rows = counts.total;
        self.reply.filtered_rows = counts.filtered;
        self.reply.load_bytes = counts.bytes;
        self.reply.first_error.clone_from(&counts.first_error);
    }

    fn fail(mut self, state: &State, message: String) -> Answer {
        state.count(|traffic| traffic.loads_failed += 1);
        self.reply.status = LoadStatus::Fail;
        self.reply.message = message;
        self.reply.loaded_rows = 0;
        self.send()
    }

    fn refuse(mut self, state: &State, refusal: &Refusal) -> Answer {
        let message = refusal.load_message(self.dialect);
        if let Refusal::LabelUsed { state: existing, .. } = refusal {
            state.count(|traffic| traffic.loads_failed += 1);
            self.reply.status = LoadStatus::LabelAlreadyExists(*existing);
            self.reply.message = message;
            return self.send();
        }
        self.fail(state, message)
    }

    fn send(self) -> Answer {
        Ok(be_answer(self.reply.text(self.dialect), self.gzip))
    }
}
