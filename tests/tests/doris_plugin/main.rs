//! The Doris plugin as a component in the engine, against the emulated Doris: what is visible when, and what each fault becomes.
//!
//! The plugin's own unit tests try every wording with a scripted target; these show that the same holds through wasi:http, on a wire.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed unwrap is a failed test")]

mod commit;
mod reach;
mod rig;
mod sweep;
mod write;
