//! Recovering from facts that were read without raising the generation: only durable ones give rights.

use weir_protocol::PipelineFacts;

fn peeked(facts: PipelineFacts) {
    facts.recover();
}

fn main() {}
