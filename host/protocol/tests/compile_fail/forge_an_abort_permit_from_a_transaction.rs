//! Forging the right to abort with the crate's own constructor.

use weir_protocol::{AbortPermit, Transaction};

fn forged(transaction: Transaction) -> AbortPermit {
    AbortPermit::for_undecided(transaction)
}

fn main() {}
