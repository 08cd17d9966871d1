//! Committing a transaction that is not prepared: all there is of it is its name, which is no right.

use weir_protocol::{CommitPermit, Transaction};

fn commit(_permit: CommitPermit) {}

fn unprepared(transaction: Transaction) {
    commit(transaction);
}

fn main() {}
