//! The life of one instance: which call may follow which, and what each does.

use crate::bindings::weir::sink::types::{Error, Prepared, Profile, RecordBatch, Rejection, Role, Setup, Transaction, Verdict};
use crate::client::Client;
use crate::config::Config;
use crate::error::{broken, refused};
use crate::headers::{RowFormat, load_headers};
use crate::load::{Load, Patience};
use crate::prepared::Handle;
use crate::rows::{Rows, rows};
use crate::transport::Transport;

/// Wished size of a batch: what wasi:http takes in one write, and about what Doris reads at a time.
const BATCH_BYTES: u32 = 1024 * 1024;

/// An opened sink.
pub(crate) struct Sink<T: Transport> {
    client: Client<T>,
    role: Role,
    writer: Option<Writer>,
    state: State<T::Upload>,
}

/// What only a writer has.
struct Writer {
    format: RowFormat,
    headers: Vec<(String, String)>,
    patience: Patience,
}

/// The transaction of this instance.
enum State<U> {
    None,
    Writing(Load<U>),
    /// It failed: it stays so until the host aborts it or drops the instance.
    Failed {
        label: String,
        error: Error,
    },
}

impl<T: Transport> Sink<T> {
    /// `open` of the contract. A probe talks to the target, the other roles do not.
    pub(crate) fn open(setup: &Setup, transport: T) -> Result<(Self, Profile), Error> {
        let config = Config::parse(&setup.config).map_err(|error| refused(error.to_string()))?;
        let profile = profile(&config);
        // A committer settles what is owed, whatever the pipeline reads today.
        let writer = match setup.role {
            Role::Committer => None,
            Role::Writer | Role::Probe => {
                let format = RowFormat::of(setup.input.format)?;
                let headers = load_headers(&config, format, &setup.input)?;
                Some(Writer { format, headers, patience: Patience::default() })
            }
        };
        let mut client = Client::new(transport, config, setup.call_limit_ms, setup.lane);
        if let (Role::Probe, Some(writer)) = (setup.role, &writer) {
            let deadline = client.start_call();
            client.probe(writer.format, &setup.input, &writer.headers, deadline)?;
        }
        Ok((Self { client, role: setup.role, writer, state: State::None }, profile))
    }

    /// `begin` of the contract.
    pub(crate) fn begin(&mut self, transaction: &Transaction) -> Result<(), Error> {
        let deadline = self.client.start_call();
        let (Role::Writer, Some(writer)) = (self.role, &self.writer) else { return Err(broken("begin in an instance that is no writer")) };
        if !matches!(self.state, State::None) {
            return Err(broken(format!("begin of {} while another transaction is open", transaction.label)));
        }
        match self.client.begin_load(&transaction.label, &writer.headers, &writer.patience, deadline) {
            Ok(load) => {
                self.state = State::Writing(load);
                Ok(())
            }
            Err(error) => {
                self.state = State::Failed { label: transaction.label.clone(), error: error.clone() };
                Err(error)
            }
        }
    }

    /// `invoke` of the contract.
    pub(crate) fn invoke(&mut self, label: &str, batch: RecordBatch) -> Result<Vec<Rejection>, Error> {
        let deadline = self.client.start_call();
        let load = self.take_load(label)?;
        let Some(writer) = &self.writer else { return Err(broken("invoke in an instance that is no writer")) };
        let written = rows(writer.format, batch).and_then(|Rows { bytes, count, rejections }| {
            self.client.write_rows(load, &bytes, count, deadline).map(|load| (load, rejections))
        });
        match written {
            Ok((load, rejections)) => {
                self.state = State::Writing(load);
                Ok(rejections)
            }
            Err(error) => {
                self.state = State::Failed { label: label.to_owned(), error: error.clone() };
                Err(error)
            }
        }
    }

    /// `precommit` of the contract.
    pub(crate) fn precommit(&mut self, label: &str) -> Result<Prepared, Error> {
        let deadline = self.client.start_call();
        let load = self.take_load(label)?;
        let Some(writer) = &mut self.writer else { return Err(broken("precommit in an instance that is no writer")) };
        self.client.finish_load(load, &mut writer.patience, deadline)
    }

    /// `commit` of the contract.
    pub(crate) fn commit(&mut self, transaction: &Transaction, handle: &[u8]) -> Result<Verdict, Error> {
        let deadline = self.client.start_call();
        let handle = Handle::decode(handle)?;
        if handle.label != transaction.label {
            return Err(broken(format!("the handle belongs to {}, not to {}", handle.label, transaction.label)));
        }
        self.client.commit(&handle, deadline)
    }

    /// `abort` of the contract. A load of this instance is cut off first.
    pub(crate) fn abort(&mut self, transaction: &Transaction) -> Result<(), Error> {
        let deadline = self.client.start_call();
        let ours = match &self.state {
            State::None => false,
            State::Writing(load) => load.label == transaction.label,
            State::Failed { label, .. } => *label == transaction.label,
        };
        if ours {
            self.state = State::None;
        }
        self.client.abort(&transaction.label, deadline)
    }

    /// The open load of that label; the instance has none afterwards. An earlier error is answered again.
    fn take_load(&mut self, label: &str) -> Result<Load<T::Upload>, Error> {
        match std::mem::replace(&mut self.state, State::None) {
            State::Writing(load) if load.label == label => Ok(load),
            State::Failed { label: failed, error } if failed == label => {
                self.state = State::Failed { label: failed, error: error.clone() };
                Err(error)
            }
            other => {
                self.state = other;
                Err(broken(format!("no transaction {label} is open")))
            }
        }
    }
}

fn profile(config: &Config) -> Profile {
    Profile {
        target: config.target(),
        ends: false,
        keys: false,
        timestamps: false,
        headers: false,
        max_batch_bytes: BATCH_BYTES,
        max_batch_records: 0,
        prepared_lifetime_s: Some(config.prepared_lifetime_s),
        settle_ms: config.settle_ms,
    }
}

#[cfg(test)]
#[path = "sink_tests/mod.rs"]
mod tests;
