//! Test equipment: a server that speaks Apache Doris's Stream Load with two-phase commit.
//!
//! It exists because a sink's promises are only worth something when they are tried against a target that forgets,
//! answers twice, answers late and dies. It is not a database: it keeps rows and transactions, and answers no query.
//! Protocol facts come from the sources and documentation of Apache Doris; the README lists what is emulated and
//! what is not.
//!
//! A test starts one in its own process ([`Emulator::start`]) or runs the program `doris-emulator`, sends loads to the
//! FE address, and looks at the outcome through a [`Client`] of the control address.
//!
//! Modules in reading order: `options` and `types` are the vocabulary, `transactions` what Doris's transaction manager
//! decides, `rows` what becomes of a body, `server` the listeners, `client` the tests' side.

mod clock;
mod error;
mod faults;
mod options;
mod types;

mod rows;
mod transactions;

mod emulator;
mod server;

mod client;

pub use client::{Client, ClientError, CountsQuery, HeldRequest, TransactionQuery};
pub use emulator::Emulator;
pub use error::EmulatorError;
pub use faults::{Fault, FaultName, NotAFault};
pub use options::{Dialect, Options, RedirectTarget, Settings, User};
pub use types::{
    Addresses, Column, ColumnType, CsvShape, KeyType, RowFormat, StateCounts, TableCounts, TableSpec, Traffic, Transaction,
    TransactionState,
};
