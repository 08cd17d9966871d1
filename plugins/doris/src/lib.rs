//! Weir's sink for Apache Doris: Stream Load with two-phase commit, one streaming load an epoch.
//!
//! Modules in reading order: `sink` is the life of an instance, `load` the writing of a transaction, `settle` its commit and abort, `probe` the
//! check before a run. They speak to Doris through `client` (which server, redirects, another try), which stands on `transport` (`http` is its
//! one implementation). What Doris's words mean is in `reply`, `verdict` and `prepared`; what it is sent in `headers` and `rows`.

mod client;
mod config;
mod endpoint;
mod error;
mod headers;
mod http;
mod load;
mod prepared;
mod probe;
mod reply;
mod rows;
mod settle;
mod sink;
#[cfg(test)]
mod testing;
mod transport;
mod verdict;

use std::cell::RefCell;

use bindings::exports::weir::sink::sink::Guest;
use bindings::weir::sink::types::{
    Description, Error, Guarantee, Need, Prepared, Profile, RecordBatch, Rejection, Setup, Transaction, Verdict,
};

#[allow(unsafe_code, missing_docs, unreachable_pub, clippy::all, reason = "generated from the contract")]
mod bindings {
    wit_bindgen::generate!({ path: "../../wit/since-v0.1.0", world: "plugin" });
    export!(Plugin);
    use super::Plugin;
}

thread_local! {
    /// The opened sink. The host calls one function of an instance at a time.
    static SINK: RefCell<Option<sink::Sink<http::WasiHttp>>> = const { RefCell::new(None) };
}

/// The component.
struct Plugin;

impl Guest for Plugin {
    fn describe() -> Description {
        Description {
            name: "doris".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: "Exactly-once loads into an Apache Doris table: Stream Load with two-phase commit".into(),
            documentation: include_str!("../README.md").into(),
            config_schema: config::SCHEMA.into(),
            guarantee: Guarantee::ExactlyOnce,
            handle_formats: vec![prepared::HANDLE_FORMAT.into()],
            needs: vec![Need {
                name: "wasi:http/outgoing-handler".into(),
                why: "Stream Load is HTTP: grant host:port of every front end, and of every back end that they redirect to".into(),
            }],
        }
    }

    fn open(setup: Setup) -> Result<Profile, Error> {
        SINK.with_borrow_mut(|sink| {
            if sink.is_some() {
                return Err(error::broken("open was called twice"));
            }
            let (opened, profile) = sink::Sink::open(&setup, http::WasiHttp)?;
            *sink = Some(opened);
            Ok(profile)
        })
    }

    fn begin(transaction: Transaction) -> Result<(), Error> {
        with_sink(|sink| sink.begin(&transaction))
    }

    fn invoke(label: String, batch: RecordBatch) -> Result<Vec<Rejection>, Error> {
        with_sink(|sink| sink.invoke(&label, batch))
    }

    fn precommit(label: String) -> Result<Prepared, Error> {
        with_sink(|sink| sink.precommit(&label))
    }

    fn commit(transaction: Transaction, handle: Vec<u8>) -> Result<Verdict, Error> {
        with_sink(|sink| sink.commit(&transaction, &handle))
    }

    fn abort(transaction: Transaction) -> Result<(), Error> {
        with_sink(|sink| sink.abort(&transaction))
    }
}

fn with_sink<R>(call: impl FnOnce(&mut sink::Sink<http::WasiHttp>) -> Result<R, Error>) -> Result<R, Error> {
    SINK.with_borrow_mut(|sink| match sink {
        Some(sink) => call(sink),
        None => Err(error::broken("open was not called")),
    })
}
