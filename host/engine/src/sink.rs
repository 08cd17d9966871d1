//! Instances by what they are for. The order of calls that the contract asks for is the only one that compiles: a writer that begins becomes
//! an open writer, which becomes a writer again with what it prepared; a committer uses up a permit for each commit.

use std::collections::BTreeSet;

use weir_protocol::{AbortPermit, CommitPermit, Lane, MAX_HANDLE_BYTES, SinkId, Transaction, Verdict};

use crate::code::Code;
use crate::error::{Call, PluginError};
use crate::instance::Instance;
use crate::limits::MAX_REASON_BYTES;
use crate::model::{AbortAnswer, Batch, OpenRequest, Prepared, Profile, Rejection};
use crate::plugin::close_after;
use crate::text::clean;

/// A writer without a transaction.
pub struct Writer {
    instance: Instance,
    profile: Profile,
    sink: SinkId,
    lane: Lane,
}

impl Writer {
    pub(crate) fn new(instance: Instance, profile: Profile, request: &OpenRequest) -> Self {
        Self { instance, profile, sink: request.sink.clone(), lane: request.lane }
    }

    /// What the plugin asks for and promises.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Begins a transaction. On an error the instance is ended: nothing of it is under way any more when this returns.
    pub async fn begin(mut self, transaction: &Transaction) -> Result<OpenWriter, PluginError> {
        let begun = if transaction.sink != self.sink || transaction.lane != self.lane {
            let message =
                format!("a transaction of {} lane {} for a writer of {} lane {}", transaction.sink, transaction.lane, self.sink, self.lane);
            Err(self.instance.misuse(Call::Begin, Code::WrongInstance, message))
        } else {
            self.instance.begin(transaction).await
        };
        match begun {
            Ok(()) => Ok(OpenWriter { writer: self, transaction: transaction.clone() }),
            Err(error) => Err(close_after(self.instance, error).await),
        }
    }

    /// Ends the instance, and waits for what it has under way on this machine.
    pub async fn close(self) -> Result<(), PluginError> {
        self.instance.close().await
    }
}

/// A writer with a transaction under way.
pub struct OpenWriter {
    writer: Writer,
    transaction: Transaction,
}

impl OpenWriter {
    /// What the plugin asks for and promises.
    pub fn profile(&self) -> &Profile {
        &self.writer.profile
    }

    /// The transaction under way.
    pub fn transaction(&self) -> &Transaction {
        &self.transaction
    }

    /// Writes a batch. Returns the records that the target can never take, in the order of their indexes.
    ///
    /// After an error the transaction can only be aborted: close this writer first, so that nothing of it is under way.
    pub async fn invoke(&mut self, batch: &Batch) -> Result<Vec<Rejection>, PluginError> {
        let Writer { instance, profile, .. } = &mut self.writer;
        if let Some(column) = missing_column(batch, profile) {
            return Err(instance.misuse(
                Call::Invoke,
                Code::ColumnMissing,
                format!("it asks for {column}, which these records do not have"),
            ));
        }
        let rejections = instance.invoke(&self.transaction.label, batch, profile).await?;
        checked_rejections(rejections, batch.count).map_err(|what| instance.broke(Call::Invoke, Code::PluginRejection, what))
    }

    /// Ends the transaction's writing. On an error the instance is ended: nothing of it is under way any more when this returns.
    pub async fn precommit(mut self) -> Result<(Writer, Prepared), PluginError> {
        let instance = &mut self.writer.instance;
        let prepared = instance.precommit(&self.transaction.label).await.and_then(|prepared| match prepared.handle.len() {
            size if size > MAX_HANDLE_BYTES => {
                let message = format!("the handle has {size} bytes; a handle has at most {} KiB", MAX_HANDLE_BYTES >> 10);
                Err(instance.broke(Call::Precommit, Code::PluginHandleSize, message))
            }
            _ => Ok(prepared),
        });
        match prepared {
            Ok(prepared) => Ok((self.writer, prepared)),
            Err(error) => Err(close_after(self.writer.instance, error).await),
        }
    }

    /// Ends the instance, and waits for what it has under way on this machine. The transaction may be aborted then, by a committer.
    pub async fn close(self) -> Result<(), PluginError> {
        self.writer.close().await
    }
}

/// Commits what a decision names, and aborts what none does.
pub struct Committer {
    instance: Instance,
    profile: Profile,
    sink: SinkId,
    formats: Vec<String>,
}

/// A commit that settled nothing. The permit is good for another try, in this committer if it is usable, else in another one.
#[derive(Debug)]
pub struct CommitFailure {
    /// The right to try again.
    pub permit: CommitPermit,
    /// What happened.
    pub problem: CommitProblem,
}

/// Why a commit settled nothing.
#[derive(Debug)]
pub enum CommitProblem {
    /// The target no longer remembers the transaction: [`Verdict::Unknown`].
    Unknown,
    /// The call failed.
    Failed(PluginError),
}

