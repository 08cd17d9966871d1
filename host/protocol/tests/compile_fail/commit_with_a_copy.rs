//! Committing twice with a copy: a right cannot be copied.

use weir_protocol::CommitPermit;

fn commit(_permit: CommitPermit) {}

fn twice(permit: CommitPermit) {
    commit(permit.clone());
    commit(permit);
}

fn main() {}
