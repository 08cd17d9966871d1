//! The contract's side: exports that turn its types into the plugin's own and back, and nothing more.

use std::cell::RefCell;

use crate::batch::{Batch, Format, Framing};
use crate::config::{Config, SCHEMA};
use crate::error::{Error, Kind};
use crate::folder::wasi::WasiFolder;
use crate::settle::Verdict;
use crate::sink::{Role, Sink};
use crate::{handle, transaction};

#[allow(unsafe_code, missing_docs, unreachable_pub, clippy::all, reason = "generated")]
mod bindings {
    wit_bindgen::generate!({ path: "../../wit/since-v0.1.0", world: "plugin" });
    export!(FileSink with_types_in self);
    use super::FileSink;
}

use bindings::exports::weir::sink::sink::Guest;
use bindings::weir::sink::types;

thread_local! {
    /// What `open` made. An instance runs one call at a time.
    static OPENED: RefCell<Option<Sink<WasiFolder>>> = const { RefCell::new(None) };
}

struct FileSink;

impl Guest for FileSink {
    fn describe() -> types::Description {
        let need = |name: &str, why: &str| types::Need { name: name.to_owned(), why: why.to_owned() };
        types::Description {
            name: env!("CARGO_PKG_NAME").to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            summary: "Writes records into files of a folder, each exactly once.".to_owned(),
            documentation: include_str!("../README.md").to_owned(),
            config_schema: SCHEMA.to_owned(),
            guarantee: types::Guarantee::ExactlyOnce,
            handle_formats: vec![handle::FORMAT.to_owned()],
            needs: vec![
                need("wasi:filesystem/preopens", "to find the folder that was granted"),
                need("wasi:filesystem/types", "to write, sync and rename files in it"),
            ],
        }
    }

    fn open(setup: types::Setup) -> Result<types::Profile, types::Error> {
        let config = Config::parse(&setup.config)?;
        let target = config.directory.target();
        let folder = WasiFolder::open(&config.directory)?;
        let sink = Sink::open(config, setup.input.format.into(), &setup.input.columns, setup.role.into(), folder, random())?;
        OPENED.set(Some(sink));
        Ok(types::Profile {
            target,
            ends: false,
            keys: false,
            timestamps: false,
            headers: false,
            max_batch_bytes: transaction::BUFFER_BYTES as u32,
            max_batch_records: 0,
            prepared_lifetime_s: None,
            // A step of a file system that was begun is done when the process that asked for it is gone.
            settle_ms: 0,
        })
    }

    fn begin(transaction: types::Transaction) -> Result<(), types::Error> {
        opened(|sink| sink.begin(&transaction.label, random()))
    }

    fn invoke(label: String, batch: types::RecordBatch) -> Result<Vec<types::Rejection>, types::Error> {
        let batch = Batch {
            framing: batch.framing.into(),
            count: batch.count,
            bytes: &batch.values.bytes,
            ends: &batch.values.ends,
            absent: &batch.values.absent,
        };
        let rejections = opened(|sink| sink.invoke(&label, batch))?;
        Ok(rejections.into_iter().map(|one| types::Rejection { index: one.index, reason: one.reason.to_owned() }).collect())
    }

    fn precommit(label: String) -> Result<types::Prepared, types::Error> {
        let prepared = opened(|sink| sink.precommit(&label))?;
        Ok(types::Prepared { handle: prepared.handle, records: prepared.records })
    }

    fn commit(transaction: types::Transaction, handle: Vec<u8>) -> Result<types::Verdict, types::Error> {
        Ok(match opened(|sink| sink.commit(&transaction.label, &handle))? {
            Verdict::Committed => types::Verdict::Committed,
            Verdict::AlreadyCommitted => types::Verdict::AlreadyCommitted,
        })
    }

    fn abort(transaction: types::Transaction) -> Result<(), types::Error> {
        opened(|sink| sink.abort(&transaction.label))
    }
}

fn opened<T>(call: impl FnOnce(&mut Sink<WasiFolder>) -> Result<T, Error>) -> Result<T, types::Error> {
    OPENED.with_borrow_mut(|opened| match opened {
        Some(sink) => call(sink).map_err(types::Error::from),
        None => Err(Error::Contract("the instance was not opened".to_owned()).into()),
    })
}

/// 16 random bytes from the host.
fn random() -> [u8; 16] {
    let (high, low) = (wasip2::random::random::get_random_u64(), wasip2::random::random::get_random_u64());
    (u128::from(high) << 64 | u128::from(low)).to_be_bytes()
}

impl From<Error> for types::Error {
    fn from(error: Error) -> Self {
        let kind = match error.kind() {
            Kind::Unavailable => types::ErrorKind::Unavailable,
            Kind::Refused => types::ErrorKind::Refused,
            Kind::BadData => types::ErrorKind::BadData,
            Kind::Conflict => types::ErrorKind::Conflict,
            Kind::Broken => types::ErrorKind::Broken,
        };
        Self { kind, message: error.to_string(), code: error.code().to_owned(), retry_after_ms: 0 }
    }
}

impl From<types::Format> for Format {
    fn from(format: types::Format) -> Self {
        match format {
            types::Format::Opaque => Self::Opaque,
            types::Format::Lines => Self::Lines,
            types::Format::Json => Self::Json,
            types::Format::Csv => Self::Csv,
        }
    }
}

impl From<types::Framing> for Framing {
    fn from(framing: types::Framing) -> Self {
        match framing {
            types::Framing::Bare => Self::Bare,
            types::Framing::LineFeed => Self::LineFeed,
        }
    }
}

impl From<types::Role> for Role {
    fn from(role: types::Role) -> Self {
        match role {
            types::Role::Writer => Self::Writer,
            types::Role::Committer => Self::Committer,
            types::Role::Probe => Self::Probe,
        }
    }
}
