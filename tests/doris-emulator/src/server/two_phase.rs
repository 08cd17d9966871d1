//! `_stream_load_2pc` on a BE: commit and abort, with everything that can go wrong on the way to the FE.

use super::auth::{Credentials, check_or_denied};
use super::body::{Answer, Dropped, be_answer};
use super::hold::HeldRequest;
use super::listen::Head;
use super::reply;
use super::state::State;
use crate::faults::{Fault, FaultName};
use crate::options::Dialect;
use crate::transactions::{Refusal, Which};

/// What is to be done with the transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Commit,
    Abort,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Abort => "abort",
        }
    }

    /// The fault point of this operation.
    fn fault(self, commit: FaultName, abort: FaultName) -> FaultName {
        match self {
            Self::Commit => commit,
            Self::Abort => abort,
        }
    }
}

/// A request as the BE passes it on.
struct Call<'a> {
    state: &'a State,
    head: &'a Head,
    db: &'a str,
    operation: Operation,
    which: Which,
    dialect: Dialect,
    /// Label of the transaction that is meant, for faults and listings.
    label: String,
    /// Id and name of its table, for the words of a lock time-out.
    table: (i64, String),
}

/// The two fields of a reply.
struct Verdict {
    code: &'static str,
    message: String,
}

/// Answers a two-phase request.
pub(crate) async fn answer(state: &State, head: &Head, db: &str) -> Answer {
    let dialect = state.settings().dialect;
    let send = |verdict: Verdict| Ok(be_answer(reply::two_phase(verdict.code, &verdict.message, dialect), head.accepts_gzip()));
    let call = match read(state, head, db, dialect) {
        Ok(call) => call,
        Err(message) => return send(Verdict { code: "INTERNAL_ERROR", message }),
    };
    match call.operation {
        Operation::Commit => state.count(|traffic| traffic.commit_requests += 1),
        Operation::Abort => state.count(|traffic| traffic.abort_requests += 1),
    }
    send(call.run().await?)
}

/// What the BE itself checks before it asks the FE; the error is the reply's `msg`.
fn read<'a>(state: &'a State, head: &'a Head, db: &'a str, dialect: Dialect) -> Result<Call<'a>, String> {
    let label_known = !matches!(dialect, Dialect::V1 | Dialect::V2_0);
    let label = head.header("label").filter(|_| label_known).map(str::to_owned);
    let id = match head.header("txn_id") {
        Some(text) => Some(stoull(text).ok_or_else(|| format!("convert txn_id [{text}] failed, reason=stoull"))?),
        None if label_known => None,
        None => return Err("convert txn_id [] failed, reason=stoull".to_owned()),
    };
    let operation = match head.header("txn_operation").map(str::to_ascii_lowercase).as_deref() {
        Some("commit") => Operation::Commit,
        Some("abort") => Operation::Abort,
        _ => return Err("transaction operation should be 'commit' or 'abort'".to_owned()),
    };
    let which = Which { id, label };
    let located = state.decide(|manager, _| manager.locate(db, &which));
    let (label, table_id, table) = located.unwrap_or((which.label.clone().unwrap_or_default(), -1, String::new()));
    Ok(Call { state, head, db, operation, which, dialect, label, table: (table_id, table) })
}

/// What C++'s `std::stoull` makes of a text: a leading number, also a negative one, wrapped.
fn stoull(text: &str) -> Option<i64> {
    let text = text.trim_start();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = digits.find(|character: char| !character.is_ascii_digit()).unwrap_or(digits.len());
    let value: u64 = digits.get(..end)?.parse().ok()?;
    let value = if negative { value.wrapping_neg() } else { value };
    Some(value.cast_signed())
}

