//! Committing what is prepared and not decided: a handle is no right.

use weir_protocol::{CommitPermit, PreparedHandle};

fn commit(_permit: CommitPermit) {}

fn undecided(handle: PreparedHandle) {
    commit(handle);
}

fn main() {}
