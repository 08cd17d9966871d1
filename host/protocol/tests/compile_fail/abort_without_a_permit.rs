//! Aborting what nobody has shown to be undecided: a transaction's name is no right.

use weir_protocol::{AbortPermit, Transaction};

fn abort(_permit: &AbortPermit) {}

fn without(transaction: Transaction) {
    abort(&transaction);
}

fn main() {}
