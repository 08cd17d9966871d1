//! Version 0.1.0 of the contract.

use std::time::Duration;

use wasmtime::Store;
use wasmtime::component::Instance;
use weir_protocol::{Label, Transaction, Verdict};

use self::generated::exports::weir::sink::sink;
use self::generated::weir::sink::types as wit;
use super::{Answer, ErrorKind, RawDescription, RawError};
use crate::model::{Batch, Column, Format, Framing, Guarantee, OpenRequest, Prepared, Profile, Rejection, Role};
use crate::store::State;

/// Borrowed where the host gives, owned where the plugin gives: a batch is copied once, from its buffer into the plugin's memory.
#[allow(unsafe_code, missing_docs, unreachable_pub)] // generated: typed functions whose types were checked a line above
mod generated {
    wasmtime::component::bindgen!({
        path: "../../wit/since-v0.1.0",
        world: "plugin",
        exports: { default: async },
        ownership: Borrowing { duplicate_if_necessary: true },
    });
}

pub(crate) struct Guest(generated::Plugin);

impl Guest {
    /// Finds the functions in an instance, and checks their types.
    pub(crate) fn new(store: &mut Store<State>, instance: &Instance) -> wasmtime::Result<Self> {
        generated::Plugin::new(store, instance).map(Self)
    }

    fn sink(&self) -> &sink::Guest {
        self.0.weir_sink_sink()
    }

    pub(crate) async fn describe(&self, store: &mut Store<State>) -> Answer<RawDescription> {
        self.sink().call_describe(store).await.map(|description| Ok(description.into()))
    }

    pub(crate) async fn open(&self, store: &mut Store<State>, request: &OpenRequest, role: Role, limit_ms: u32) -> Answer<Profile> {
        let columns: Vec<&str> = request.input.columns.iter().map(String::as_str).collect();
        let setup = wit::Setup {
            pipeline: request.pipeline.as_str(),
            sink: request.sink.as_str(),
            lane: if role == Role::Writer { request.lane.0 } else { 0 },
            lanes: request.lanes,
            role: match role {
                Role::Writer => wit::Role::Writer,
                Role::Committer => wit::Role::Committer,
                Role::Probe => wit::Role::Probe,
            },
            input: wit::Input {
                format: match request.input.format {
                    Format::Opaque => wit::Format::Opaque,
                    Format::Lines => wit::Format::Lines,
                    Format::Json => wit::Format::Json,
                    Format::Csv => wit::Format::Csv,
                },
                columns: &columns,
            },
            config: &request.config_json,
            call_limit_ms: limit_ms,
        };
        let answer = self.sink().call_open(store, setup).await?;
        Ok(answer.map(Profile::from).map_err(RawError::from))
    }

    pub(crate) async fn begin(&self, store: &mut Store<State>, transaction: &Transaction) -> Answer<()> {
        Ok(self.sink().call_begin(store, lower(transaction)).await?.map_err(RawError::from))
    }

    pub(crate) async fn invoke(&self, store: &mut Store<State>, label: &Label, batch: &Batch, profile: &Profile) -> Answer<Vec<Rejection>> {
        let ends = batch.ends.as_deref().filter(|_| profile.wants_ends(batch.framing));
        let batch = wit::RecordBatch {
            split: batch.split.as_str(),
            first: batch.first,
            count: batch.count,
            framing: match batch.framing {
                Framing::Bare => wit::Framing::Bare,
                Framing::LineFeed => wit::Framing::LineFeed,
            },
            values: wit::Column {
                bytes: &batch.bytes,
                ends: ends.unwrap_or_default(),
                absent: batch.absent.as_deref().unwrap_or_default(),
            },
            keys: batch.keys.as_ref().filter(|_| profile.keys).map(lower_column),
            timestamps: batch.timestamps.as_deref().filter(|_| profile.timestamps),
            headers: batch.headers.as_ref().filter(|_| profile.headers).map(|headers| wit::HeaderColumns {
                ends: &headers.ends,
                names: lower_column(&headers.names),
                values: lower_column(&headers.values),
            }),
        };
        let answer = self.sink().call_invoke(store, label.as_str(), batch).await?;
        let lift = |rejection: wit::Rejection| Rejection { index: rejection.index, reason: rejection.reason };
        Ok(answer.map(|rejections| rejections.into_iter().map(lift).collect()).map_err(RawError::from))
    }

