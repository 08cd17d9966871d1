//! Forging the right to commit from its parts.

use weir_protocol::{CommitPermit, Transaction};

fn forged(transaction: Transaction) -> CommitPermit {
    CommitPermit { transaction, format: String::new(), handle: Vec::new() }
}

fn main() {}
