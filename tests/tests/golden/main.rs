//! What must not change without somebody meaning it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on must say so and end")]

mod edges;
mod wit;
