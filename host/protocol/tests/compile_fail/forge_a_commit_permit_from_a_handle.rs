//! Forging the right to commit with the crate's own constructor.

use weir_protocol::{CommitPermit, PreparedHandle};

fn forged(handle: &PreparedHandle) -> CommitPermit {
    CommitPermit::for_handle(handle)
}

fn main() {}
