//! The file sink: records into files of a folder, each exactly once. README.md is its description for users.
//!
//! Reading order: [`name`] what files are called; [`transaction`] how they are written; [`settle`] how they become visible or go away;
//! [`marker`] how the folder is known again; [`sink`] the calls of the contract over all of it. [`folder`] is what it needs of a file
//! system, so that everything but `guest` and `folder::wasi` is tested natively against file systems that misbehave.

pub mod batch;
pub mod config;
pub mod error;
pub mod folder;
pub mod handle;
pub mod marker;
pub mod name;
pub mod settle;
pub mod sink;
pub mod transaction;

#[cfg(target_family = "wasm")]
mod guest;

#[cfg(test)]
mod tests;
