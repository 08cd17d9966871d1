//! Tests of the emulator over real sockets: one module for each question a user of it may ask.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may panic")]

mod contract;
mod crash;
mod dialects;
mod faults;
mod hold;
mod lifetimes;
mod limits;
mod redirect;
mod rows;
mod support;
mod two_phase;
mod views;
mod wire;
