//! What exactly-once means, without async, I/O, clocks, wasmtime or SQL: the crate exists to keep those out.
//!
//! The protocol in one page. A pipeline's records are cut into *epochs*. In an epoch every lane writes to one *transaction* a sink, whose
//! *label* is used once, ever. At the barrier each sink *prepares* its transaction: the data survives a crash and nobody sees it. One durable
//! *decision* then names every prepared handle together with the source positions after the epoch; from there on the epoch is certain to
//! become visible, and before it nothing of it ever was. Handles are committed until each is *confirmed*. A start, which raises the
//! *generation*, reads these facts, commits what is decided and unconfirmed, aborts what the generation before it may have left
//! undecided (a *sweep debt*), and reads on from the decided positions. There is no other path after a crash.
//!
//! Modules in reading order: [`ids`] names and labels; [`facts`] what is durable; [`permit`] rights to commit and abort, as values; [`state`] facts to
//! state; [`decide`] state and answers to the next step; [`invariants`] EO-1 to EO-8 as a monitor; [`error`].

pub mod decide;
pub mod error;
pub mod facts;
pub mod ids;
pub mod invariants;
pub mod permit;
pub mod state;
#[cfg(test)]
mod tests;

pub use error::ProtocolError;
pub use facts::*;
pub use ids::*;
pub use permit::{AbortPermit, CommitPermit, Durable};
pub use state::PipelineState;
