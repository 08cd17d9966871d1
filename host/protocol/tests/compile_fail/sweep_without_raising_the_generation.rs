//! Sweeping from facts that were read without raising the generation: the old host could still decide.

use weir_protocol::PipelineFacts;

fn too_early(facts: PipelineFacts) {
    facts.sweep(&facts.debts[0]);
}

fn main() {}