impl Committer {
    pub(crate) fn new(instance: Instance, profile: Profile, request: &OpenRequest, formats: Vec<String>) -> Self {
        Self { instance, profile, sink: request.sink.clone(), formats }
    }

    /// What the plugin asks for and promises.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Whether it can be called. If not, close it and open another one.
    pub fn usable(&self) -> bool {
        self.instance.is_alive()
    }

    /// Makes a prepared transaction visible. The verdict is never [`Verdict::Unknown`]: that is a failure, because the permit is needed again.
    pub async fn commit(&mut self, permit: CommitPermit) -> Result<Verdict, Box<CommitFailure>> {
        let answer = match self.refuse(&permit) {
            Some(error) => Err(error),
            None => self.instance.commit(permit.transaction(), permit.handle()).await,
        };
        match answer {
            Ok(Verdict::Unknown) => Err(Box::new(CommitFailure { permit, problem: CommitProblem::Unknown })),
            Ok(settled @ (Verdict::Committed | Verdict::AlreadyCommitted | Verdict::Lost)) => Ok(settled),
            Err(error) => Err(Box::new(CommitFailure { permit, problem: CommitProblem::Failed(error) })),
        }
    }

    /// Makes sure that a transaction is not visible and never will be.
    pub async fn abort(&mut self, permit: &AbortPermit) -> Result<AbortAnswer, PluginError> {
        let transaction = permit.transaction();
        if transaction.sink != self.sink {
            return Err(self.wrong_sink(Call::Abort, transaction));
        }
        match self.instance.abort(transaction).await {
            Ok(()) => Ok(AbortAnswer::Done),
            Err(error) if error.code() == Code::PluginConflict => Ok(AbortAnswer::Committed { message: error.message().to_owned() }),
            Err(error) => Err(error),
        }
    }

    /// Ends the instance, and waits for what it has under way on this machine.
    pub async fn close(self) -> Result<(), PluginError> {
        self.instance.close().await
    }

    fn refuse(&self, permit: &CommitPermit) -> Option<PluginError> {
        if permit.transaction().sink != self.sink {
            return Some(self.wrong_sink(Call::Commit, permit.transaction()));
        }
        if self.formats.iter().any(|format| format == permit.format()) {
            return None;
        }
        let message =
            format!("the handle has format `{}`, and this version of the plugin commits {}", permit.format(), self.formats.join(", "));
        Some(self.instance.misuse(Call::Commit, Code::HandleFormat, message))
    }

    fn wrong_sink(&self, call: Call, transaction: &Transaction) -> PluginError {
        self.instance.misuse(call, Code::WrongInstance, format!("a transaction of {} for a committer of {}", transaction.sink, self.sink))
    }
}

fn missing_column(batch: &Batch, profile: &Profile) -> Option<&'static str> {
    let missing = [
        (profile.wants_ends(batch.framing) && batch.ends.is_none(), "record ends"),
        (profile.keys && batch.keys.is_none(), "keys"),
        (profile.timestamps && batch.timestamps.is_none(), "timestamps"),
        (profile.headers && batch.headers.is_none(), "headers"),
    ];
    missing.into_iter().find_map(|(is_missing, column)| is_missing.then_some(column))
}

/// Each record of the batch at most once, reasons bounded.
fn checked_rejections(mut rejections: Vec<Rejection>, count: u32) -> Result<Vec<Rejection>, String> {
    let mut seen = BTreeSet::new();
    for rejection in &mut rejections {
        let index = rejection.index;
        if index >= count {
            return Err(format!("it rejected record {index} of a batch of {count}, counted from 0"));
        }
        if !seen.insert(index) {
            return Err(format!("it rejected record {index} of a batch twice"));
        }
        rejection.reason = clean(&rejection.reason, MAX_REASON_BYTES);
    }
    rejections.sort_by_key(|rejection| rejection.index);
    Ok(rejections)
}

#[cfg(test)]
mod tests {
    use super::checked_rejections;
    use crate::limits::MAX_REASON_BYTES;
    use crate::model::Rejection;

    fn reject(indexes: &[u32]) -> Vec<Rejection> {
        indexes.iter().map(|index| Rejection { index: *index, reason: "x".repeat(2 * MAX_REASON_BYTES) }).collect()
    }

    #[test]
    fn rejections_name_records_of_the_batch_once() {
        let checked = checked_rejections(reject(&[2, 0]), 3).unwrap_or_default();
        assert_eq!(checked.iter().map(|rejection| rejection.index).collect::<Vec<_>>(), [0, 2]);
        assert!(checked.iter().all(|rejection| rejection.reason.len() <= MAX_REASON_BYTES));
        assert!(checked_rejections(reject(&[3]), 3).is_err());
        assert!(checked_rejections(reject(&[1, 1]), 3).is_err());
    }
}