    pub(crate) async fn precommit(&self, store: &mut Store<State>, label: &Label) -> Answer<Prepared> {
        let answer = self.sink().call_precommit(store, label.as_str()).await?;
        let lift = |prepared: wit::Prepared| Prepared { handle: prepared.handle, records: prepared.records.map(u64::from) };
        Ok(answer.map(lift).map_err(RawError::from))
    }

    pub(crate) async fn commit(&self, store: &mut Store<State>, transaction: &Transaction, handle: &[u8]) -> Answer<Verdict> {
        let answer = self.sink().call_commit(store, lower(transaction), handle).await?;
        let lift = |verdict| match verdict {
            wit::Verdict::Committed => Verdict::Committed,
            wit::Verdict::AlreadyCommitted => Verdict::AlreadyCommitted,
            wit::Verdict::Lost => Verdict::Lost,
            wit::Verdict::Unknown => Verdict::Unknown,
        };
        Ok(answer.map(lift).map_err(RawError::from))
    }

    pub(crate) async fn abort(&self, store: &mut Store<State>, transaction: &Transaction) -> Answer<()> {
        Ok(self.sink().call_abort(store, lower(transaction)).await?.map_err(RawError::from))
    }
}

fn lower(transaction: &Transaction) -> wit::Transaction<'_> {
    wit::Transaction { label: transaction.label.as_str(), epoch: transaction.epoch.0 }
}

fn lower_column(column: &Column) -> wit::Column<'_> {
    wit::Column { bytes: &column.bytes, ends: &column.ends, absent: &column.absent }
}

impl From<wit::Description> for RawDescription {
    fn from(from: wit::Description) -> Self {
        Self {
            name: from.name,
            version: from.version,
            summary: from.summary,
            documentation: from.documentation,
            config_schema: from.config_schema,
            guarantee: match from.guarantee {
                wit::Guarantee::ExactlyOnce => Guarantee::ExactlyOnce,
                wit::Guarantee::Idempotent => Guarantee::Idempotent,
                wit::Guarantee::AtLeastOnce => Guarantee::AtLeastOnce,
            },
            handle_formats: from.handle_formats,
            needs: from.needs.into_iter().map(|need| (need.name, need.why)).collect(),
        }
    }
}

impl From<wit::Profile> for Profile {
    fn from(from: wit::Profile) -> Self {
        let wish = |number: u32| (number != 0).then_some(number);
        Self {
            target: from.target,
            ends: from.ends,
            keys: from.keys,
            timestamps: from.timestamps,
            headers: from.headers,
            max_batch_bytes: wish(from.max_batch_bytes),
            max_batch_records: wish(from.max_batch_records),
            prepared_lifetime: from.prepared_lifetime_s.map(|seconds| Duration::from_secs(u64::from(seconds))),
            settle_ms: from.settle_ms,
        }
    }
}

impl From<wit::Error> for RawError {
    fn from(from: wit::Error) -> Self {
        Self {
            kind: match from.kind {
                wit::ErrorKind::Unavailable => ErrorKind::Unavailable,
                wit::ErrorKind::Refused => ErrorKind::Refused,
                wit::ErrorKind::BadData => ErrorKind::BadData,
                wit::ErrorKind::Conflict => ErrorKind::Conflict,
                wit::ErrorKind::Broken => ErrorKind::Broken,
            },
            message: from.message,
            code: from.code,
            retry_after_ms: from.retry_after_ms,
        }
    }
}