impl Call<'_> {
    async fn run(&self) -> Result<Verdict, Dropped> {
        let fires = |commit, abort| self.state.fires(self.operation.fault(commit, abort), &self.label);
        if fires(FaultName::CommitDropBefore, FaultName::AbortDropBefore).is_some() {
            return Err(Dropped);
        }
        if let Some(fault) = fires(FaultName::CommitHold, FaultName::AbortHold) {
            self.hold(&fault).await;
        }
        if let Some(fault) = fires(FaultName::CommitDelay, FaultName::AbortDelay) {
            tokio::time::sleep(fault.waits()).await;
        }
        if fires(FaultName::CommitLockTimeout, FaultName::AbortLockTimeout).is_some() {
            let (table_id, table) = self.table.clone();
            return Ok(self.refused(&Refusal::LockTimeout { table_id, table }));
        }
        if fires(FaultName::CommitNotMaster, FaultName::AbortNotMaster).is_some() {
            return Ok(self.refused(&Refusal::NotMaster));
        }
        let thrift = fires(FaultName::CommitThriftError, FaultName::AbortThriftError);
        if thrift.as_ref().is_some_and(|fault| fault.param == "not-done") {
            return Ok(thrift_error());
        }
        let mut verdict = self.ask_fe();
        if fires(FaultName::CommitDoubleSend, FaultName::AbortDoubleSend).is_some() {
            verdict = self.ask_fe();
        }
        if fires(FaultName::CommitDropAfter, FaultName::AbortDropAfter).is_some() {
            return Err(Dropped);
        }
        Ok(if thrift.is_some() { thrift_error() } else { verdict })
    }

    async fn hold(&self, fault: &Fault) {
        let holds = &self.state.holds;
        let id = holds.id();
        let released = holds.keep(HeldRequest {
            id,
            kind: self.operation.name().to_owned(),
            db: self.db.to_owned(),
            label: self.label.clone(),
            body_bytes: 0,
            complete: true,
        });
        self.state.count(|traffic| traffic.held += 1);
        holds.wait(id, released, fault.waits()).await;
        self.state.count(|traffic| traffic.held -= 1);
    }

    /// The call to the master FE.
    fn ask_fe(&self) -> Verdict {
        let credentials = Credentials::of(&self.head.headers);
        let access = check_or_denied(credentials.as_ref(), self.state, self.head.peer);
        let nothing_named = self.which.id.is_none() && self.which.label.is_none();
        if self.dialect == Dialect::Cloud && nothing_named && self.operation == Operation::Abort {
            return self.refused(&Refusal::IllegalInput { label: String::new() });
        }
        let result = self.state.decide(|manager, at| match self.operation {
            Operation::Commit => manager.commit(self.db, &self.which, access, at),
            Operation::Abort => manager.abort(self.db, &self.which, access, "User Abort", at),
        });
        match result {
            Ok(()) => {
                match self.operation {
                    Operation::Commit => self.state.count(|traffic| traffic.commits += 1),
                    Operation::Abort => self.state.count(|traffic| traffic.aborts += 1),
                }
                self.success()
            }
            // Cloud mode does not look at what became of a roll-back by label.
            Err(_) if self.cloud_abort_by_label() => self.success(),
            Err(refusal) => self.refused(&refusal),
        }
    }

    fn cloud_abort_by_label(&self) -> bool {
        self.dialect == Dialect::Cloud && self.operation == Operation::Abort && self.which.id.is_none()
    }

    /// `[label [L] ][transaction [N] ]<operation> successfully.`, from the request's headers.
    fn success(&self) -> Verdict {
        let label = self.which.label.as_ref().map(|label| format!("label [{label}] ")).unwrap_or_default();
        let id = self.which.id.map(|id| format!("transaction [{id}] ")).unwrap_or_default();
        Verdict { code: "Success", message: format!("{label}{id}{} successfully.", self.operation.name()) }
    }

    fn refused(&self, refusal: &Refusal) -> Verdict {
        Verdict { code: refusal.code(), message: refusal.detail(self.dialect) }
    }
}

/// The FE did not answer in time: the outcome is unknown to the BE.
fn thrift_error() -> Verdict {
    let message = "failed to call frontend service, FE address=127.0.0.1:9020, reason: THRIFT_EAGAIN (timed out)";
    Verdict { code: "THRIFT_RPC_ERROR", message: message.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::stoull;

    #[test]
    fn transaction_ids_are_read_like_stoull_reads_them() {
        assert_eq!(stoull("18036"), Some(18_036));
        assert_eq!(stoull("12abc"), Some(12));
        assert_eq!(stoull("-1"), Some(-1));
        assert_eq!(stoull("9223372036854775807"), Some(i64::MAX));
        assert_eq!(stoull("abc"), None);
        assert_eq!(stoull("99999999999999999999"), None);
    }
}
