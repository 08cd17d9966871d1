//! The one place where this workspace vouches that a fact is durable.

use weir_protocol::Durable;

/// Called by an implementation after the write that made `fact` durable was acknowledged, or, for facts read, after a synced write of this process.
#[allow(clippy::disallowed_methods, reason = "the ledger is who may vouch")]
pub(crate) fn vouch<T>(fact: T) -> Durable<T> {
    Durable::attest(fact)
}
