//! Committing before the ledger has the decision: only a durable one gives rights.

use weir_protocol::Decision;

fn before_it_is_made(decision: Decision) {
    decision.permits();
}

fn main() {}
