//! Forging the right to abort from its parts.

use weir_protocol::{AbortPermit, Transaction};

fn forged(transaction: Transaction) -> AbortPermit {
    AbortPermit { transaction }
}

fn main() {}
