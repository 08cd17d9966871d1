//! The committers of one pipeline: instances beside the writers that make decided handles visible, and that clean up after generations that
//! ended. What they do follows from the facts alone, so they serve at start, after a crash and in between.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use weir_engine::{AbortAnswer as Answer, CommitProblem, Committer, PluginError, Profile};
use weir_protocol::decide::{AbortAnswer, AfterAbort, AfterCommit, after_abort, after_commit};
use weir_protocol::{AbortPermit, CommitPermit, Confirmation, SinkId, Verdict};

use crate::clock::{self, Backoff};
use crate::lease::Lease;
use crate::sink::Sink;
use crate::stop::Stop;

/// Pauses between tries of one commit or abort.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// Their cap.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Every sink's committers.
#[derive(Clone)]
pub(crate) struct Committers {
    sinks: Arc<BTreeMap<SinkId, SinkCommitters>>,
    lease: Lease,
}

/// Opens instances as they are needed, as many as there are calls at one time, and keeps them.
struct SinkCommitters {
    sink: Arc<Sink>,
    idle: Mutex<Vec<Committer>>,
}

impl Committers {
    /// Opens one committer a sink; the profiles tell what they write to.
    pub(crate) async fn open(sinks: &BTreeMap<SinkId, Arc<Sink>>, lease: Lease) -> Result<(Self, BTreeMap<SinkId, Profile>), Stop> {
        let mut committers = BTreeMap::new();
        let mut profiles = BTreeMap::new();
        for (id, sink) in sinks {
            let first = sink.open_committer().await.map_err(|error| Stop::from_plugin(id, error))?;
            profiles.insert(id.clone(), first.profile().clone());
            committers.insert(id.clone(), SinkCommitters { sink: sink.clone(), idle: Mutex::new(vec![first]) });
        }
        Ok((Self { sinks: Arc::new(committers), lease }, profiles))
    }

    fn sink(&self, id: &SinkId) -> Result<&SinkCommitters, Stop> {
        self.sinks.get(id).ok_or_else(|| Stop::internal(format!("sink {id} has obligations and no committer")))
    }

    /// Commits one decided handle, however long it takes: the decision is final, so every error is tried again on a new instance.
    pub(crate) async fn commit(&self, mut permit: CommitPermit) -> Result<Confirmation, Stop> {
        let transaction = permit.transaction().clone();
        let committers = self.sink(&transaction.sink)?;
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        let mut unknown_answers = 0;
        loop {
            self.lease.ready().await.map_err(Stop::from_lease)?;
            let label = &transaction.label;
            let (verdict, unused) = committers.commit_once(permit).await;
            match verdict.map(|verdict| after_commit(&transaction, verdict, unknown_answers)) {
                Ok(AfterCommit::Confirm(confirmation)) => return Ok(confirmation),
                Ok(AfterCommit::Repair) => return Err(Stop::lost(&transaction)),
                Ok(AfterCommit::AskOperator) => return Err(Stop::unknown(&transaction)),
                Ok(AfterCommit::AskAgain) => unknown_answers += 1,
                Err(error) => {
                    tracing::warn!(sink = %transaction.sink, %label, %error, "commit failed; the decision is final, so it is tried again");
                }
            }
            permit = unused.ok_or_else(|| Stop::internal(format!("the right to commit {label} was used up without an outcome")))?;
            clock::sleep(backoff.pause()).await;
        }
    }

    /// Aborts one transaction that no decision names, however long it takes.
    pub(crate) async fn abort(&self, permit: &AbortPermit) -> Result<(), Stop> {
        let transaction = permit.transaction();
        let committers = self.sink(&transaction.sink)?;
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        loop {
            self.lease.ready().await.map_err(Stop::from_lease)?;
            match after_abort(committers.abort_once(permit).await) {
                AfterAbort::Clean => return Ok(()),
                AfterAbort::LedgerIsOlder => return Err(Stop::ledger_is_older(transaction)),
                AfterAbort::AskAgain => clock::sleep(backoff.pause()).await,
            }
        }
    }
}

impl SinkCommitters {
    /// One try. The permit comes back unless the transaction's fate is known now.
    async fn commit_once(&self, permit: CommitPermit) -> (Result<Verdict, PluginError>, Option<CommitPermit>) {
        let mut committer = match self.take().await {
            Ok(committer) => committer,
            Err(error) => return (Err(error), Some(permit)),
        };
        let answer = match committer.commit(permit).await {
            Ok(verdict) => (Ok(verdict), None),
            Err(failure) => match failure.problem {
                CommitProblem::Unknown => (Ok(Verdict::Unknown), Some(failure.permit)),
                CommitProblem::Failed(error) => (Err(error), Some(failure.permit)),
            },
        };
        self.put_back(committer, answer.0.is_ok()).await;
        answer
    }

    /// One try.
    async fn abort_once(&self, permit: &AbortPermit) -> AbortAnswer {
        let mut committer = match self.take().await {
            Ok(committer) => committer,
            Err(error) => return abort_failed(permit, &error),
        };
        let answer = match committer.abort(permit).await {
            Ok(Answer::Done) => AbortAnswer::Gone,
            Ok(Answer::Committed { .. }) => AbortAnswer::FoundCommitted,
            Err(error) => abort_failed(permit, &error),
        };
        self.put_back(committer, answer != AbortAnswer::Failed).await;
        answer
    }

    async fn take(&self) -> Result<Committer, PluginError> {
        let idle = self.idle.lock().await.pop();
        match idle {
            Some(committer) => Ok(committer),
            None => self.sink.open_committer().await,
        }
    }

    /// Keeps an instance that has served well; any other is closed, and a new one serves the next try.
    async fn put_back(&self, committer: Committer, served_well: bool) {
        if served_well && committer.usable() {
            self.idle.lock().await.push(committer);
        } else if let Err(error) = committer.close().await {
            tracing::debug!(sink = %self.sink.id, %error, "a committer did not close in time");
        }
    }
}

fn abort_failed(permit: &AbortPermit, error: &PluginError) -> AbortAnswer {
    let transaction = permit.transaction();
    tracing::warn!(sink = %transaction.sink, label = %transaction.label, %error, "abort failed; it is tried again");
    AbortAnswer::Failed
}
