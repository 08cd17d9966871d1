//! The real binary, the shipped plugins, real files, and a server that speaks Doris's protocol. Each test's name is a sentence about the
//! guarantee.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on must say so and end")]

mod abuse;
mod bad_input;
mod fixture;
mod guests;
mod lease;
mod leftovers;
mod many_files;
mod memory;
mod older_ledger;
mod shutdown;
mod sigkill;
mod target_down;
