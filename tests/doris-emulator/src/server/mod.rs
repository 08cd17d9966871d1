//! The listeners: FE, BE and control, over one shared state.

mod auth;
mod be;
mod body;
mod control;
mod fe;
mod hold;
mod listen;
mod load;
mod reply;
mod request;
mod state;
mod tap;
mod two_phase;

pub use hold::HeldRequest;
pub(crate) use listen::{Role, serve};
pub(crate) use state::State;
