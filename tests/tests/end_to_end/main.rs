//! The real binary, the shipped plugins, real files, and a server that speaks Doris's protocol. Each test's name is a sentence about the
//! guarantee.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on must say so and end")]

mod fixture;
mod sigkill;
mod lease;
mod leftovers;
mod older_ledger;
mod shutdown;
mod target_down;
mod guests;
mod abuse;
mod bad_input;
mod memory;
