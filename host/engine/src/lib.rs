//! The sandbox: load, check, limit, instantiate and call sink plugins. The only crate that knows wasmtime.
//!
//! In reading order: [`Engine`] finds plugins, looks at their files and compiles them; a [`Plugin`] says what it is and opens instances under
//! [`Grants`] and [`Limits`]; a [`Writer`] or a [`Committer`] is an instance whose calls can only be made in the order that the contract
//! asks for. What fails is a [`PluginError`] or an [`EngineError`], with a [`Code`] that leads to a page under `docs/errors/`.
//!
//! Nothing that a plugin does ends the host: each call is bounded in time, memory and in what it hands over; a trap ends that instance alone.

mod code;
mod error;
pub mod limits;
mod model;
mod text;
mod version;

mod component;

mod cache;
mod engine;

mod capabilities;
mod plugin;
mod sink;

mod bindings;
mod imports;
mod instance;
mod store;
mod trap;

pub use capabilities::{Folder, Grants, HostPort, MissingGrant, Remedy};
pub use code::Code;
pub use component::Inspection;
pub use engine::{Engine, EngineOptions};
pub use error::{Call, EngineError, Fault, InstanceState, PluginError, Retry};
pub use limits::Limits;
pub use model::{
    AbortAnswer, Batch, Column, Description, Format, Framing, Guarantee, HeaderColumns, Input, Need, OpenRequest, Prepared, Profile,
    Rejection, Role,
};
pub use plugin::Plugin;
pub use sink::{CommitFailure, CommitProblem, Committer, OpenWriter, Writer};
pub use version::SUPPORTED as SUPPORTED_CONTRACTS;
