//! Forging the proof that a decision is durable.

use weir_protocol::{Decision, Durable};

fn forged(decision: Decision) -> Durable<Decision> {
    Durable(decision)
}

fn main() {}
