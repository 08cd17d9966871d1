//! The rights to commit and to abort, as values. Neither can be made outside this crate, neither can be copied, and each is used up by
//! the call that it allows:
//!
//! ```compile_fail,E0382
//! fn twice(permit: weir_protocol::CommitPermit, call: impl Fn(weir_protocol::CommitPermit)) {
//!     call(permit);
//!     call(permit);
//! }
//! ```

use crate::facts::{Decision, PreparedHandle, Replacement};
use crate::ids::Transaction;

/// A value that a ledger has read from, or written to, durable storage in this process, after a synced write of this process.
///
/// Every right to commit is made from one. Only a ledger may attest: the workspace's clippy settings refuse `Durable::attest` everywhere but in
/// `host/ledger`, because Rust cannot say "this one other crate".
#[derive(Debug)]
pub struct Durable<T>(T);

impl<T> Durable<T> {
    /// Vouches that `fact` is durable. For implementations of the ledger only.
    pub fn attest(fact: T) -> Self {
        Self(fact)
    }

    /// The fact.
    pub fn get(&self) -> &T {
        &self.0
    }

    /// The fact, without the proof that it is durable.
    pub fn into_inner(self) -> T {
        self.0
    }
}

/// The right to commit one prepared transaction: a durable decision names it (EO-1).
///
/// It comes from [`Durable<Decision>::permits`](Durable::permits) or from the facts read at start, and is given back by a commit that
/// failed, so that it can be tried again.
#[derive(Debug)]
pub struct CommitPermit {
    transaction: Transaction,
    format: String,
    handle: Vec<u8>,
}

impl CommitPermit {
    pub(crate) fn for_handle(prepared: &PreparedHandle) -> Self {
        Self { transaction: prepared.transaction.clone(), format: prepared.format.clone(), handle: prepared.handle.clone() }
    }

    /// What is to be committed.
    pub fn transaction(&self) -> &Transaction {
        &self.transaction
    }

    /// The format that the plugin gave its handle in.
    pub fn format(&self) -> &str {
        &self.format
    }

    /// What the plugin returned from precommit.
    pub fn handle(&self) -> &[u8] {
        &self.handle
    }
}

impl Durable<Decision> {
    /// The right to commit each handle that the decision names.
    pub fn permits(&self) -> Vec<CommitPermit> {
        self.0.handles.iter().map(CommitPermit::for_handle).collect()
    }
}

impl Durable<Replacement> {
    /// The right to commit the handle that stands in for a lost one.
    pub fn permit(&self) -> CommitPermit {
        CommitPermit::for_handle(&self.0.handle)
    }
}

/// The right to abort one transaction: no decision names it, and none still can (EO-2).
///
/// It comes from a sweep debt, whose generation can decide nothing any more.
#[derive(Debug)]
pub struct AbortPermit {
    transaction: Transaction,
}

impl AbortPermit {
    pub(crate) fn for_undecided(transaction: Transaction) -> Self {
        Self { transaction }
    }

    /// What is to be aborted.
    pub fn transaction(&self) -> &Transaction {
        &self.transaction
    }
}
