//! Committing twice: the first commit uses the right up.

use weir_protocol::{CommitPermit, Decision, Durable};

fn commit(_permit: CommitPermit) {}

fn twice(decided: Durable<Decision>) {
    for permit in decided.permits() {
        commit(permit);
        commit(permit);
    }
}

fn main() {}
