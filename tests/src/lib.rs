//! What the tests over the whole and the demo share: real processes, real folders, and a comparison by content.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on must say so and end")]

pub mod compare;
pub mod emulator;
pub mod host;
pub mod orders;
pub mod paths;
pub mod project;
