//! A sink that counts the records of each transaction, the smallest one that keeps every promise of the contract.
//!
//! Committed counts are files `<label>.count` in the configured folder. In reading order: this file is the border to the
//! host, `sink.rs` says what each call does, `folder.rs` what that means for files, `config.rs` what the operator writes.

mod bindings;
mod config;
mod error;
mod folder;
mod sink;

use std::cell::RefCell;

use bindings::exports::weir::sink::sink::Guest;
use bindings::weir::sink::types::{
    Description, Error, Guarantee, Need, Prepared, Profile, RecordBatch, Rejection, Setup, Transaction, Verdict,
};

use crate::sink::Sink;

/// What the bindings export.
struct Component;

thread_local! {
    // The contract's functions have no receiver, so what `open` makes is kept here. An instance has one thread.
    static SINK: RefCell<Option<Sink>> = const { RefCell::new(None) };
}

impl Guest for Component {
    fn describe() -> Description {
        Description {
            name: "count-rust".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            summary: "Counts the records of each transaction (example in Rust).".to_owned(),
            documentation: include_str!("../README.md").to_owned(),
            config_schema: config::SCHEMA.to_owned(),
            guarantee: Guarantee::ExactlyOnce,
            handle_formats: vec![sink::HANDLE_FORMAT.to_owned()],
            needs: vec![Need {
                name: "wasi:filesystem/preopens".to_owned(),
                why: "The counts are files in the folder that `directory` names.".to_owned(),
            }],
        }
    }

    fn open(setup: Setup) -> Result<Profile, Error> {
        let (sink, profile) = Sink::open(&setup)?;
        SINK.replace(Some(sink));
        Ok(profile)
    }

    fn begin(transaction: Transaction) -> Result<(), Error> {
        with_sink(|sink| sink.begin(&transaction.label))
    }

    fn invoke(label: String, batch: RecordBatch) -> Result<Vec<Rejection>, Error> {
        with_sink(|sink| sink.invoke(&label, &batch))
    }

    fn precommit(label: String) -> Result<Prepared, Error> {
        with_sink(|sink| sink.precommit(&label))
    }

    fn commit(transaction: Transaction, handle: Vec<u8>) -> Result<Verdict, Error> {
        with_sink(|sink| sink.commit(&transaction.label, &handle))
    }

    fn abort(transaction: Transaction) -> Result<(), Error> {
        with_sink(|sink| sink.abort(&transaction.label))
    }
}

fn with_sink<T>(call: impl FnOnce(&mut Sink) -> Result<T, Error>) -> Result<T, Error> {
    SINK.with_borrow_mut(|sink| match sink {
        Some(sink) => call(sink),
        None => Err(error::broken("called before open")),
    })
}
