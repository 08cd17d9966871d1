//! Aborting with the right to commit: what is decided is never aborted.

use weir_protocol::{AbortPermit, CommitPermit};

fn abort(_permit: &AbortPermit) {}

fn decided(permit: CommitPermit) {
    abort(&permit);
}

fn main() {}
