//! What Doris's transaction manager decides, and the journal that makes it durable.

mod database;
mod journal;
mod manager;
mod refusal;
mod views;

pub(crate) use database::Load;
pub(crate) use journal::Journal;
pub(crate) use manager::{At, Begin, Manager, Outcome, Which};
pub(crate) use refusal::Refusal;
