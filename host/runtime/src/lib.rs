//! The runtime: config, sources, driver, supervisor, command line. It composes the other crates, and keeps nothing out.
//!
//! Modules in reading order: [`cli`] what can be asked for; [`config`] a file becomes checked values; [`supervisor`] pipelines start, fail, start again
//! and stop; `driver` one generation of a pipeline, with its lanes, its committers and its sweep; [`source`] where records come from; [`error`],
//! [`stop`] and [`telemetry`] what people are told.

pub mod cli;
pub mod config;

pub mod supervisor;

mod commit;
mod driver;
mod lane;
pub mod lease;
mod sink;
mod sweep;
mod watch;

pub mod source;

mod clock;
pub mod error;
pub mod progress;
pub mod shutdown;
pub mod stop;
pub mod telemetry;
