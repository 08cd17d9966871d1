//! A sink that keeps a log of its calls, and behaves badly where its configuration says so.
//!
//! In reading order: this file is the border to the host, `config.rs` lists the abuses, `abuse.rs` and `answer.rs` do them,
//! `mirror.rs` is the sink that is left when there is none, `events.rs` the log of calls.

mod abuse;
mod answer;
mod config;
mod errors;
mod events;
mod http;
mod mirror;

use std::cell::RefCell;
use std::path::Path;

use contract::Guest;
use contract::types::{Description, Error, Need, Prepared, Profile, RecordBatch, Rejection, Role, Setup, Transaction, Verdict};
use serde_json::{Value, json};

use crate::config::{Abuse, Call, Config};
use crate::events::Events;
use crate::mirror::Mirror;

/// What the exports lead to.
struct Component;

#[allow(unsafe_code, reason = "generated code has its own ways")]
mod exports {
    use super::Component;
    contract::bindings::export!(Component with_types_in contract::bindings);
}

thread_local! {
    static OPENED: RefCell<Option<Opened>> = const { RefCell::new(None) };
}

struct Opened {
    config: Config,
    events: Events,
    mirror: Mirror,
}

impl Guest for Component {
    fn describe() -> Description {
        let mut description = contract::description("unruly");
        description.config_schema = config::SCHEMA.to_owned();
        description.handle_formats = vec![mirror::HANDLE_FORMAT.to_owned()];
        description.needs =
            vec![Need { name: "wasi:filesystem/preopens".to_owned(), why: "The folder of the data and of the log of calls.".to_owned() }];
        description
    }

    fn open(setup: Setup) -> Result<Profile, Error> {
        let config = Config::parse(&setup.config)?;
        let directory = Path::new(&config.directory).to_owned();
        let events = Events::open(&directory, role(setup.role), setup.lane)?;
        let mut opened = Opened { mirror: Mirror::new(&directory), config, events };
        let said = json!({ "pipeline": setup.pipeline, "sink": setup.sink, "lanes": setup.lanes, "call_limit_ms": setup.call_limit_ms });
        let answer = opened.answer("open", Call::Open, said, |opened, abuse| {
            Ok((answer::profile(profile(&opened.config), abuse, &opened.config), json!({})))
        });
        OPENED.replace(Some(opened));
        answer
    }

    fn begin(transaction: Transaction) -> Result<(), Error> {
        answer("begin", Call::Begin, of(&transaction), |opened, _| Ok((opened.mirror.begin(&transaction.label)?, json!({}))))
    }

    fn invoke(label: String, batch: RecordBatch) -> Result<Vec<Rejection>, Error> {
        let said = json!({
            "label": label, "split": batch.split, "first": batch.first, "count": batch.count, "bytes": batch.values.bytes.len(),
            "ends": batch.values.ends.len(), "keys": batch.keys.is_some(), "timestamps": batch.timestamps.is_some(),
            "headers": batch.headers.is_some(),
        });
        answer("invoke", Call::Invoke, said, |opened, abuse| {
            opened.mirror.invoke(&label, &batch, answer::taken(abuse, &batch))?;
            Ok((answer::rejections(abuse, &batch, &opened.config), json!({})))
        })
    }

    fn precommit(label: String) -> Result<Prepared, Error> {
        answer("precommit", Call::Precommit, json!({ "label": label }), |opened, abuse| {
            let prepared = answer::prepared(opened.mirror.precommit(&label)?, abuse, &opened.config);
            let said = json!({ "records": prepared.records });
            Ok((prepared, said))
        })
    }

    fn commit(transaction: Transaction, handle: Vec<u8>) -> Result<Verdict, Error> {
        let mut said = of(&transaction);
        said["handle"] = String::from_utf8_lossy(&handle).into();
        answer("commit", Call::Commit, said, |opened, abuse| {
            let verdict = match answer::verdict(abuse, &opened.config) {
                Some(verdict) => verdict,
                None => opened.mirror.commit(&transaction.label)?,
            };
            Ok((verdict, json!({ "verdict": word(verdict) })))
        })
    }

    fn abort(transaction: Transaction) -> Result<(), Error> {
        answer("abort", Call::Abort, of(&transaction), |opened, _| Ok((opened.mirror.abort(&transaction.label)?, json!({}))))
    }
}

impl Opened {
    /// Logs the call, does what it was asked to do badly, then what it should, and logs how that ended. A call without an `answer` in the log
    /// never came back.
    fn answer<T>(
        &mut self,
        name: &str,
        call: Call,
        said: Value,
        work: impl FnOnce(&mut Self, Option<Abuse>) -> Result<(T, Value), Error>,
    ) -> Result<T, Error> {
        self.events.write(name, said)?;
        let done = abuse::due(&self.config, call).and_then(|abuse| {
            abuse.map_or(Ok(()), |abuse| abuse::act(abuse, &self.config))?;
            work(self, abuse)
        });
        match done {
            Ok((value, mut said)) => {
                said["answer"] = "ok".into();
                self.events.write(name, said)?;
                Ok(value)
            }
            Err(error) => {
                self.events.write(name, json!({ "answer": errors::word(error.kind) }))?;
                Err(error)
            }
        }
    }
}

fn answer<T>(
    name: &str,
    call: Call,
    said: Value,
    work: impl FnOnce(&mut Opened, Option<Abuse>) -> Result<(T, Value), Error>,
) -> Result<T, Error> {
    OPENED.with_borrow_mut(|opened| match opened {
        Some(opened) => opened.answer(name, call, said, work),
        None => Err(errors::broken(format!("{name} before open"))),
    })
}

fn profile(config: &Config) -> Profile {
    Profile {
        target: format!("folder {}", config.directory),
        ends: config.profile.ends,
        keys: config.profile.keys,
        timestamps: config.profile.timestamps,
        headers: config.profile.headers,
        max_batch_bytes: config.profile.max_batch_bytes,
        max_batch_records: config.profile.max_batch_records,
        prepared_lifetime_s: config.profile.prepared_lifetime_s,
        settle_ms: config.profile.settle_ms,
    }
}

fn of(transaction: &Transaction) -> Value {
    json!({ "label": transaction.label, "epoch": transaction.epoch })
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Committed => "committed",
        Verdict::AlreadyCommitted => "already-committed",
        Verdict::Lost => "lost",
        Verdict::Unknown => "unknown",
    }
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Writer => "writer",
        Role::Committer => "committer",
        Role::Probe => "probe",
    }
}
